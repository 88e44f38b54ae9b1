package caughtup;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.SortedSet;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.ApplicationState;
import org.apache.kafka.streams.processor.assignment.AssignmentConfigs;
import org.apache.kafka.streams.processor.assignment.KafkaStreamsState;
import org.apache.kafka.streams.processor.assignment.ProcessId;
import org.apache.kafka.streams.processor.assignment.TaskInfo;
import org.apache.kafka.streams.processor.assignment.TaskTopicPartition;

/**
 * What the leader knows in a rebalance, read once and in order.
 *
 * <p>A task has state if it has a changelog, as for Kafka's own assignors; a store without one
 * cannot be restored anywhere. Racks of partitions are never asked for: that would ask the brokers.
 */
final class Application {
    /** A lag of a running active. */
    static final long RUNNING = -2;
    /** A lag that is unknown, because end offsets could not be listed. */
    static final long UNKNOWN = -3;

    /** A process: its threads, what it had of the tasks that there are, and its lags in offsets. */
    static final class Client {
        final KafkaStreamsState state;
        final int capacity;
        final SortedSet<TaskId> active;
        final SortedSet<TaskId> standby;
        final Map<TaskId, Long> lags;

        Client(final KafkaStreamsState state, final SortedMap<TaskId, Boolean> tasks) {
            this.state = state;
            // A process that only has closed threads is still there, and is given nothing.
            this.capacity = Math.max(1, state.numProcessingThreads());
            this.active = new TreeSet<>(state.previousActiveTasks());
            this.active.retainAll(tasks.keySet());
            this.standby = new TreeSet<>(state.previousStandbyTasks());
            this.standby.removeIf(task -> !tasks.getOrDefault(task, false));
            this.lags = state.statefulTasksToLagSums();
        }

        /** Says where this client stands with a task: smaller is nearer, unknown is farthest. */
        long rank(final TaskId task) {
            final long lag = lag(task);
            return lag == UNKNOWN ? Long.MAX_VALUE : lag;
        }

        long lag(final TaskId task) {
            return lags.getOrDefault(task, UNKNOWN);
        }
    }

    /** Tasks, each with whether it has state. */
    final SortedMap<TaskId, Boolean> tasks = new TreeMap<>();
    final SortedMap<ProcessId, Client> clients = new TreeMap<>();
    final Map<TaskId, TaskInfo> infos;
    final AssignmentConfigs configs;
    private final Map<TaskId, List<ProcessId>> owners = new HashMap<>();
    private final Map<TaskId, List<ProcessId>> holders = new HashMap<>();

    Application(final ApplicationState state) {
        infos = state.allTasks();
        configs = state.assignmentConfigs();
        infos.forEach((task, info) -> tasks.put(
            task, info.topicPartitions().stream().anyMatch(TaskTopicPartition::isChangelog)));
        state.kafkaStreamsStates(true)
            .forEach((process, client) -> clients.put(process, new Client(client, tasks)));
        clients.forEach((process, client) -> {
            client.active.forEach(task ->
                owners.computeIfAbsent(task, any -> new ArrayList<>()).add(process));
            client.standby.forEach(task ->
                holders.computeIfAbsent(task, any -> new ArrayList<>()).add(process));
        });
    }

    /** The processes that ran a task as its active; none while it is in transit. */
    List<ProcessId> owners(final TaskId task) {
        return owners.getOrDefault(task, List.of());
    }

    /** The processes that have a copy of a task which isn't its active, as far as they said. */
    List<ProcessId> holders(final TaskId task) {
        return holders.getOrDefault(task, List.of());
    }

    boolean caughtUp(final ProcessId process, final TaskId task) {
        final long lag = clients.get(process).lag(task);
        final long acceptable = configs.acceptableRecoveryLag();
        return lag == RUNNING || acceptable == Long.MAX_VALUE || lag >= 0 && lag <= acceptable;
    }

    /** The copies with state that are caught up, by process. */
    Map<ProcessId, List<TaskId>> caughtUp() {
        final Map<ProcessId, List<TaskId>> caughtUp = new HashMap<>();
        clients.keySet().forEach(process -> caughtUp.put(process, tasks.keySet().stream()
            .filter(task -> tasks.get(task) && caughtUp(process, task))
            .collect(Collectors.toList())));
        return caughtUp;
    }

    /** Whether a copy is as far behind as a process that surely has nothing of the task. */
    boolean isEmpty(final ProcessId process, final TaskId task) {
        final long rank = clients.get(process).rank(task);
        return rank != Long.MAX_VALUE && clients.values().stream().anyMatch(other ->
            !other.active.contains(task) && !other.standby.contains(task)
                && other.rank(task) <= rank);
    }

    /** The smallest rank that any process has of a task. */
    long nearest(final TaskId task) {
        long nearest = Long.MAX_VALUE;
        for (final Client client : clients.values()) {
            nearest = Math.min(nearest, client.rank(task));
        }
        return nearest;
    }

    /**
     * Returns whether a task may be active here: caught up, or as near as anybody. Where one is
     * caught up, so is the nearest.
     */
    boolean mayRun(final ProcessId process, final TaskId task) {
        return !tasks.get(task) || caughtUp(process, task)
            || clients.get(process).rank(task) == nearest(task);
    }
}

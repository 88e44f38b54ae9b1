package caughtup;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;
import java.util.SortedSet;
import java.util.TreeSet;
import java.util.UUID;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.ApplicationState;
import org.apache.kafka.streams.processor.assignment.AssignmentConfigs;
import org.apache.kafka.streams.processor.assignment.KafkaStreamsState;
import org.apache.kafka.streams.processor.assignment.ProcessId;
import org.apache.kafka.streams.processor.assignment.TaskInfo;
import org.apache.kafka.streams.processor.assignment.TaskTopicPartition;
import org.apache.kafka.streams.processor.internals.assignment.DefaultKafkaStreamsState;
import org.apache.kafka.streams.processor.internals.assignment.DefaultTaskInfo;
import org.apache.kafka.streams.processor.internals.assignment.DefaultTaskTopicPartition;

/** A scenario of `caughtup assign` as Kafka Streams would show it to a task assignor. */
final class FabricatedState implements ApplicationState {
    /** What befalls who asks for lags; null for nothing. */
    Throwable failure;
    private final JsonNode scenario;
    private final Map<TaskId, TaskInfo> tasks = new HashMap<>();

    FabricatedState(final JsonNode scenario) {
        this.scenario = scenario;
        scenario.get("tasks").properties().forEach(entry -> {
            final TaskId task = TaskId.parse(entry.getKey());
            final boolean stateful = entry.getValue().get("stateful").asBoolean();
            final Set<TaskTopicPartition> partitions = new HashSet<>();
            partitions.add(partition("in-" + task.subtopology(), task, false));
            if (stateful) {
                partitions.add(partition("orders-store-changelog", task, true));
            }
            // A store without a changelog doesn't make a task one that can be restored.
            tasks.put(task, new DefaultTaskInfo(task, true, Set.of("store"), partitions));
        });
    }

    private static TaskTopicPartition partition(
        final String topic, final TaskId task, final boolean changelog) {
        return new DefaultTaskTopicPartition(
            new TopicPartition(topic, task.partition()), !changelog, changelog, () -> {
                throw new IllegalStateException("racks were asked for");
            });
    }

    @Override
    public Map<ProcessId, KafkaStreamsState> kafkaStreamsStates(final boolean computeTaskLags) {
        if (computeTaskLags && failure instanceof Error) {
            throw (Error) failure;
        }
        if (computeTaskLags && failure != null) {
            throw new IllegalStateException(failure);
        }
        final Map<ProcessId, KafkaStreamsState> states = new HashMap<>();
        scenario.get("clients").properties().forEach(entry -> {
            final ProcessId process = new ProcessId(UUID.fromString(entry.getKey()));
            final JsonNode client = entry.getValue();
            final Map<TaskId, Long> lags = new HashMap<>();
            client.get("lags").properties().forEach(
                lag -> lags.put(TaskId.parse(lag.getKey()), lag.getValue().asLong()));
            final SortedSet<TaskId> active = read(client.get("previous_active"));
            states.put(process, new DefaultKafkaStreamsState(
                process, client.get("capacity").asInt(), Map.of(), active,
                read(client.get("previous_standby")), new java.util.TreeMap<>(),
                Optional.empty(), computeTaskLags ? Optional.of(lags) : Optional.empty(),
                Optional.empty()));
        });
        return states;
    }

    @Override
    public AssignmentConfigs assignmentConfigs() {
        final JsonNode config = scenario.get("config");
        return new AssignmentConfigs(
            config.get("acceptable.recovery.lag").asLong(),
            config.get("max.warmup.replicas").asInt(),
            config.get("num.standby.replicas").asInt(),
            config.path("probing.rebalance.interval.ms").asLong(600_000),
            List.of(), OptionalInt.empty(), OptionalInt.empty(), "none");
    }

    @Override
    public Map<TaskId, TaskInfo> allTasks() {
        return tasks;
    }

    private static SortedSet<TaskId> read(final JsonNode array) {
        final SortedSet<TaskId> read = new TreeSet<>();
        array.forEach(task -> read.add(TaskId.parse(task.asText())));
        return read;
    }
}

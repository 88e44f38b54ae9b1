package caughtup;

import java.time.Instant;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.streams.processor.assignment.ApplicationState;
import org.apache.kafka.streams.processor.assignment.KafkaStreamsAssignment;
import org.apache.kafka.streams.processor.assignment.ProcessId;
import org.apache.kafka.streams.processor.assignment.TaskAssignor;
import org.apache.kafka.streams.processor.assignment.assignors.StickyTaskAssignor;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Applies what caughtup recommends: {@code task.assignor.class=caughtup.FollowingTaskAssignor}.
 *
 * <p>In each rebalance the newest recommendation for the group is followed if it holds for exactly
 * these processes and tasks. Otherwise everything stays where it is and another rebalance is asked
 * for, by when caughtup has decided; when none comes, tasks are balanced without it. The state
 * that this was decided from is published. Nothing here waits for a broker, and nothing is thrown:
 * Kafka Streams would end its threads. Source of the interface: KIP-924.
 */
public final class FollowingTaskAssignor implements TaskAssignor {
    private static final Logger LOG = LoggerFactory.getLogger(FollowingTaskAssignor.class);

    /** How often in a row nothing could be decided, by application. */
    private static final Map<String, Integer> FAILURES = new ConcurrentHashMap<>();

    private FollowerConfig config = new FollowerConfig(Map.of());

    @Override
    public void configure(final Map<String, ?> configs) {
        config = new FollowerConfig(configs);
    }

    @Override
    public TaskAssignment assign(final ApplicationState state) {
        try {
            final Application application = new Application(state);
            final Outcome outcome = GroupFollower.of(config).decide(application);
            final TaskAssignment assignment =
                outcome.assignment(own(application), Instant.now());
            LOG.info("caughtup: {}: {} ({}{})", config.group, outcome.message, outcome.reason,
                outcome.followUpMs == null ? ""
                    : ", next rebalance in " + outcome.followUpMs + " ms");
            FAILURES.remove(name());
            return assignment;
        } catch (final Exception | LinkageError | VirtualMachineError problem) {
            // Memory that ran out may be there again: what is done now is small.
            LOG.error("caughtup: cannot decide; every task stays where it is", problem);
            return inPlace(state);
        }
    }

    /** Kafka's own way to leave actives alone, but for its wish to rebalance again at once. */
    private TaskAssignment inPlace(final ApplicationState state) {
        final List<KafkaStreamsAssignment> kept = new ArrayList<>();
        final TaskAssignment sticky = new StickyTaskAssignor(true).assign(state);
        for (final KafkaStreamsAssignment one : sticky.assignment()) {
            kept.add(KafkaStreamsAssignment.of(
                one.processId(), new HashSet<>(one.tasks().values())));
        }
        if (!kept.isEmpty()) {
            kept.set(0, kept.get(0).withFollowupRebalance(
                Instant.now().plusMillis(againMs(state))));
        }
        return new TaskAssignment(kept);
    }

    /** Twice as late each time that nothing can be decided again. */
    private long againMs(final ApplicationState state) {
        final int failed = FAILURES.merge(name(), 1, Integer::sum) - 1;
        final long first = config.patience.followUpMs;
        final long most = state.assignmentConfigs().probingRebalanceIntervalMs();
        return Math.max(first, Following.laterMs(first, most, failed));
    }

    private String name() {
        return config.group == null ? "" : config.group;
    }

    /** Finds the process that this runs in: it reads the clock that a follow-up is set on. */
    private ProcessId own(final Application application) {
        for (final String prefix : config.memberIdPrefixes()) {
            for (final ProcessId process : application.clients.keySet()) {
                if (application.clients.get(process).state.consumerClientIds().stream()
                    .anyMatch(member -> member.startsWith(prefix))) {
                    return process;
                }
            }
        }
        return application.clients.firstKey();
    }
}

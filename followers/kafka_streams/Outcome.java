package caughtup;

import java.time.Instant;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.SortedSet;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.KafkaStreamsAssignment;
import org.apache.kafka.streams.processor.assignment.KafkaStreamsAssignment.AssignedTask;
import org.apache.kafka.streams.processor.assignment.ProcessId;
import org.apache.kafka.streams.processor.assignment.TaskAssignor.TaskAssignment;

/** What a rebalance came to: the placement, why, and when the next one is to be. */
final class Outcome {
    static final String FOLLOWED = "followed";
    static final String GIVEN_UP = "given_up";

    /** The decision that was followed; null without one. */
    final String decisionId;
    /** {@code followed}, {@code given_up}, or why everything was kept where it is. */
    final String reason;
    final String message;
    final Placement placement;
    private final SortedMap<ProcessId, SortedSet<TaskId>> active = new TreeMap<>();
    /** How long from now another rebalance is wanted, in ms; null if it is not. */
    final Long followUpMs;

    Outcome(
        final String decisionId, final String reason, final String message,
        final Placement placement, final Long followUpMs) {
        this.decisionId = decisionId;
        this.reason = reason;
        this.message = message;
        this.placement = placement;
        this.followUpMs = followUpMs;
        placement.standby.keySet().forEach(process -> active.put(process, new TreeSet<>()));
        placement.active.forEach((task, process) -> active.get(process).add(task));
    }

    /**
     * Returns the assignment for Kafka Streams. The follow-up is a moment on a clock, so the process
     * that is to keep it should be the one that reads this clock.
     */
    TaskAssignment assignment(final ProcessId own, final Instant now) {
        final List<KafkaStreamsAssignment> assignments = new ArrayList<>();
        final ProcessId prober = placement.standby.containsKey(own)
            ? own : placement.standby.firstKey();
        placement.standby.forEach((process, standbys) -> {
            final Set<AssignedTask> tasks = new HashSet<>();
            active.get(process).forEach(
                task -> tasks.add(new AssignedTask(task, AssignedTask.Type.ACTIVE)));
            standbys.forEach(task -> tasks.add(new AssignedTask(task, AssignedTask.Type.STANDBY)));
            final KafkaStreamsAssignment assignment = KafkaStreamsAssignment.of(process, tasks);
            assignments.add(followUpMs != null && process.equals(prober)
                ? assignment.withFollowupRebalance(now.plusMillis(followUpMs)) : assignment);
        });
        return new TaskAssignment(assignments);
    }

    /** Returns this as JSON values, for the application's published state. */
    Map<String, Object> toJson() {
        final Map<String, Object> json = new LinkedHashMap<>();
        if (decisionId != null) {
            json.put("followed", decisionId);
        }
        json.put("reason", reason);
        json.put("message", message);
        final Map<String, Object> assignment = new LinkedHashMap<>();
        placement.standby.forEach((process, standbys) -> {
            final Map<String, Object> given = new LinkedHashMap<>();
            given.put("active", active.get(process));
            given.put("standby", standbys);
            assignment.put(process.toString(), given);
        });
        json.put("assignment", assignment);
        if (followUpMs != null) {
            json.put("follow_up_ms", followUpMs);
        }
        return json;
    }
}

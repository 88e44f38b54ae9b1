package caughtup;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.Set;
import java.util.SortedSet;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.AssignmentConfigs;
import org.apache.kafka.streams.processor.assignment.ProcessId;

/** Whether a recommendation holds for an application as it is now. */
final class Rules {
    /** Why a recommendation is not followed: a code for programs, a clause for people. */
    static final class Objection {
        final String code;
        final String message;

        Objection(final String code, final String message) {
            this.code = code;
            this.message = message;
        }
    }

    private final Application application;
    private final Recommendation recommendation;
    private final Placement placement;

    /** A placement as recommended, of a recommendation that names the application's processes. */
    private Rules(final Application application, final Recommendation recommendation) {
        this.application = application;
        this.recommendation = recommendation;
        placement = new Placement(application);
    }

    /**
     * Returns the recommended placement if the recommendation holds, and otherwise the first
     * objection. {@code ageMs} is how old it is at least.
     */
    static Object placementOrObjection(
        final Application application, final Recommendation recommendation, final long ageMs,
        final long maxAgeMs) {
        final Rules rules = new Rules(application, recommendation);
        Objection objection = rules.processes();
        objection = objection != null ? objection : rules.tasks();
        objection = objection != null ? objection : rules.configs();
        if (objection == null) {
            rules.placement.active.putAll(recommendation.active);
            recommendation.standby.forEach(
                (process, tasks) -> rules.placement.standby.get(process).addAll(tasks));
            objection = rules.copies();
        }
        objection = objection != null ? objection : rules.places();
        objection = objection != null ? objection : rules.lags();
        objection =
            objection != null ? objection : Bounds.broken(application, rules.placement);
        if (objection == null && ageMs > maxAgeMs && rules.changesAnything()) {
            objection = new Objection("too_old",
                "it is at least " + ageMs / 1000 + " s old and would still move tasks or copies");
        }
        return objection != null ? objection : rules.placement;
    }

    private Objection processes() {
        return recommendation.standby.keySet().equals(application.clients.keySet()) ? null
            : new Objection("other_processes", "it is for other processes than those in the group");
    }

    private Objection tasks() {
        for (final TaskId task : recommendation.active.keySet()) {
            if (!application.tasks.containsKey(task)) {
                return new Objection("unknown_task", "there is no task " + task);
            }
        }
        for (final SortedSet<TaskId> standbys : recommendation.standby.values()) {
            for (final TaskId task : standbys) {
                if (!application.tasks.containsKey(task)) {
                    return new Objection("unknown_task", "there is no task " + task);
                }
                if (!application.tasks.get(task)) {
                    return new Objection("stateless_standby",
                        "task " + task + " has no state to stand by for");
                }
            }
        }
        for (final TaskId task : application.tasks.keySet()) {
            if (!recommendation.active.containsKey(task)) {
                return new Objection("missing_task", "it leaves out task " + task);
            }
        }
        return null;
    }

    private Objection configs() {
        final AssignmentConfigs configs = application.configs;
        Objection found = config(
            StreamsConfig.ACCEPTABLE_RECOVERY_LAG_CONFIG, configs.acceptableRecoveryLag());
        found = found != null ? found
            : config(StreamsConfig.MAX_WARMUP_REPLICAS_CONFIG, (long) configs.maxWarmupReplicas());
        found = found != null ? found
            : config(StreamsConfig.NUM_STANDBY_REPLICAS_CONFIG,
                (long) configs.numStandbyReplicas());
        found = found != null ? found : config(
            StreamsConfig.RACK_AWARE_ASSIGNMENT_TAGS_CONFIG, configs.rackAwareAssignmentTags());
        found = found != null ? found : config(
            StreamsConfig.RACK_AWARE_ASSIGNMENT_STRATEGY_CONFIG,
            configs.rackAwareAssignmentStrategy());
        found = found != null ? found : config(
            StreamsConfig.RACK_AWARE_ASSIGNMENT_TRAFFIC_COST_CONFIG,
            cost(configs.rackAwareTrafficCost()));
        return found != null ? found : config(
            StreamsConfig.RACK_AWARE_ASSIGNMENT_NON_OVERLAP_COST_CONFIG,
            cost(configs.rackAwareNonOverlapCost()));
    }

    /** A config that the recommendation doesn't name was the application's own for all we know. */
    private Objection config(final String name, final Object own) {
        final JsonNode theirs = recommendation.config.get(name);
        return theirs == null || Json.write(theirs).equals(Json.write(own)) ? null
            : new Objection("other_configs", "it was decided with another " + name);
    }

    private static Long cost(final OptionalInt cost) {
        return cost.isPresent() ? Long.valueOf(cost.getAsInt()) : null;
    }

    private Objection copies() {
        final int extra = placement.extraCopies();
        return extra <= application.configs.maxWarmupReplicas() ? null
            : new Objection("too_many_copies",
                "copies beyond " + StreamsConfig.NUM_STANDBY_REPLICAS_CONFIG + ": " + extra);
    }

    private Objection places() {
        for (final TaskId task : application.tasks.keySet()) {
            for (final ProcessId owner : application.owners(task)) {
                final Set<ProcessId> found = recommendation.found.getOrDefault(task, Set.of());
                if (!owner.equals(placement.active.get(task)) && !found.contains(owner)) {
                    return new Objection("moved_since",
                        "task " + task + " is on " + owner + ", where it did not find the task");
                }
            }
        }
        return null;
    }

    private Objection lags() {
        for (final Map.Entry<TaskId, ProcessId> entry : placement.active.entrySet()) {
            final TaskId task = entry.getKey();
            final ProcessId destination = entry.getValue();
            if (!application.clients.get(destination).active.contains(task)
                && !application.mayRun(destination, task)) {
                return new Objection("not_caught_up",
                    "task " + task + " is not caught up on " + destination);
            }
        }
        return null;
    }

    /** Returns whether tasks move, copies are built, or another rebalance is wanted. */
    private boolean changesAnything() {
        if (recommendation.probingNeeded) {
            return true;
        }
        for (final Map.Entry<TaskId, ProcessId> entry : placement.active.entrySet()) {
            final List<ProcessId> owners = application.owners(entry.getKey());
            if (!owners.isEmpty() && !owners.contains(entry.getValue())) {
                return true;
            }
        }
        return placement.standby.entrySet().stream().anyMatch(entry -> {
            final Application.Client client = application.clients.get(entry.getKey());
            return entry.getValue().stream().anyMatch(
                task -> !client.standby.contains(task) && !client.active.contains(task));
        });
    }
}

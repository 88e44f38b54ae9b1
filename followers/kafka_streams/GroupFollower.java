package caughtup;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.streams.processor.assignment.ProcessId;

/**
 * What outlives an assignor, of which each rebalance has a new one: the reader, the publisher, and
 * how long has been waited.
 */
final class GroupFollower {
    private static final Map<List<String>, GroupFollower> FOLLOWERS = new ConcurrentHashMap<>();

    private final FollowerConfig config;
    private final RecommendationReader reader;
    private final StatePublisher publisher;
    private Set<ProcessId> processes = Set.of();
    private int waited;
    private Map<String, Integer> repeated = Map.of();
    private long countedNanos;

    private GroupFollower(final FollowerConfig config) {
        this.config = config;
        reader = new RecommendationReader(config);
        publisher = new StatePublisher(config);
    }

    static GroupFollower of(final FollowerConfig config) {
        return FOLLOWERS.computeIfAbsent(config.identity(), any -> new GroupFollower(config));
    }

    /** Decides a rebalance, and has it published. */
    synchronized Outcome decide(final Application application) {
        if (!processes.equals(application.clients.keySet())) {
            processes = Set.copyOf(application.clients.keySet());
            waited = 0;
            repeated = Map.of();
            countedNanos = System.nanoTime() - 1_000_000 * config.patience.followUpMs;
        }
        final Following.Read read = reader.read();
        final Outcome outcome =
            Following.decide(application, read, config.patience, waited, repeated);
        final Map<String, Object> decidedWith = decidedWith(read);
        count(outcome);
        final long nowMs = System.currentTimeMillis();
        publisher.publish(() -> ApplicationStateRecord.of(application, outcome, decidedWith,
            config.group, UUID.randomUUID().toString(), nowMs));
        return outcome;
    }

    /** What else a decision depends on, so that others can decide it again. */
    private Map<String, Object> decidedWith(final Following.Read read) {
        final Map<String, Object> with = new LinkedHashMap<>();
        with.put("follow_up_ms", config.patience.followUpMs);
        with.put("max_age_ms", config.patience.maxAgeMs);
        with.put("follow_ups", config.patience.followUps);
        with.put("waited", waited);
        if (read.recommendation != null) {
            with.put("newest", read.recommendation.decisionId);
            with.put("age_ms", read.ageMs);
            with.put("repeated", repeated.getOrDefault(read.recommendation.decisionId, 0));
        }
        return with;
    }

    /** Counts rebalances that waiting brought, and not those that follow a revocation at once. */
    private void count(final Outcome outcome) {
        final long now = System.nanoTime();
        final boolean due = now - countedNanos >= 500_000 * config.patience.followUpMs;
        if (outcome.decisionId != null) {
            final Integer before = repeated.get(outcome.decisionId);
            if (before == null || due) {
                repeated = Map.of(outcome.decisionId, before == null ? 0 : before + 1);
                countedNanos = now;
            }
            waited = 0;
        } else if (due && waited < config.patience.followUps) {
            waited++;
            countedNanos = now;
        }
    }
}

package caughtup;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;

/**
 * What outlives an assignor, of which each rebalance has a new one: the reader, the publisher, and
 * how long has been waited.
 */
final class GroupFollower {
    private static final Map<List<String>, GroupFollower> FOLLOWERS = new ConcurrentHashMap<>();

    private final FollowerConfig config;
    private final RecommendationReader reader;
    private final StatePublisher publisher;
    private final FollowUpCounter followUps;

    private GroupFollower(final FollowerConfig config) {
        this.config = config;
        reader = new RecommendationReader(config);
        publisher = new StatePublisher(config);
        followUps = new FollowUpCounter(config.patience);
    }

    static GroupFollower of(final FollowerConfig config) {
        return FOLLOWERS.computeIfAbsent(config.identity(), any -> new GroupFollower(config));
    }

    /** Decides a rebalance, and has it published. */
    synchronized Outcome decide(final Application application) {
        final long clockMs = System.nanoTime() / 1_000_000;
        followUps.begin(application.caughtUp(), clockMs);
        final Following.NewestRecommendation read = reader.read();
        final Outcome outcome = Following.decide(
            application, read, config.patience, followUps.waited(), followUps.repeated());
        final Map<String, Object> decidedWith = decidedWith(read);
        followUps.count(outcome, clockMs);
        final long nowMs = System.currentTimeMillis();
        publisher.publish(() -> ApplicationStateRecord.of(application, outcome, decidedWith,
            config.group, UUID.randomUUID().toString(), nowMs));
        return outcome;
    }

    /** What else a decision depends on, so that others can decide it again. */
    private Map<String, Object> decidedWith(final Following.NewestRecommendation read) {
        final Map<String, Object> with = new LinkedHashMap<>();
        with.put("follow_up_ms", config.patience.followUpMs);
        with.put("max_age_ms", config.patience.maxAgeMs);
        with.put("follow_ups", config.patience.followUps);
        with.put("waited", followUps.waited());
        with.put("repeated", followUps.repeated());
        if (read.recommendation != null) {
            with.put("newest", read.recommendation.decisionId);
            with.put("age_ms", read.ageMs);
        }
        return with;
    }
}

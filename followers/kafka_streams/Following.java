package caughtup;

/**
 * What a follower decides in a rebalance: a function of its arguments, without clocks or I/O.
 *
 * <p>models/assignors/following/follower.py decides the same, so that the service can check it.
 */
final class Following {
    /** The newest recommendation as far as it was read: one of the two is null. */
    static final class NewestRecommendation {
        final Recommendation recommendation;
        final Rules.Objection objection;
        /** How old the recommendation is at least, in ms. */
        final long ageMs;

        NewestRecommendation(final Recommendation recommendation, final long ageMs) {
            this.recommendation = recommendation;
            this.objection = null;
            this.ageMs = ageMs;
        }

        NewestRecommendation(final Rules.Objection objection) {
            this.recommendation = null;
            this.objection = objection;
            this.ageMs = 0;
        }

        NewestRecommendation(final String code, final String message) {
            this(new Rules.Objection(code, message));
        }
    }

    /** How a follower is configured: ms, and follow-ups that are waited for a recommendation. */
    static final class Patience {
        final long followUpMs;
        final long maxAgeMs;
        final long followUps;

        Patience(final long followUpMs, final long maxAgeMs, final long followUps) {
            this.followUpMs = followUpMs;
            this.maxAgeMs = maxAgeMs;
            this.followUps = followUps;
        }
    }

    /** Doubling stops here; the probing interval is the bound that is met. */
    private static final int MOST_DOUBLINGS = 20;

    private Following() { }

    /**
     * Decides. {@code waited} follow-ups have passed without a recommendation that holds, and
     * {@code repeated} in a row that recommendations asked for have brought nothing new.
     */
    static Outcome decide(
        final Application application, final NewestRecommendation read, final Patience patience,
        final int waited, final int repeated) {
        Rules.Objection objection = read.objection;
        if (objection == null) {
            final Object held = Rules.placementOrObjection(
                application, read.recommendation, read.ageMs, patience.maxAgeMs);
            if (held instanceof Placement) {
                final Recommendation followed = read.recommendation;
                return new Outcome(followed.decisionId, Outcome.FOLLOWED,
                    "followed " + followed.decisionId + ": " + summary((Placement) held),
                    (Placement) held,
                    followed.probingNeeded
                        ? probeAfterMs(application, followed, patience, repeated) : null);
            }
            objection = (Rules.Objection) held;
        }
        final String why = read.objection != null ? objection.message
            : "did not follow " + read.recommendation.decisionId + ": " + objection.message;
        final long interval = application.configs.probingRebalanceIntervalMs();
        if (waited < patience.followUps) {
            return new Outcome(null, objection.code,
                why + "; kept every task where it is until the next rebalance",
                Placement.inPlace(application), Math.max(patience.followUpMs,
                    laterMs(patience.followUpMs, interval, repeated)));
        }
        final Balance.Step step = Balance.step(application);
        return new Outcome(null, Outcome.GIVEN_UP,
            why + " after " + counted(waited, "follow-up", "follow-ups") + " (" + objection.code
                + "); balanced without one: " + summary(step.placement) + ", "
                + step.waiting + " to be handed over later",
            step.placement,
            step.waiting > 0 ? interval : null);
    }

    private static String summary(final Placement placement) {
        final Application application = placement.application;
        final long moved = placement.active.entrySet().stream().filter(one ->
            !application.clients.get(one.getValue()).active.contains(one.getKey())).count();
        return counted(moved, "task changes hands", "tasks change hands") + ", "
            + counted(placement.extraCopies(), "copy warms up", "copies warm up");
    }

    private static String counted(final long number, final String one, final String several) {
        return number + " " + (number == 1 ? one : several);
    }

    /** A duration and not a moment: the service's clock and this one may differ. */
    private static long probeAfterMs(
        final Application application, final Recommendation followed, final Patience patience,
        final int repeated) {
        final long least = patience.followUpMs;
        final long first = Math.max(least,
            followed.worthwhileAfterMs == null ? 2 * least : followed.worthwhileAfterMs);
        return laterMs(first, application.configs.probingRebalanceIntervalMs(), repeated);
    }

    /** Doubles a time for each follow-up that brought nothing, whatever was recommended by then. */
    static long laterMs(final long firstMs, final long mostMs, final int repeated) {
        final int doublings = Math.min(repeated, MOST_DOUBLINGS);
        // Shifting the bound and not the time, which could be anything, cannot overflow.
        return firstMs > mostMs >> doublings ? mostMs : firstMs << doublings;
    }
}

package caughtup;

import java.util.BitSet;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.ProcessId;

/**
 * Counts the follow-up rebalances that passed without a recommendation, and those that brought
 * nothing new.
 *
 * <p>Nothing that a record says counts here, only what the leader sees itself: a recommendation
 * with a new name, or one that moves tasks to and fro, is no news. Times are in ms on a clock that
 * never goes back. models/assignors/following/follow_ups.py has the same.
 */
final class FollowUpCounter {
    private final Following.Patience patience;
    private final Map<TaskId, Integer> numbers = new HashMap<>();
    /** The copies that were ever caught up, since these processes are the ones there are. */
    private final Map<ProcessId, BitSet> ready = new HashMap<>();
    private Set<ProcessId> processes = Set.of();
    private long countedMs;
    /** How long ago the follow-up that a recommendation asked for was half-way; null without. */
    private Long askedMs;
    private int waited;
    private int fruitless;

    FollowUpCounter(final Following.Patience patience) {
        this.patience = patience;
    }

    /** Follow-ups that passed without a recommendation that holds. */
    int waited() {
        return waited;
    }

    /**
     * Follow-ups in a row that recommendations asked for and that found nothing new. The first is
     * not counted: when a copy is caught up is an estimate, and may be short by little.
     */
    int repeated() {
        return Math.max(0, fruitless - 1);
    }

    /**
     * Begins a rebalance with the copies that are caught up now. With other processes than before
     * counting starts again; a copy that is caught up for the first time is news.
     */
    void begin(final Map<ProcessId, ? extends Collection<TaskId>> caughtUp, final long nowMs) {
        final boolean anew = !processes.equals(caughtUp.keySet());
        if (anew) {
            processes = Set.copyOf(caughtUp.keySet());
            ready.clear();
            numbers.clear();
            waited = 0;
            fruitless = 0;
            askedMs = null;
            countedMs = nowMs - patience.followUpMs;
        }
        if (learn(caughtUp)) {
            fruitless = 0;
        } else if (!anew && askedMs != null && nowMs >= askedMs) {
            fruitless += fruitless < Integer.MAX_VALUE ? 1 : 0;
        }
    }

    /** Counts a rebalance by its outcome. */
    void count(final Outcome outcome, final long nowMs) {
        count(outcome.decisionId != null, outcome.followUpMs, nowMs);
    }

    void count(final boolean followed, final Long followUpMs, final long nowMs) {
        final boolean due = 2 * (nowMs - countedMs) >= patience.followUpMs;
        if (followed) {
            waited = 0;
        } else if (due && waited < patience.followUps) {
            waited++;
        }
        countedMs = due ? nowMs : countedMs;
        askedMs = followed && followUpMs != null ? nowMs + followUpMs / 2 : null;
    }

    private int number(final TaskId task) {
        final Integer known = numbers.putIfAbsent(task, numbers.size());
        return known == null ? numbers.size() - 1 : known;
    }

    private boolean learn(final Map<ProcessId, ? extends Collection<TaskId>> caughtUp) {
        boolean news = false;
        for (final Map.Entry<ProcessId, ? extends Collection<TaskId>> entry
            : caughtUp.entrySet()) {
            final BitSet known = ready.computeIfAbsent(entry.getKey(), any -> new BitSet());
            for (final TaskId task : entry.getValue()) {
                final int number = number(task);
                news |= !known.get(number);
                known.set(number);
            }
        }
        return news;
    }
}

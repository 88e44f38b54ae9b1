package caughtup;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.SortedMap;
import java.util.SortedSet;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.ProcessId;

/**
 * What is done without caughtup, once no recommendation came for long enough.
 *
 * <p>From where everything is, tasks go one by one from the most to the least loaded process until
 * none would gain, first those that the destination rather than others has. A task with state is
 * served where it is until its destination, a warm-up until then, is caught up. Kafka's own
 * HighAvailabilityTaskAssignor cannot be called through the public API, and its public
 * StickyTaskAssignor hands tasks to processes that have none of their state.
 */
final class Balance {
    /** Greater lags are alike: so differences of two don't overflow. */
    private static final long MOST = 1L << 61;

    private final Application application;
    private final Placement placement;
    private final Map<TaskId, List<ProcessId>> nearest = new HashMap<>();
    /** The tasks of a process in the order in which a destination should take them. */
    private final Map<ProcessId, Map<ProcessId, Queue<TaskId>>> queues = new HashMap<>();
    private int waiting;

    private Balance(final Application application) {
        this.application = application;
        this.placement = new Placement(application);
    }

    /** A balanced placement, or a step towards it. */
    static final class Step {
        final Placement placement;
        /** How many tasks wait for their destination, whether it warms up yet or not. */
        final int waiting;

        Step(final Placement placement, final int waiting) {
            this.placement = placement;
            this.waiting = waiting;
        }
    }

    static Step step(final Application application) {
        final Balance balance = new Balance(application);
        balance.place();
        return new Step(balance.placement, balance.waiting);
    }

    private void place() {
        placement.keepActives();
        final SortedMap<TaskId, ProcessId> target = new TreeMap<>(placement.active);
        final Map<ProcessId, Integer> loads =
            Placement.loads(target, task -> application.tasks.get(task));
        level(target, loads, true);
        final List<TaskId> warming = handOver(target);
        level(placement.active, Placement.loads(placement.active, task -> true), false);
        keepStandbys();
        addStandbys();
        warmUp(warming, target);
    }

    /** Moves tasks with state, or those without, until the most loaded has none to spare. */
    private void level(
        final SortedMap<TaskId, ProcessId> active, final Map<ProcessId, Integer> loads,
        final boolean stateful) {
        queues.clear();
        final Map<ProcessId, SortedSet<TaskId>> movable = new HashMap<>();
        application.clients.keySet().forEach(process -> movable.put(process, new TreeSet<>()));
        active.forEach((task, process) -> {
            if (application.tasks.get(task) == stateful) {
                movable.get(process).add(task);
            }
        });
        while (true) {
            final SortedSet<ProcessId> sources = new TreeSet<>(application.clients.keySet());
            sources.removeIf(process -> movable.get(process).isEmpty());
            if (sources.isEmpty()) {
                return;
            }
            final ProcessId source =
                Placement.least(sources, placement.byLoad(loads, 0).reversed());
            final ProcessId destination =
                Placement.least(application.clients.keySet(), placement.byLoad(loads, 1));
            final long before = (long) loads.getOrDefault(source, 0)
                * application.clients.get(destination).capacity;
            final long after = (long) (loads.getOrDefault(destination, 0) + 1)
                * application.clients.get(source).capacity;
            if (before <= after) {
                return;
            }
            final TaskId moved = next(movable.get(source), source, destination);
            movable.get(source).remove(moved);
            movable.get(destination).add(moved);
            active.put(moved, destination);
            loads.merge(source, -1, Integer::sum);
            loads.merge(destination, 1, Integer::sum);
        }
    }

    private long rank(final ProcessId process, final TaskId task) {
        return application.tasks.get(task) ? application.clients.get(process).rank(task) : 0;
    }

    /** Picks the task for which the destination lags least, compared with other processes. */
    private TaskId next(
        final SortedSet<TaskId> movable, final ProcessId source, final ProcessId destination) {
        final Queue<TaskId> queue = queues.computeIfAbsent(source, any -> new HashMap<>())
            .computeIfAbsent(destination, any -> {
                final List<TaskId> sorted = new ArrayList<>(movable);
                sorted.sort(Comparator
                    .<TaskId>comparingLong(task -> Math.min(MOST, rank(destination, task))
                        - Math.min(MOST, elsewhere(task, source, destination)))
                    .thenComparingLong(task -> rank(destination, task)));
                return new ArrayDeque<>(sorted);
            });
        // Others may have taken some since it was sorted. Nothing was added: who receives had the
        // least load with one more, so that it is never a source in the same pass.
        while (!movable.contains(queue.element())) {
            queue.remove();
        }
        return queue.remove();
    }

    /** The smallest rank of other processes: who has more of a task should be left to take it. */
    private long elsewhere(
        final TaskId task, final ProcessId source, final ProcessId destination) {
        for (final ProcessId process : nearest.computeIfAbsent(task, this::nearest)) {
            if (!process.equals(source) && !process.equals(destination)) {
                return rank(process, task);
            }
        }
        return Long.MAX_VALUE;
    }

    /** The three processes that are nearest: one of them is neither source nor destination. */
    private List<ProcessId> nearest(final TaskId task) {
        final SortedSet<ProcessId> left = new TreeSet<>(application.clients.keySet());
        final List<ProcessId> found = new ArrayList<>();
        while (found.size() < 3 && !left.isEmpty()) {
            final ProcessId next = Placement.least(left, placement.byRank(task));
            found.add(next);
            left.remove(next);
        }
        return found;
    }

    /** Moves what may move now, and gives what has to warm up first, the nearest first. */
    private List<TaskId> handOver(final SortedMap<TaskId, ProcessId> target) {
        final List<TaskId> warming = new ArrayList<>();
        target.forEach((task, destination) -> {
            final ProcessId owner = placement.active.get(task);
            if (destination.equals(owner)) {
                return;
            }
            final boolean nowhere = application.owners(task).isEmpty();
            if (application.caughtUp(destination, task)
                || nowhere && application.mayRun(destination, task)) {
                placement.active.put(task, destination);
            } else {
                warming.add(task);
            }
        });
        warming.sort(Comparator.comparingLong(task -> rank(target.get(task), task)));
        waiting = warming.size();
        return warming;
    }

    /** Keeps standbys there are; who hands a task over has its state and is one of them. */
    private void keepStandbys() {
        for (final TaskId task : application.tasks.keySet()) {
            final SortedSet<ProcessId> any = new TreeSet<>(application.holders(task));
            any.addAll(application.owners(task));
            any.remove(placement.active.get(task));
            final List<ProcessId> holders = new ArrayList<>(any);
            holders.sort(placement.byRank(task));
            if (application.tasks.get(task)) {
                holders.stream().limit(application.configs.numStandbyReplicas())
                    .forEach(process -> placement.standby.get(process).add(task));
            }
        }
    }

    /** Builds the standbys that are missing, where most state is, else where least load is. */
    private void addStandbys() {
        final Map<ProcessId, Integer> copies = Placement.loads(placement.active, task -> true);
        placement.standby.forEach(
            (process, tasks) -> copies.merge(process, tasks.size(), Integer::sum));
        application.tasks.forEach((task, stateful) -> {
            final int wanted = stateful ? application.configs.numStandbyReplicas() : 0;
            for (long has = wanted == 0 ? 0 : standbys(task); has < wanted; has++) {
                final SortedSet<ProcessId> free = new TreeSet<>(application.clients.keySet());
                free.removeIf(process -> holds(process, task));
                if (free.isEmpty()) {
                    return;
                }
                final ProcessId chosen = Placement.least(
                    free, placement.byRank(task).thenComparing(placement.byLoad(copies, 0)));
                placement.standby.get(chosen).add(task);
                copies.merge(chosen, 1, Integer::sum);
            }
        });
    }

    private void warmUp(final List<TaskId> warming, final SortedMap<TaskId, ProcessId> target) {
        int budget = application.configs.maxWarmupReplicas();
        for (final TaskId task : warming) {
            if (budget > 0 && placement.standby.get(target.get(task)).add(task)) {
                budget--;
            }
        }
    }

    private long standbys(final TaskId task) {
        return placement.standby.values().stream().filter(tasks -> tasks.contains(task)).count();
    }

    private boolean holds(final ProcessId process, final TaskId task) {
        return process.equals(placement.active.get(task))
            || placement.standby.get(process).contains(task);
    }
}

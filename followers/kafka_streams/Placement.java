package caughtup;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.SortedSet;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Predicate;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.ProcessId;

/**
 * Where tasks are put: each active once, standbys beside it, every process there.
 *
 * <p>Loads are per thread. They are compared as fractions, without rounding.
 */
final class Placement {
    final Application application;
    final SortedMap<TaskId, ProcessId> active = new TreeMap<>();
    final SortedMap<ProcessId, SortedSet<TaskId>> standby = new TreeMap<>();

    Placement(final Application application) {
        this.application = application;
        application.clients.keySet().forEach(process -> standby.put(process, new TreeSet<>()));
    }

    /**
     * Everything where it is. A task that is nowhere goes to the least loaded process that is
     * caught up, or, if none is, to the one that lags least. Standbys stay as far as the configs
     * have room for them, and as many warm-ups as there may be, those of the least loaded
     * processes first; nothing new is built, so a copy that is left over with nothing in it
     * doesn't stay, unless its process has so few tasks that the copy was just begun for it to
     * take one over.
     */
    static Placement inPlace(final Application application) {
        final Placement placement = new Placement(application);
        placement.keepActives();
        placement.keepStandbys();
        return placement;
    }

    void keepActives() {
        final Map<ProcessId, Integer> loads = new HashMap<>();
        final List<TaskId> nowhere = new ArrayList<>();
        for (final TaskId task : application.tasks.keySet()) {
            final List<ProcessId> owners = application.owners(task);
            if (owners.isEmpty()) {
                nowhere.add(task);
                continue;
            }
            // Two can say so after a session timed out; the one that is further has it.
            final ProcessId owner = least(owners, byRank(task));
            active.put(task, owner);
            loads.merge(owner, 1, Integer::sum);
        }
        for (final TaskId task : nowhere) {
            final SortedSet<ProcessId> able = new TreeSet<>(application.clients.keySet());
            able.removeIf(process -> !application.mayRun(process, task));
            final ProcessId owner = least(able, byLoad(loads, 0));
            active.put(task, owner);
            loads.merge(owner, 1, Integer::sum);
        }
    }

    /** Keeps standbys there are, at most num.standby.replicas of each task and the warm-ups. */
    void keepStandbys() {
        final int standbys = application.configs.numStandbyReplicas();
        final List<Map.Entry<TaskId, ProcessId>> warmups = new ArrayList<>();
        final Map<ProcessId, Integer> loads = loads(active, task -> application.tasks.get(task));
        for (final TaskId task : application.tasks.keySet()) {
            final List<ProcessId> holders = new ArrayList<>(application.holders(task));
            holders.remove(active.get(task));
            holders.sort(byRank(task));
            final int kept = Math.min(standbys, holders.size());
            holders.subList(0, kept).forEach(process -> standby.get(process).add(task));
            holders.subList(kept, holders.size()).stream()
                .filter(process -> takesOver(process, active.get(task), loads)
                    || !application.isEmpty(process, task))
                .forEach(process -> warmups.add(Map.entry(task, process)));
        }
        // A former owner's copy is caught up and left over: copies come first that are built where
        // there are few tasks. Stable: of equally near ones the smaller task and process.
        final Comparator<Map.Entry<TaskId, ProcessId>> leastLoaded =
            Comparator.comparing(Map.Entry::getValue, byLoad(loads, 0));
        warmups.sort(leastLoaded.thenComparingLong(one ->
            application.clients.get(one.getValue()).rank(one.getKey())));
        warmups.stream().limit(application.configs.maxWarmupReplicas())
            .forEach(one -> standby.get(one.getValue()).add(one.getKey()));
    }

    /** Whether a process with a task more has no more for each thread than the task's owner has. */
    private boolean takesOver(
        final ProcessId process, final ProcessId owner, final Map<ProcessId, Integer> loads
    ) {
        return (loads.getOrDefault(process, 0) + 1L) * application.clients.get(owner).capacity
            <= (long) loads.getOrDefault(owner, 0) * application.clients.get(process).capacity;
    }

    /** The copies beyond num.standby.replicas of each task: warm-ups, whoever calls them so. */
    int extraCopies() {
        final int standbys = application.configs.numStandbyReplicas();
        final Map<TaskId, Integer> counts = new HashMap<>();
        standby.values().forEach(
            tasks -> tasks.forEach(task -> counts.merge(task, 1, Integer::sum)));
        return counts.values().stream().mapToInt(count -> Math.max(0, count - standbys)).sum();
    }

    Comparator<ProcessId> byRank(final TaskId task) {
        return Comparator.comparingLong(process -> application.clients.get(process).rank(task));
    }

    /** Orders processes by what they would have per thread with that many more tasks. */
    Comparator<ProcessId> byLoad(final Map<ProcessId, Integer> loads, final int more) {
        return (one, other) -> Long.compare(
            (long) (loads.getOrDefault(one, 0) + more) * application.clients.get(other).capacity,
            (long) (loads.getOrDefault(other, 0) + more) * application.clients.get(one).capacity);
    }

    /** The least of some processes, of equal ones the smallest id. */
    static ProcessId least(final Iterable<ProcessId> processes, final Comparator<ProcessId> order) {
        ProcessId least = null;
        for (final ProcessId process : processes) {
            if (least == null || order.compare(process, least) < 0) {
                least = process;
            }
        }
        return least;
    }

    /** How many of the tasks for which something holds are active on each process. */
    static Map<ProcessId, Integer> loads(
        final Map<TaskId, ProcessId> active, final Predicate<TaskId> counted) {
        final Map<ProcessId, Integer> loads = new HashMap<>();
        active.forEach((task, process) -> {
            if (counted.test(task)) {
                loads.merge(process, 1, Integer::sum);
            }
        });
        return loads;
    }
}

package caughtup;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SortedSet;
import java.util.TreeSet;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.ProcessId;

/**
 * What no recommendation may do to an application, whoever wrote it: lose copies, heap up actives.
 *
 * <p>models/assignors/following/rules.py has the same; what caughtup recommends keeps to it.
 */
final class Bounds {
    private final Application application;
    private final Placement placement;
    private final int threads;

    private Bounds(final Application application, final Placement placement) {
        this.application = application;
        this.placement = placement;
        threads = application.clients.values().stream().mapToInt(client -> client.capacity).sum();
    }

    /** Returns the first bound that a placement of the application's tasks breaks, or null. */
    static Rules.Objection broken(final Application application, final Placement placement) {
        final Bounds bounds = new Bounds(application, placement);
        Rules.Objection broken = bounds.standbys();
        broken = broken != null ? broken : bounds.actives(true);
        return broken != null ? broken : bounds.actives(false);
    }

    /**
     * The most tasks that a process may be given: as many as it can have while no other process has more
     * than one for each thread more than anybody else, and one more, or two processes with all
     * they may have could never exchange tasks.
     */
    private long most(final ProcessId process, final long tasks) {
        final long capacity = application.clients.get(process).capacity;
        return capacity * (tasks + threads - capacity) / threads + 1;
    }

    private Rules.Objection standbys() {
        final int wanted = application.configs.numStandbyReplicas();
        final int least = Math.min(wanted, application.clients.size() - 1);
        final Map<TaskId, List<ProcessId>> copies = new HashMap<>();
        placement.standby.forEach((process, tasks) -> tasks.forEach(task ->
            copies.computeIfAbsent(task, any -> new ArrayList<>()).add(process)));
        for (final Map.Entry<TaskId, Boolean> entry : application.tasks.entrySet()) {
            final TaskId task = entry.getKey();
            final List<ProcessId> has = copies.getOrDefault(task, new ArrayList<>());
            if (!entry.getValue()) {
                continue;
            }
            if (has.size() < least) {
                return new Rules.Objection("too_few_standbys",
                    "task " + task + " has " + has.size() + " standbys");
            }
            has.add(placement.active.get(task));
            final long had = application.clients.keySet().stream()
                .filter(process -> had(process, task) && ready(process, task)).count();
            final long left = has.stream().filter(process -> ready(process, task)).count();
            if (left < Math.min(had, 1L + wanted)) {
                return new Rules.Objection("loses_standby",
                    "it drops a caught-up copy of task " + task);
            }
        }
        return null;
    }

    private boolean had(final ProcessId process, final TaskId task) {
        final Application.Client client = application.clients.get(process);
        return client.active.contains(task) || client.standby.contains(task);
    }

    /** Whether a copy is caught up; who ran a task is, even if its lag is unknown. */
    private boolean ready(final ProcessId process, final TaskId task) {
        final Application.Client client = application.clients.get(process);
        return application.caughtUp(process, task)
            || client.active.contains(task) && client.lag(task) == Application.UNKNOWN;
    }

    /** Bounds the actives of processes that are given any, with state or without. */
    private Rules.Objection actives(final boolean stateful) {
        final Map<ProcessId, Integer> counts =
            Placement.loads(placement.active, task -> application.tasks.get(task) == stateful);
        final long tasks = counts.values().stream().mapToInt(count -> count).sum();
        final SortedSet<ProcessId> room = new TreeSet<>(application.clients.keySet());
        room.removeIf(process -> counts.getOrDefault(process, 0) >= most(process, tasks));
        for (final ProcessId process : application.clients.keySet()) {
            final int count = counts.getOrDefault(process, 0);
            final long most = most(process, tasks);
            if (count <= most) {
                continue;
            }
            int given = 0;
            int needless = 0;
            for (final Map.Entry<TaskId, ProcessId> entry : placement.active.entrySet()) {
                final TaskId task = entry.getKey();
                if (entry.getValue().equals(process) && application.tasks.get(task) == stateful
                    && !application.clients.get(process).active.contains(task)) {
                    given++;
                    needless += couldBeElsewhere(room, task) ? 1 : 0;
                }
            }
            if (needless > 0 && count - (given - needless) > most) {
                return new Rules.Objection("too_many_actives",
                    "it gives " + process + " more actives than " + most + ": " + count);
            }
        }
        return null;
    }

    private boolean couldBeElsewhere(final SortedSet<ProcessId> room, final TaskId task) {
        return application.clients.keySet().stream().anyMatch(process ->
            (room.contains(process) || application.owners(task).contains(process))
                && application.mayRun(process, task));
    }
}

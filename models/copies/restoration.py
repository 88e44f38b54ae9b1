"""How a stream thread restores state: which copies wait, and how the others share its pace.

Each stream thread restores the changelogs of its tasks with one restore consumer. A standby (or
warm-up) isn't restored while an active of its thread restores. Actives depend on the version:

- Until Kafka 3.7, a thread ran none of its tasks before all of its actives were restored.
- Since 3.8, a state updater restores beside the thread (KIP-869), and each active runs as soon as
  its own stores are complete. Standbys still wait for the thread's actives: the updater pauses
  their changelogs until only standbys are left.

Source: DefaultStateUpdater, TaskManager.

The copies of a thread share what its consumer can restore. So a time left at a copy's own rate is
the longest; the likely one assumes that a copy that is done leaves its rate to the others. The own
rate stays the upper bound, because something other than the thread may be the limit.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from caughtup.models.copies.figures import CopyFigures
from caughtup.models.groups.generation import StreamsGeneration
from caughtup.models.histories.trend import Eta
from caughtup.models.ids import CopyKey, TaskId


def standbys_wait_for(actives: Mapping[TaskId, bool]) -> list[TaskId]:
    """Return the active tasks of a thread that its standbys wait for, sorted."""
    return sorted(task for task, restored in actives.items() if not restored)


def waiting_standbys(
    generation: StreamsGeneration, restoring: Collection[CopyKey]
) -> dict[CopyKey, tuple[TaskId, ...]]:
    """Return the restoring actives that each waiting standby or warm-up waits for.

    ``restoring``: the actives that aren't restored yet.
    """
    waiting: dict[CopyKey, tuple[TaskId, ...]] = {}
    for member in generation.members():
        if member.assignment is None:
            continue
        process = str(member.process)
        actives = {
            task: CopyKey(process, task) not in restoring for task in member.assignment.active
        }
        blockers = tuple(standbys_wait_for(actives))
        if blockers:
            waiting |= {CopyKey(process, task): blockers for task in member.assignment.standby}
    return waiting


def copies_by_thread(generation: StreamsGeneration) -> list[list[CopyKey]]:
    """Return the copies of each stream thread, actives first."""
    threads = []
    for member in generation.members():
        if member.assignment is not None:
            tasks = dict.fromkeys((*member.assignment.active, *sorted(member.assignment.standby)))
            process = str(member.process)
            threads.append([CopyKey(process, task) for task in tasks])
    return threads


def with_shared_pace(figures: Sequence[CopyFigures]) -> list[CopyFigures]:
    """Return the figures of one thread's copies with ETAs that assume a shared restore rate."""
    moving = [index for index, copy in enumerate(figures) if _moves(copy)]
    shared = list(figures)
    if len(moving) < 2:
        return shared
    likely = _arrivals([figures[index] for index in moving], earliest=False)
    earliest = _arrivals([figures[index] for index in moving], earliest=True)
    for place, index in enumerate(moving):
        copy, seconds = figures[index], likely[place]
        own = copy.eta
        if own is None or seconds >= own.seconds:
            continue
        shared[index] = copy._replace(
            eta=Eta(seconds, min(own.low, earliest[place], seconds), own.high),
            restored_before=sum(other < seconds for other in likely),
        )
    return shared


def _moves(copy: CopyFigures) -> bool:
    """Return whether a copy takes part in sharing: it isn't caught up, and moves."""
    if copy.eta is None or copy.eta.seconds == 0 or copy.estimated_lag is None:
        return False
    return copy.rate is not None and copy.rate > 0


def _arrivals(copies: Sequence[CopyFigures], *, earliest: bool) -> list[float]:
    """Return when each copy is caught up (s), by the likely or the earliest ETAs."""
    rates = [copy.rate or 0.0 for copy in copies]
    speeds = [0.0 if copy.closing is None else copy.closing.per_second for copy in copies]
    remaining = [_remaining(copy, earliest=earliest) for copy in copies]
    arrivals = [math.inf] * len(copies)
    restoring = set(range(len(copies)))
    now = 0.0
    while gaining := [(remaining[one] / speeds[one], one) for one in restoring if speeds[one] > 0]:
        seconds, first = min(gaining)
        now += seconds
        arrivals[first] = now
        restoring.discard(first)
        total = math.fsum(rates[one] for one in sorted(restoring))
        for one in restoring:
            remaining[one] = max(0.0, remaining[one] - speeds[one] * seconds)
            share = speeds[first] * rates[one] / total
            speeds[one] += share
            rates[one] += share
    return arrivals


def _remaining(copy: CopyFigures, *, earliest: bool) -> float:
    """Return by how many offsets a copy's lag has to shrink."""
    eta, closing = copy.eta, copy.closing
    if eta is not None and closing is not None and math.isfinite(eta.seconds):
        return closing.per_second * (eta.low if earliest else eta.seconds)
    return float(max(0, (copy.estimated_lag or 0) - copy.limit))

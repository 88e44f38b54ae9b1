"""The placement that the high availability assignor aims for, and the copies that wait for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from caughtup.models.assignment.client_state import RUNNING
from caughtup.models.assignment.decision import Decision
from caughtup.models.assignment.scenario import Scenario
from caughtup.models.ids import TaskId
from caughtup.models.learning.ranges import IntSpan


@dataclass(frozen=True, slots=True)
class Target:
    """The placement that an assignor aims for, regardless of lags, and the copies that wait for it.

    ``copies`` is the number of standbys. With an acceptable.recovery.lag from ``settled_from`` on,
    the target is the decision; below it, another decision may begin at each of ``cuts``.
    ``waiting`` are the lags, sorted, of copies that wait with a smaller acceptable lag than theirs,
    and ``waiting_actives`` those of actives.
    """

    decision: Decision
    copies: int
    settled_from: int
    cuts: tuple[int, ...]
    waiting: tuple[int, ...]
    waiting_actives: tuple[int, ...]


def target_of(scenario: Scenario, decision: Decision) -> Target:
    """Return a target with the lags of the copies that would wait.

    An active waits if another client lags less. So does a standby, but without effect if all
    clients that lag less have a copy anyway.
    """
    holders: dict[TaskId, list[tuple[int, bool]]] = {task: [] for task in scenario.stateful}
    by_process = {client.process_id: client.lags for client in scenario.clients}
    for process, given in decision.clients.items():
        for tasks, active in ((given.active, True), (given.standby, False)):
            for task in tasks:
                if task in holders:
                    holders[task].append((by_process[process][task], active))
    waiting: list[int] = []
    actives: list[int] = []
    cuts: set[int] = set()
    settled_from = 0
    for task, held in holders.items():
        lags = [client.lags[task] for client in scenario.clients]
        least = min(lags)
        late = [(lag, active) for lag, active in held if lag > least and lag != RUNNING]
        if not late:
            continue
        waiting += [lag for lag, _ in late]
        actives += [lag for lag, active in late if active]
        latest = max(lag for lag, _ in late)
        cuts.update(lag for lag in lags if 0 <= lag <= latest)
        elsewhere = list(lags)
        for lag, _ in held:
            elsewhere.remove(lag)
        moved = [lag for lag, active in late if active or (elsewhere and min(elsewhere) <= lag)]
        settled_from = max(settled_from, *moved, 0)
    return Target(
        decision,
        sum(len(given.standby) for given in decision.clients.values()),
        settled_from,
        tuple(sorted(cut for cut in cuts if cut < settled_from)),
        tuple(sorted(waiting)),
        tuple(sorted(actives)),
    )


def used_warm_ups(decision: Decision) -> int:
    """Return the number of a decision's warm-ups."""
    return sum(len(given.warmup) for given in decision.clients.values())


def lag_classes(target: Target, within: IntSpan) -> Sequence[IntSpan]:
    """Return a span of acceptable.recovery.lag, cut where another decision may begin."""
    bounds = [cut for cut in (*target.cuts, target.settled_from) if within.low < cut <= within.high]
    bounds = sorted({within.low, *bounds})
    return [
        IntSpan(low, high - 1)
        for low, high in zip(bounds, [*bounds[1:], within.high + 1], strict=True)
    ]

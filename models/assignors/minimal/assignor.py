"""The assignor of caughtup's recommendations: balance with the fewest new copies, in stages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from caughtup.models.assignment.decision import ClientDecision, Decision
from caughtup.models.assignment.scenario import Scenario
from caughtup.models.assignors.minimal.copies import ExistingCopies
from caughtup.models.assignors.minimal.explanation import explain_minimal
from caughtup.models.assignors.minimal.plan import Plan
from caughtup.models.assignors.minimal.staging import StagedAssignment, staged_plan
from caughtup.models.assignors.minimal.stateless import place_stateless
from caughtup.models.ids import ProcessId, TaskId


class CopyToBuild(NamedTuple):
    """A copy of a plan that does not exist yet, or isn't caught up.

    ``offsets`` are those to restore; None if the lag is unknown. ``new``: the client has no state
    of the task yet.
    """

    task: TaskId
    process_id: ProcessId
    active: bool
    offsets: int | None
    new: bool


def decide_minimal_movement(scenario: Scenario) -> Decision:
    """Decide what to assign now, on the way to balance with the fewest new copies of state.

    Like HighAvailabilityTaskAssignor: the numbers of actives per stream thread differ by at most
    one, each task has its standbys, at most max.warmup.replicas copies are built beyond those, and
    only a client that is caught up takes an active over, unless none is. Unlike it: copies stay
    where they are if they can. A probing rebalance is needed until everything is as planned; once
    every copy is caught up, the same decision is made again. Raises ScenarioError if racks count
    and the partitions of a task are missing.
    """
    copies = ExistingCopies(scenario)
    plan, now = staged_plan(scenario, copies)
    stateless = place_stateless(scenario, [own[0] for own in plan.clients])
    return Decision(
        probing_rebalance_needed=not now.settled,
        clients=_given(scenario, now, stateless),
        explain=lambda: explain_minimal(scenario, copies, plan, now, stateless),
    )


def remaining(scenario: Scenario) -> tuple[CopyToBuild, ...]:
    """Return the copies that are left to build until a group is balanced, in TaskId order.

    Copies that are being built are included, but are not ``new``.
    """
    copies = ExistingCopies(scenario)
    plan, _ = staged_plan(scenario, copies)
    return tuple(_remaining(scenario, copies, plan))


def _remaining(scenario: Scenario, copies: ExistingCopies, plan: Plan) -> Iterable[CopyToBuild]:
    for number, task in enumerate(scenario.stateful):
        for place in sorted(plan.clients[number]):
            lag = copies.lags[place][number]
            if copies.caught_up(number, place) and place in copies.holders[number]:
                continue
            yield CopyToBuild(
                task,
                scenario.clients[place].process_id,
                place == plan.clients[number][0],
                max(lag, 0) if lag >= -2 else None,
                place not in copies.holders[number],
            )


def _given(
    scenario: Scenario, now: StagedAssignment, stateless: Sequence[int]
) -> dict[ProcessId, ClientDecision]:
    """Return each client's tasks, and which of them are warm-ups, in TaskId order."""
    clients = range(len(scenario.clients))
    actives: list[list[TaskId]] = [[] for _ in clients]
    standbys: list[list[TaskId]] = [[] for _ in clients]
    warm_ups: list[list[TaskId]] = [[] for _ in clients]
    for task, active, others in zip(scenario.stateful, now.actives, now.standbys, strict=True):
        actives[active].append(task)
        for other in others:
            standbys[other].append(task)
    for task, place in zip(scenario.stateless, stateless, strict=True):
        actives[place].append(task)
    for one in now.replacements:
        if one.warm_up is not None:
            warm_ups[one.client].append(scenario.stateful[one.task])
    if scenario.stateless:
        for own in actives:
            own.sort()
    return {
        client.process_id: ClientDecision(
            tuple(actives[place]), tuple(standbys[place]), tuple(sorted(warm_ups[place]))
        )
        for place, client in enumerate(scenario.clients)
    }

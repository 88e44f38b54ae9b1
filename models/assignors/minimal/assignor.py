"""Balance with the fewest new copies of state, staged through warm-ups: what caughtup recommends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from caughtup.models.assignment.decision import ClientDecision, Decision
from caughtup.models.assignment.scenario import Scenario
from caughtup.models.assignors.minimal.copies import Copies
from caughtup.models.assignors.minimal.explanation import explain_minimal
from caughtup.models.assignors.minimal.plan import Plan
from caughtup.models.assignors.minimal.settling import staged_plan
from caughtup.models.assignors.minimal.staging import Stage
from caughtup.models.assignors.minimal.stateless import place_stateless
from caughtup.models.ids import ProcessId, TaskId


class CopyToBuild(NamedTuple):
    """A copy that a plan has where there is none, or none that is caught up.

    ``offsets`` are to be restored, None where the lag is unknown. ``new``: the client
    has nothing of it yet.
    """

    task: TaskId
    process_id: ProcessId
    active: bool
    offsets: int | None
    new: bool


def decide_minimal_movement(scenario: Scenario) -> Decision:
    """Decide what to assign now, on the way to balance with the fewest new copies of state.

    Like HighAvailabilityTaskAssignor: actives are within one of each other for each stream
    thread, each task has its standbys, at most max.warmup.replicas copies are built beyond those,
    and a client that is caught up takes an active over, unless nobody is. Unlike it: what can
    stay where it is stays there. A probing rebalance is needed until all is as planned; with
    every copy caught up then, the same is decided again. Raises ScenarioError where racks count
    and what a task reads is missing.
    """
    copies = Copies(scenario)
    plan, now = staged_plan(scenario, copies)
    stateless = place_stateless(scenario, [own[0] for own in plan.clients])
    return Decision(
        probing_rebalance_needed=not now.settled,
        clients=_given(scenario, now, stateless),
        explain=lambda: explain_minimal(scenario, copies, plan, now, stateless),
    )


def remaining(scenario: Scenario) -> tuple[CopyToBuild, ...]:
    """List the copies that are left to build for a group to be balanced, in TaskId order.

    Those that are being built already are among them, but aren't new.
    """
    copies = Copies(scenario)
    plan, _ = staged_plan(scenario, copies)
    return tuple(_remaining(scenario, copies, plan))


def _remaining(scenario: Scenario, copies: Copies, plan: Plan) -> Iterable[CopyToBuild]:
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
    scenario: Scenario, now: Stage, stateless: Sequence[int]
) -> dict[ProcessId, ClientDecision]:
    """Write down what each client has, and which of it are warm-ups, in TaskId order."""
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

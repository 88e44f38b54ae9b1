"""The assignor of caughtup's recommendations: balance with the fewest new copies, in stages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heapify, heapreplace
from typing import NamedTuple

from caughtup.models.assignment.decision import ClientDecision, Decision
from caughtup.models.assignment.scenario import Scenario
from caughtup.models.assignors.minimal.copies import NO_CLIENT, ExistingCopies
from caughtup.models.assignors.minimal.explanation import explain_minimal
from caughtup.models.assignors.minimal.plan import Plan
from caughtup.models.assignors.minimal.racks import exchange, traffic_of
from caughtup.models.assignors.minimal.staging import StagedAssignment, staged_plan
from caughtup.models.ids import ProcessId, TaskId


def place_stateless(scenario: Scenario, actives: Sequence[int]) -> list[int]:
    """Return the client of each stateless task, as a place.

    ``actives`` are the planned clients of the stateful tasks. Tasks without an owner go to the
    least loaded client; then single tasks move while that makes two clients more alike. Tasks that
    can't stay are exchanged where that reduces traffic across racks.
    """
    tasks, capacities = scenario.stateless, [client.capacity for client in scenario.clients]
    if not tasks:
        return []
    owners = _owners(scenario)
    counts = [0] * len(capacities)
    for client in (*actives, *(owner for owner in owners if owner != NO_CLIENT)):
        counts[client] += 1
    places = _place_unowned(owners, counts, capacities)
    _even_out(places, counts, capacities)
    if scenario.racks is None:
        return places
    reads = traffic_of(scenario.racks, tasks)
    everybody = range(len(capacities))
    free = [
        (owner,) if owner == place else everybody
        for owner, place in zip(owners, places, strict=True)
    ]
    return exchange(places, reads, free, places)


def _owners(scenario: Scenario) -> list[int]:
    owner_of: dict[TaskId, int] = {}
    for place, client in enumerate(scenario.clients):
        for task in client.previous_active:
            owner_of.setdefault(task, place)
    return [owner_of.get(task, NO_CLIENT) for task in scenario.stateless]


def _place_unowned(
    owners: Sequence[int], counts: list[int], capacities: Sequence[int]
) -> list[int]:
    """Assign each task without an owner to the client that will have the least load."""
    queue = [((n + 1) / capacities[one], one) for one, n in enumerate(counts)]
    heapify(queue)
    places = list(owners)
    for task, owner in enumerate(owners):
        if owner == NO_CLIENT:
            client = places[task] = queue[0][1]
            counts[client] += 1
            heapreplace(queue, ((counts[client] + 1) / capacities[client], client))
    return places


def _even_out(places: list[int], counts: list[int], capacities: Sequence[int]) -> None:
    """Move tasks, the last ones first, while that makes two clients more alike."""
    own: list[list[int]] = [[] for _ in counts]
    for task, place in enumerate(places):
        own[place].append(task)

    def lowered(one: int) -> tuple[float, int]:
        return (counts[one] - 1) / capacities[one], -one

    def raised(one: int) -> tuple[float, int]:
        return (counts[one] + 1) / capacities[one], one

    while sources := [one for one in range(len(counts)) if own[one]]:
        source = max(sources, key=lowered)
        destination = min(range(len(counts)), key=raised)
        if source == destination or lowered(source)[0] < raised(destination)[0]:
            return
        task = own[source].pop()
        own[destination].append(task)
        places[task] = destination
        counts[source] -= 1
        counts[destination] += 1


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
        clients=_tasks_by_client(scenario, now, stateless),
        explain=lambda: explain_minimal(scenario, copies, plan, now, stateless),
    )


def remaining(scenario: Scenario) -> tuple[CopyToBuild, ...]:
    """Return the copies that must be built until a group is balanced, in TaskId order.

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


def _tasks_by_client(
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

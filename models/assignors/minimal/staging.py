"""The part of a plan that is done in this rebalance, and the copies that are built before the rest.

Where tags and balance conflict, the plan of a group with a warm-up may differ from the plan that
began the warm-up, and the plan after that may be the first again: copies would be built for ever.
``staged_plan`` prevents that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from caughtup.models.assignment.client_state import most_actives
from caughtup.models.assignment.scenario import Scenario
from caughtup.models.assignors.minimal.copies import NO_CLIENT, ExistingCopies
from caughtup.models.assignors.minimal.plan import Plan, find_plan, spread_of, worth_in

#: The number of rebalances within which a plan has to lead to a better assignment.
_REBALANCES = 8


class Replacement(NamedTuple):
    """A copy that belongs on ``client``, which isn't caught up, and its stand-in.

    ``active``: whether the copy is to be the active. ``warm_up`` numbers the warm-up, from 1; None
    if none is left for it.
    """

    task: int
    stand_in: int
    client: int
    active: bool
    warm_up: int | None


@dataclass(slots=True)
class StagedAssignment:
    """What every client gets now: each task's active and standbys, warm-ups included.

    ``swaps`` are the tasks whose active waits for a client that has, or gets, its standby.
    ``improves_later``: once other copies are gone, a rebalance finds a better assignment.
    """

    actives: list[int]
    standbys: list[list[int]]
    replacements: list[Replacement] = field(default_factory=list)
    swaps: list[int] = field(default_factory=list)
    improves_later: bool = False

    @property
    def settled(self) -> bool:
        """Whether everything is assigned as planned, and stays so."""
        return not (self.replacements or self.swaps or self.improves_later)


class _QueuedReplacement(NamedTuple):
    """A replacement that waits for a warm-up; the least of them comes first.

    A copy that is being built goes on: it is the one with the least to restore. A copy that is
    caught up and waits for room comes last, because the other copies make that room.
    """

    waits: bool
    new: bool
    distance: int
    task: int
    client: int
    stand_in: int


def staged_plan(scenario: Scenario, copies: ExistingCopies) -> tuple[Plan, StagedAssignment]:
    """Return where the copies belong, and the part of it that is done now.

    If tags count, the present copies stay unless a few rebalances lead to a better assignment, by
    the plan or by the one that the next rebalance would find with these copies only. Each such step
    improves the group, so that it comes to rest. Raises ScenarioError as ``find_plan`` does.
    """
    plan = find_plan(scenario, copies)
    now = _staged(scenario, copies, plan)
    spread = spread_of(scenario)
    if not spread.matters or not plan.clients:
        return plan, now
    kept = copies.trimmed(len(plan.clients[0]), spread.values)
    if kept is None or kept == plan.clients or _improves(scenario, copies, now, kept):
        return plan, now
    there = copies.carried_out(kept)
    later = find_plan(scenario, there)
    now = _staged(scenario, copies, later)
    if later.clients == kept or _improves(scenario, copies, now, kept):
        return later, now
    now = _staged(scenario, copies, Plan(kept))
    now.improves_later = _improves(scenario, there, _staged(scenario, there, later), kept)
    return Plan(kept), now


def _improves(
    scenario: Scenario, copies: ExistingCopies, now: StagedAssignment, kept: list[list[int]]
) -> bool:
    """Return whether a few rebalances from this stage lead to a better assignment than ``kept``."""
    worth, values = worth_in(scenario), spread_of(scenario).values
    bar, size = worth(kept), len(kept[0])
    before: list[list[int]] = []
    for _ in range(_REBALANCES):
        assigned = [[active, *own] for active, own in zip(now.actives, now.standbys, strict=True)]
        if assigned == before:
            return False
        before = assigned
        copies = copies.carried_out(assigned)
        there = copies.trimmed(size, values)
        if there is not None and worth(there) < bar:
            return True
        now = _staged(scenario, copies, find_plan(scenario, copies))
    return False


def _staged(scenario: Scenario, copies: ExistingCopies, plan: Plan) -> StagedAssignment:
    capacities = [client.capacity for client in scenario.clients]
    return stage(copies, plan, capacities, scenario.configs.max_warmup_replicas)


def stage(
    copies: ExistingCopies, plan: Plan, capacities: Sequence[int], budget: int
) -> StagedAssignment:
    """Assign what can be assigned now, with at most ``budget`` copies beyond what is configured.

    If a task's active isn't caught up where it belongs, or has no room there yet, a caught-up
    client runs the task, or else the one that lags least. That copy and existing standbys stay
    until the copies that replace them are caught up. A copy that a task lacks is built at once, and
    is no extra copy.
    """
    servers = choose_servers(copies, plan, capacities)
    result = StagedAssignment(servers, [own[1:] for own in plan.clients])
    queued: list[_QueuedReplacement] = []
    for task in _unsettled(copies, plan, servers):
        queued += _stage_task(copies, plan, task, result)
    for turn, replacement in enumerate(sorted(queued), 1):
        granted = turn <= budget
        if not granted:
            result.standbys[replacement.task].remove(replacement.client)
        active = plan.clients[replacement.task][0] == replacement.client
        number = turn if granted else None
        result.replacements.append(
            Replacement(replacement.task, replacement.stand_in, replacement.client, active, number)
        )
    return result


def _unsettled(copies: ExistingCopies, plan: Plan, servers: Sequence[int]) -> list[int]:
    """Return the tasks that can't be assigned just as planned."""
    tasks = []
    for task, (own, holders) in enumerate(zip(plan.clients, copies.holders, strict=True)):
        if not holders and servers[task] == own[0]:
            continue  # no client has state of it, so its planned clients begin at once
        if (
            servers[task] != own[0]
            or len(holders) > len(own)
            or not copies.caught_up(task, own[0])
            or any(one not in own for one in holders)
        ):
            tasks.append(task)
    return tasks


def _stage_task(
    copies: ExistingCopies, plan: Plan, task: int, result: StagedAssignment
) -> list[_QueuedReplacement]:
    """Assign one task; return its replacements that wait for a warm-up, as if each were granted."""
    belongs = plan.clients[task]
    active, server = belongs[0], result.actives[task]
    building = [one for one in belongs if one != server and not copies.caught_up(task, one)]
    building.sort(key=lambda one: (task not in copies.roles[one], copies.distance(task, one), one))
    if server not in belongs and not building:
        building = [active]
    kept = _stand_ins(copies, task, belongs, server, building)
    assigned = [one for one in belongs if one != server]
    result.standbys[task] = assigned + [one for one in kept if one != server]
    # Missing copies are built at once; each copy with a stand-in takes a warm-up.
    waiting = building[len(building) - len(kept) :]
    waiting.sort(key=lambda one: one != active)
    if server != active and active not in waiting:
        result.swaps.append(task)
    return [
        _QueuedReplacement(
            copies.caught_up(task, client),
            task not in copies.roles[client],
            copies.distance(task, client),
            task,
            client,
            stand_in,
        )
        for client, stand_in in zip(waiting, kept, strict=True)
    ]


def _stand_ins(
    copies: ExistingCopies, task: int, belongs: list[int], server: int, building: list[int]
) -> list[int]:
    """Choose the copies that stay although they belong elsewhere, one for each that is built.

    A copy that lags more than its replacement is of no use.
    """
    kept = [] if server in belongs else [server]
    had = [one for one in copies.holders[task] if task in copies.roles[one]]
    others = [one for one in had if one not in belongs and one != server]
    others.sort(key=lambda one: (copies.distance(task, one), one))
    farthest = sorted((copies.distance(task, one) for one in building), reverse=True)
    for other, distance in zip(others, farthest[len(kept) :], strict=False):
        if copies.distance(task, other) >= distance:
            break
        kept.append(other)
    return kept


def choose_servers(copies: ExistingCopies, plan: Plan, capacities: Sequence[int]) -> list[int]:
    """Return the client that runs each task now, as a place.

    It is the planned client if that is caught up; else the owner, else another caught-up client,
    else the one that lags least. A client that would have more actives than ``most_actives`` gets
    fewer: owners keep theirs until there is room.
    """
    servers = [_server(copies, task, belongs) for task, belongs in enumerate(plan.clients)]
    _make_room(copies, plan, capacities, servers)
    return servers


def _server(copies: ExistingCopies, task: int, belongs: Sequence[int]) -> int:
    active, owner = belongs[0], copies.owner[task]
    if copies.caught_up(task, active):
        return active
    if owner != NO_CLIENT and copies.caught_up(task, owner):
        return owner
    holders = copies.holders[task]
    ready = [one for one in holders if copies.caught_up(task, one)]
    if ready:
        return min(ready, key=lambda one: (one not in belongs, one))
    having = {active, *holders}
    return min(
        range(len(copies.lags)),
        key=lambda one: (copies.distance(task, one), one != owner, one not in having, one),
    )


def _make_room(
    copies: ExistingCopies, plan: Plan, capacities: Sequence[int], servers: list[int]
) -> None:
    """Move surplus tasks away from clients that gain any, if other clients can run them."""
    threads = sum(capacities)
    most = [most_actives(capacity, len(servers), threads) for capacity in capacities]
    counts = [0] * len(capacities)
    for server in servers:
        counts[server] += 1
    changed = True
    while changed:
        changed = False
        for client, limit in enumerate(most):
            if counts[client] <= limit:
                continue
            moves = [
                (instead not in plan.clients[task], task)
                for task, server in enumerate(servers)
                if server == client != copies.owner[task]
                and (instead := _substitute(copies, task, client, counts, most)) != NO_CLIENT
            ]
            # Clients that keep a copy anyway come first: any other needs one more warm-up.
            for _, task in sorted(moves):
                instead = _substitute(copies, task, client, counts, most)
                if counts[client] > limit and instead != NO_CLIENT:
                    servers[task] = instead
                    counts[client] -= 1
                    counts[instead] += 1
                    changed = True


def _substitute(
    copies: ExistingCopies, task: int, client: int, counts: Sequence[int], most: Sequence[int]
) -> int:
    """Return a client that can run the task as well, its owner or one with room, or NO_CLIENT."""
    owner = copies.owner[task]
    if owner != NO_CLIENT and copies.caught_up(task, owner):
        return owner
    least = copies.distance(task, client)
    return next(
        (
            one
            for one in range(len(counts))
            if one != client and counts[one] < most[one] and copies.distance(task, one) <= least
        ),
        NO_CLIENT,
    )

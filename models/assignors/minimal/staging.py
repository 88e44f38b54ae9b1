"""What of a plan can be done in this rebalance, and what is built before the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from caughtup.models.assignors.minimal.copies import Copies
from caughtup.models.assignors.minimal.plan import Plan
from caughtup.models.assignors.minimal.servers import choose_servers


class Replacement(NamedTuple):
    """A copy that belongs on ``client`` and isn't caught up there, and who stands in for it.

    ``active``: whether it is to be the active. ``warm_up`` numbers the warm-up, from 1; None
    while none is left for it.
    """

    task: int
    stand_in: int
    client: int
    active: bool
    warm_up: int | None


@dataclass(slots=True)
class Stage:
    """What every client gets now: each task's active and standbys, warm-ups among these.

    ``swaps`` are the tasks whose active waits for a client that has, or gets, its standby.
    """

    actives: list[int]
    standbys: list[list[int]]
    replacements: list[Replacement] = field(default_factory=list)
    swaps: list[int] = field(default_factory=list)

    @property
    def settled(self) -> bool:
        """Return whether everything is assigned where the plan has it."""
        return not self.replacements and not self.swaps


class _QueuedReplacement(NamedTuple):
    """A replacement that waits for a warm-up; the least of them comes first.

    One that is being built goes on, and then it is the one with the least to restore. One that is
    caught up and waits for room comes last: what is built makes that room.
    """

    waits: bool
    new: bool
    distance: int
    task: int
    client: int
    stand_in: int


def stage(copies: Copies, plan: Plan, capacities: Sequence[int], budget: int) -> Stage:
    """Assign what can be assigned now, with at most ``budget`` copies beyond what is configured.

    A task whose active isn't caught up where it belongs, or has no room there yet, is served by
    a client that is; by the one that lags least if none is. It and any standby that exists stay
    until the copies that take their places are caught up. Where a task lacks a copy, a new one is
    no extra copy.
    """
    servers = choose_servers(copies, plan, capacities)
    result = Stage(servers, [own[1:] for own in plan.clients])
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


def _unsettled(copies: Copies, plan: Plan, servers: Sequence[int]) -> list[int]:
    """List the tasks that can't simply be assigned as planned."""
    tasks = []
    for task, (own, holders) in enumerate(zip(plan.clients, copies.holders, strict=True)):
        if not holders and servers[task] == own[0]:
            continue  # everybody has nothing of it: whoever is to have it begins at once
        if (
            servers[task] != own[0]
            or len(holders) > len(own)
            or not copies.caught_up(task, own[0])
            or any(one not in own for one in holders)
        ):
            tasks.append(task)
    return tasks


def _stage_task(copies: Copies, plan: Plan, task: int, result: Stage) -> list[_QueuedReplacement]:
    """Assign one task, and return the replacements that wait for a warm-up, granted so far."""
    belongs = plan.clients[task]
    active, server = belongs[0], result.actives[task]
    building = [one for one in belongs if one != server and not copies.caught_up(task, one)]
    building.sort(key=lambda one: (task not in copies.roles[one], copies.distance(task, one), one))
    if server not in belongs and not building:
        building = [active]
    kept = _stand_ins(copies, task, belongs, server, building)
    assigned = [one for one in belongs if one != server]
    result.standbys[task] = assigned + [one for one in kept if one != server]
    # What is missing is built at once; what has a stand-in takes a warm-up each.
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
    copies: Copies, task: int, belongs: list[int], server: int, building: list[int]
) -> list[int]:
    """Choose the copies that stay although they belong elsewhere, one for each that is built.

    A copy that lags more than the one that takes its place is of no use.
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

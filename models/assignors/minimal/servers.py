"""Who runs each task now, while some aren't caught up where they belong."""

from __future__ import annotations

from collections.abc import Sequence

from caughtup.models.assignment.active_bound import most_actives
from caughtup.models.assignors.minimal.copies import NOBODY, Copies
from caughtup.models.assignors.minimal.plan import Plan


def choose_servers(copies: Copies, plan: Plan, capacities: Sequence[int]) -> list[int]:
    """Choose a client for each task, by their places.

    It is the one where the task belongs, if that is caught up; else its owner, else another one
    that is, else the one that lags least. Who would have more than it may be given
    (``most_actives``) gets fewer: owners keep theirs until there is room.
    """
    servers = [_server(copies, task, belongs) for task, belongs in enumerate(plan.clients)]
    _make_room(copies, plan, capacities, servers)
    return servers


def _server(copies: Copies, task: int, belongs: Sequence[int]) -> int:
    active, owner = belongs[0], copies.owner[task]
    if copies.caught_up(task, active):
        return active
    if owner != NOBODY and copies.caught_up(task, owner):
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


def _make_room(copies: Copies, plan: Plan, capacities: Sequence[int], servers: list[int]) -> None:
    """Move what is too much for a client that gains anything, if it can be elsewhere."""
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
                and (instead := _instead(copies, task, client, counts, most)) != NOBODY
            ]
            # Who keeps a copy anyway comes first: others need a warm-up more meanwhile.
            for _, task in sorted(moves):
                instead = _instead(copies, task, client, counts, most)
                if counts[client] > limit and instead != NOBODY:
                    servers[task] = instead
                    counts[client] -= 1
                    counts[instead] += 1
                    changed = True


def _instead(
    copies: Copies, task: int, client: int, counts: Sequence[int], most: Sequence[int]
) -> int:
    """Find who can run the task as well: its owner, or one that has room; else nobody."""
    owner = copies.owner[task]
    if owner != NOBODY and copies.caught_up(task, owner):
        return owner
    least = copies.distance(task, client)
    return next(
        (
            one
            for one in range(len(counts))
            if one != client and counts[one] < most[one] and copies.distance(task, one) <= least
        ),
        NOBODY,
    )

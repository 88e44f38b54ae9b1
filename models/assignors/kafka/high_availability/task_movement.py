"""Actives stay where they are caught up, and the clients that are to have them warm up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from caughtup.models.assignment.catch_up import CatchUp
from caughtup.models.assignment.client_state import ClientState
from caughtup.models.assignment.decision import Deferral, Rule
from caughtup.models.assignment.releases import NEWEST, Release
from caughtup.models.assignors.java.priority_queue import JavaPriorityQueue
from caughtup.models.assignors.kafka.high_availability.constrained_priority_set import (
    ConstrainedPrioritySet,
)


class WarmUps:
    """The warm-ups that may still be handed out in this decision (max.warmup.replicas)."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._given = 0

    def take(self) -> int | None:
        """Return the next warm-up's number, from 1, or None when the limit is reached."""
        if self._given == self._limit:
            return None
        self._given += 1
        return self._given


def move_actives(
    clients: Sequence[ClientState],
    catch_up: CatchUp,
    warm_ups: WarmUps,
    release: Release = NEWEST,
) -> list[Deferral]:
    """Move each active that isn't caught up where it was placed to a client that lags less.

    The fewer clients are caught up on a task, the earlier its turn. Every deferral calls for a
    probing rebalance. Source: TaskMovement.assignActiveTaskMovements.
    """
    deferrals: list[Deferral] = []
    turns = [
        (len(catch_up.caught_up(task)), task, place)
        for place, client in enumerate(clients)
        for task in sorted(catch_up.waiting(place, client.active))
    ]
    if not turns:
        return deferrals
    queued = ConstrainedPrioritySet(clients)
    for _, task, place in sorted(turns) if release >= Release.V3_3 else in_array_order(turns):
        destination = clients[place]
        caught_up = catch_up.caught_up(task)
        rule = Rule.CAUGHT_UP_STANDBY
        source = queued.poll({c for c in caught_up if task in clients[c].standby})
        if source is None:
            rule = Rule.CAUGHT_UP
            source = queued.poll(caught_up)
        if source is None:
            rule = Rule.MOST_CAUGHT_UP
            source = catch_up.most_caught_up(task, place, ())
        assert source is not None, "it waits for a client that lags less"
        swapped = task in clients[source].standby
        clients[source].standby.discard(task)
        clients[source].active.add(task)
        destination.active.remove(task)
        warm_up = None if swapped else warm_ups.take()
        if swapped or warm_up is not None:
            destination.standby.add(task)
        queued.offer_changed(source, place)
        deferrals.append(Deferral(task, True, source, place, rule, swapped, warm_up))
    return deferrals


def in_array_order(turns: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Order movements as the array of Java's PriorityQueue has them, of those offered like this.

    Each has its number of caught-up clients, its task and a place, of which the place doesn't
    count. Before 3.3 (KAFKA-13600's mend) the queue was walked and not polled.
    """
    queue = JavaPriorityQueue[int]([turn[:2] for turn in turns])
    queue.offer_all(range(len(turns)))
    return [turns[number] for number in queue.in_array_order()]

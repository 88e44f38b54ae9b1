"""Actives stay where they are caught up, and the clients that are to have them warm up."""

from __future__ import annotations

from collections.abc import Sequence

from caughtup.models.assignment.catch_up import CatchUp
from caughtup.models.assignment.client_state import ClientState
from caughtup.models.assignment.decision import Deferral, Rule
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
    clients: Sequence[ClientState], catch_up: CatchUp, warm_ups: WarmUps
) -> list[Deferral]:
    """Move each active that isn't caught up where it was placed to a client that lags less.

    The fewer clients are caught up on a task, the earlier its turn. Every deferral calls for a
    probing rebalance. Source: TaskMovement.assignActiveTaskMovements.
    """
    deferrals: list[Deferral] = []
    turns = sorted(
        (len(catch_up.caught_up(task)), task, place)
        for place, client in enumerate(clients)
        for task in catch_up.waiting(place, client.active)
    )
    if not turns:
        return deferrals
    queued = ConstrainedPrioritySet(clients)
    for _, task, place in turns:
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

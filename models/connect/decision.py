"""What a Connect leader decides in a round, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from caughtup.models.connect.work import Item
from caughtup.models.wire.connect_protocol import NOTHING, ConnectorsAndTasks


class Assigned(StrEnum):
    """Why a worker is given a connector or a task.

    ``new``: nobody has it, and the leader doesn't remember that anybody had. ``not_received``: it
    was given to somebody who didn't get to know. ``no_delay``: it is lost, and there is no delay.
    ``delay_over``: it is lost, and nobody without work came back in time. ``came_back``: it is
    lost, and goes to who came without work during the delay. ``eager``: all work is dealt anew.
    """

    NEW = "new"
    NOT_RECEIVED = "not_received"
    NO_DELAY = "no_delay"
    DELAY_OVER = "delay_over"
    CAME_BACK = "came_back"
    EAGER = "eager"


class Revoked(StrEnum):
    """Why a worker has to let a connector or a task go.

    ``deleted``: the configuration doesn't have it any more. ``duplicated``: others run it, too; all
    of them let it go. ``balance``: the worker has more than its share.
    """

    DELETED = "deleted"
    DUPLICATED = "duplicated"
    BALANCE = "balance"


class Delayed(StrEnum):
    """Why all are told to wait.

    ``departed``: since this round, for whoever left to come back. ``waiting``: the same, since an
    earlier round. ``back_off``: work was taken away for balance the last time, and would be again.
    """

    DEPARTED = "departed"
    WAITING = "waiting"
    BACK_OFF = "back_off"


@dataclass(frozen=True, slots=True)
class WorkerDecision:
    """What a worker shall start and stop, in the order in which the leader came to it.

    ``postponed`` is what it has beyond its share and keeps, as long as the back-off lasts.
    """

    assigned: ConnectorsAndTasks = NOTHING
    revoked: ConnectorsAndTasks = NOTHING
    postponed: ConnectorsAndTasks = NOTHING


@dataclass(frozen=True, slots=True)
class Decision:
    """A round's decision.

    ``workers`` are in the order of the round. ``unassigned`` is what is configured and nobody has
    when all have done as they were told: what is lost and waits, and what was revoked, which the
    next round deals. What is lost goes at ``reassign_at_ms`` (by the leader's clock; None without a
    delay) to ``candidates`` in turn or, if none of them is there then, to whoever has least.
    ``revoked_because`` has a reason for all that workers let go, ``again_because`` for what they
    are given that isn't given because of ``given_because``.
    """

    delay_ms: int
    delayed: Delayed | None
    workers: Mapping[str, WorkerDecision]
    revoked_because: Mapping[Item, Revoked]
    again_because: Mapping[Item, Assigned]
    given_because: Assigned = Assigned.NEW
    unassigned: ConnectorsAndTasks = NOTHING
    reassign_at_ms: int | None = None
    candidates: tuple[str, ...] = ()

    @property
    def assigned_because(self) -> dict[Item, Assigned]:
        """Return why each connector and task is started."""
        items: list[Item] = []
        for one in self.workers.values():
            items += one.assigned.connectors
            items += one.assigned.tasks
        return {item: self.again_because.get(item, self.given_because) for item in items}

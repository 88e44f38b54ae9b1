"""A decision as a value: what each client gets, what has to move for it, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Any, NamedTuple

from caughtup.models.ids import ProcessId, TaskId


class Kind(StrEnum):
    """What a movement does.

    ``active``: the active moves at once, because it is caught up there. ``cold``: the active
    moves to a client that must restore first, because nobody is caught up. ``swap``: an active
    and a standby exchange their places. ``warmup``: the destination builds its copy while the
    source serves. ``waiting``: the same, but no warm-up is left for it. ``standby``: a new
    standby. ``stateless``: an active without state.
    """

    ACTIVE = "active"
    COLD = "cold"
    SWAP = "swap"
    WARMUP = "warmup"
    WAITING = "waiting"
    STANDBY = "standby"
    STATELESS = "stateless"


class Rule(StrEnum):
    """How the client was found that serves until the destination is caught up.

    Least loaded of the caught up clients with a standby; least loaded of all the caught up
    ones; the one that lags least.
    """

    CAUGHT_UP_STANDBY = "i"
    CAUGHT_UP = "ii"
    MOST_CAUGHT_UP = "iii"


@dataclass(frozen=True, slots=True)
class Movement:
    """A copy that is new on a client, or an active that changes hands, and the reason.

    ``source`` has the copy until then; None where no client had it. ``lag`` is the destination's
    and ``source_lag`` the source's, in offsets, -2 for a running active and -3 for an unknown
    lag; None without state or without source. ``rule`` is None where the destination is as good
    as any other client. ``reason`` is a sentence for operators.
    """

    task: TaskId
    source: ProcessId | None
    destination: ProcessId
    kind: Kind
    reason: str
    lag: int | None = None
    source_lag: int | None = None
    rule: Rule | None = None


@dataclass(frozen=True, slots=True)
class ClientDecision:
    """What one client gets, in TaskId order. ``standby`` has its warm-ups, too.

    ``placed`` are the same tasks in the order in which a public assignor put them into the
    client's map; empty for Kafka's own, which keep tasks sorted.
    """

    active: tuple[TaskId, ...]
    standby: tuple[TaskId, ...]
    warmup: tuple[TaskId, ...]
    placed: tuple[TaskId, ...] = field(default=(), repr=False, compare=False)


@dataclass(frozen=True)
class Decision:
    """What an assignor decides: clients in ProcessId order.

    ``explain`` lists the movements; it is asked when they are, since a group that starts has one
    for every copy and a sentence for each of them.
    """

    probing_rebalance_needed: bool
    clients: Mapping[ProcessId, ClientDecision]
    explain: Callable[[], tuple[Movement, ...]] = field(repr=False, compare=False)

    @cached_property
    def movements(self) -> tuple[Movement, ...]:
        """What has to move, in TaskId order, and why."""
        return self.explain()

    def explained(self) -> Decision:
        """Return the decision with its movements told, and without what they are told from."""
        movements = self.movements
        return replace(self, explain=lambda: movements)

    def to_dict(self) -> dict[str, Any]:
        """Write the decision as ``caughtup assign`` prints it, but for the scenario's name."""
        return {
            "probing_rebalance_needed": self.probing_rebalance_needed,
            "clients": {
                str(process_id): {
                    "active": [str(task) for task in client.active],
                    "standby": [str(task) for task in client.standby],
                    "warmup": [str(task) for task in client.warmup],
                }
                for process_id, client in self.clients.items()
            },
        }


class Deferral(NamedTuple):
    """A copy that was placed on ``destination`` and has to wait until it is caught up there.

    ``source`` has or keeps the copy meanwhile; both are places in the order of process ids.
    ``rule`` says how the source was found. ``warm_up`` numbers the warm-up, from 1; None where a
    standby and an active exchanged their places (``swapped``) or no warm-up was left.
    """

    task: TaskId
    active: bool
    source: int
    destination: int
    rule: Rule
    swapped: bool
    warm_up: int | None

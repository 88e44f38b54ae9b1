"""A decision as a value: each client's tasks, and the movements that lead to them, with reasons."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple, TypedDict

from caughtup.models.ids import ProcessId, TaskId


class MovementKind(StrEnum):
    """What a movement does.

    - ``active``: the active moves at once, because the destination is caught up.
    - ``cold``: the active moves to a client that must restore first, because none is caught up.
    - ``swap``: an active and a standby exchange their clients.
    - ``warmup``: the destination builds a warm-up while the source keeps the active.
    - ``waiting``: as ``warmup``, but ``max.warmup.replicas`` leaves no warm-up for it yet.
    - ``standby``: a new standby.
    - ``stateless``: an active without state.
    """

    ACTIVE = "active"
    COLD = "cold"
    SWAP = "swap"
    WARMUP = "warmup"
    WAITING = "waiting"
    STANDBY = "standby"
    STATELESS = "stateless"


class Rule(StrEnum):
    """How the assignor chose the client that keeps the task until the destination is caught up.

    In this order: the least loaded caught-up client that has a standby; the least loaded caught-up
    client; the client that lags least.
    """

    CAUGHT_UP_STANDBY = "i"
    CAUGHT_UP = "ii"
    MOST_CAUGHT_UP = "iii"


@dataclass(frozen=True, slots=True)
class Movement:
    """A new copy on a client, or an active that changes its client, and the reason.

    ``source`` is the client that has the copy until then; None if none has. ``lag`` is the
    destination's and ``source_lag`` the source's, in offsets, -2 for a running active and -3 for an
    unknown lag; None for a stateless task, or without a source. ``rule`` is None if no client had
    to keep the task meanwhile. ``reason`` is a sentence for operators.
    """

    task: TaskId
    source: ProcessId | None
    destination: ProcessId
    kind: MovementKind
    reason: str
    lag: int | None = None
    source_lag: int | None = None
    rule: Rule | None = None


class DecidedTasks(TypedDict):
    """One client's tasks, as ``caughtup assign`` prints them."""

    active: list[str]
    standby: list[str]
    warmup: list[str]


class DecisionLine(TypedDict):
    """A decision, as ``caughtup assign`` prints it, without the scenario's name."""

    probing_rebalance_needed: bool
    clients: dict[str, DecidedTasks]


@dataclass(frozen=True, slots=True)
class ClientDecision:
    """One client's tasks, in TaskId order; ``standby`` includes its warm-ups.

    ``placed`` are the same tasks in the order in which a public assignor added them to the client's
    map; empty for Kafka's internal assignors, which keep tasks sorted.
    """

    active: tuple[TaskId, ...]
    standby: tuple[TaskId, ...]
    warmup: tuple[TaskId, ...]
    placed: tuple[TaskId, ...] = field(default=(), repr=False, compare=False)


@dataclass(frozen=True)
class Decision:
    """An assignor's decision; ``clients`` are in ProcessId order.

    ``explain`` computes the movements. It is called only when they are read, since a group that
    starts has a movement, with a sentence, for every copy.
    """

    probing_rebalance_needed: bool
    clients: Mapping[ProcessId, ClientDecision]
    explain: Callable[[], tuple[Movement, ...]] = field(repr=False, compare=False)

    @cached_property
    def movements(self) -> tuple[Movement, ...]:
        """The movements in TaskId order."""
        return self.explain()

    def explained(self) -> Decision:
        """Return the decision with its movements computed, without their inputs."""
        movements = self.movements
        return replace(self, explain=lambda: movements)

    def to_dict(self) -> DecisionLine:
        """Return the decision as ``caughtup assign`` prints it, without the scenario's name."""
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
    """A copy that was placed on ``destination``, which is not caught up yet.

    ``source`` keeps the copy meanwhile; both are places in the order of process ids. ``rule`` is
    how the source was chosen. ``warm_up`` numbers the warm-up, from 1; None if an active and a
    standby exchanged their clients (``swapped``), or if no warm-up was left.
    """

    task: TaskId
    active: bool
    source: int
    destination: int
    rule: Rule
    swapped: bool
    warm_up: int | None

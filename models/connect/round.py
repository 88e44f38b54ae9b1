"""A round of a Connect group: the leader's input, and what it remembers of the round before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from caughtup.models.connect.work import NO_WORK, Work
from caughtup.models.wire.connect_protocol import ConnectorsAndTasks

#: The default of ``scheduled.rebalance.max.delay.ms``.
MAX_DELAY_MS = 300_000


@dataclass(frozen=True, slots=True)
class Round:
    """A leader's input.

    ``time_ms`` is the leader's clock, in ms since the epoch. ``connectors`` is the configuration
    that it has read: connector → number of tasks. ``workers`` has what each worker owns, in the
    order in which the coordinator lists them, connectors and tasks in the order of the wire:
    Java's iteration order shows in the decision. ``last_completed`` is whether the leader's last
    round was synced and no other worker has led a round since.
    """

    time_ms: int
    connectors: Mapping[str, int]
    workers: Mapping[str, ConnectorsAndTasks]
    last_completed: bool = True


@dataclass(frozen=True, slots=True)
class Memory:
    """What a leader remembers from one round to the next; a new leader remembers nothing.

    ``assigned`` is all that should run, lost work included; ``revoked`` is what the last round
    revoked. ``members`` are the workers of the last round, ``candidates`` those that joined
    without work while a delay ran, in order: they will get the lost work.
    ``scheduled_rebalance_ms`` is when a delay ends, by the leader's clock, 0 without one;
    ``delay_ms`` is what was left of it at the last round. ``revoked_last`` is whether that round
    revoked work for balance, and ``successive_revocations`` how many rounds in a row wanted to
    after it, by which the leader backs off.
    """

    assigned: Work = NO_WORK
    revoked: Work = NO_WORK
    members: frozenset[str] = frozenset()
    candidates: tuple[str, ...] = ()
    scheduled_rebalance_ms: int = 0
    delay_ms: int = 0
    revoked_last: bool = False
    successive_revocations: int = 0


NO_MEMORY = Memory()

"""Probing rebalances as they came: which were fired, which were needless, which got nowhere.

A generation was *probed* when its predecessor had set a time for it, other than at once, that time
had come, and the members are the same. A probe is *needless* when no warm-up of the generation
before is caught up in it that wasn't; it is *in vain* when none is even nearer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from caughtup.models.decisions.task_table import TaskCopy
from caughtup.models.groups.generation import StreamsGeneration
from caughtup.models.ids import CopyKey
from caughtup.models.lag.partition_lag import CLOCK_ALLOWANCE_MS

#: Probes that are kept for the page.
PROBES_KEPT = 50
#: How many probes in a row have to be in vain for probing to be called endless.
PROBES_IN_VAIN = 3


@dataclass(frozen=True, slots=True)
class Probe:
    """A probing rebalance: the generation that it made, and when (ms).

    ``promoted``: warm-ups of the generation before that it found caught up. ``nearer``: whether
    any of them had come nearer; None where lags weren't known.
    """

    generation: int
    at_ms: int
    promoted: tuple[CopyKey, ...]
    nearer: bool | None

    @property
    def needless(self) -> bool:
        """Whether it found nothing newly caught up, as far as lags are known."""
        return not self.promoted and self.nearer is not None


class ProbingHistory:
    """The probing rebalances of one application, counted, and when the next one is due.

    ``fired`` and ``needless`` count from the start; ``in_vain`` those in a row, up to the last,
    in which no warm-up got nearer. ``due_ms``: when the next rebalance is due, None if none is;
    ``since_ms``: when the newest generation began.
    """

    def __init__(self) -> None:
        self.probes: deque[Probe] = deque(maxlen=PROBES_KEPT)
        self.fired = 0
        self.needless = 0
        self.in_vain = 0
        self.due_ms: int | None = None
        self.since_ms: int | None = None
        self._number: int | None = None
        self._members: frozenset[str] = frozenset()
        self._warmups: dict[CopyKey, int | None] = {}

    @property
    def endless(self) -> bool:
        """Whether the last probes in a row led nowhere."""
        return self.in_vain >= PROBES_IN_VAIN

    def apply(
        self,
        generation: StreamsGeneration,
        rows: Iterable[TaskCopy],
        limit: int,
        warmup_roles: frozenset[str],
    ) -> Probe | None:
        """Apply a decided generation with its task table; return the probe, if it was one.

        ``limit``: ``acceptable.recovery.lag``. ``warmup_roles``: roles of copies that a rebalance
        is to promote (``WarmupTable.warmup_roles``). A known generation changes nothing.
        """
        if (generation.generation, generation.as_of_ms) == (self._number, self.since_ms):
            return None
        table = {CopyKey(row.process, row.task): row for row in rows}
        members = frozenset(member.member_id for member in generation.members())
        probe = None
        if self._was_probed(generation, members):
            probe = self._compare(generation, table, limit)
            self.probes.append(probe)
            self.fired += 1
            self.needless += probe.needless
            self.in_vain = self.in_vain + 1 if probe.nearer is False else 0
        elif members != self._members:
            self.in_vain = 0
        due = generation.next_rebalance()
        self.due_ms = None if due is None else due[0]
        self.since_ms, self._number = generation.as_of_ms, generation.generation
        self._members = members
        self._warmups = {copy: row.lag for copy, row in table.items() if row.role in warmup_roles}
        return probe

    def _was_probed(self, generation: StreamsGeneration, members: frozenset[str]) -> bool:
        return (
            self._number is not None
            and self.due_ms is not None
            and self.since_ms is not None
            and generation.generation == self._number + 1
            and members == self._members
            and self.due_ms > self.since_ms
            and generation.as_of_ms >= self.due_ms - CLOCK_ALLOWANCE_MS
        )

    def _compare(
        self, generation: StreamsGeneration, table: Mapping[CopyKey, TaskCopy], limit: int
    ) -> Probe:
        promoted: list[CopyKey] = []
        gains: list[bool | None] = []
        for copy, before in self._warmups.items():
            row = table.get(copy)
            was_caught_up = before is not None and before <= limit
            if row is not None and row.role in ("active", "restoring") and not was_caught_up:
                promoted.append(copy)
            elif row is None or row.lag is None or before is None:
                gains.append(None)
            elif row.lag <= limit < before:
                promoted.append(copy)
            else:
                gains.append(row.lag < before)
        nearer: bool | None = True
        if not promoted and True not in gains:
            nearer = None if None in gains else False
        return Probe(generation.generation, generation.as_of_ms, tuple(promoted), nearer)

"""The lines about reassignments in ``/api/reassignments``, ``--format json``, tables and the page.

Unknown fields are absent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from caughtup.models.ids import TopicPartition
from caughtup.models.records.fields import Part

#: The figures behind a verdict, by name, as JSON values.
Evidence = dict[str, int | float | str | bool | Sequence[int | str]]
Role = Literal["added", "removed", "stays"]


class ReplicaCopy(Part, omit_defaults=True):
    """A replica of a reassigned partition, and the share of its leader's log that it has.

    ``share`` is from 0 to 1. ``missing``: the broker reports that it doesn't host the replica.
    """

    broker: int
    role: Role
    in_sync: bool
    away: bool = False
    missing: bool = False
    unanswered: bool = False
    log_end: int | None = None
    share: float | None = None


class Reassignment(Part, kw_only=True, omit_defaults=True, tag_field="kind", tag="partition"):
    """A reassigned partition: its progress, and the verdict on it with its reasons.

    ``at_ms``: when it was last observed; ``phase``: see ``caughtup reassignments --help``.
    ``verdict``, ``cause``, ``evidence`` and ``advice`` are of the last assessment. The bytes and
    their rate are sums over the replicas that must get in sync; the offsets and their rate are of
    the one that is furthest behind. ``eta_seconds``: until all are in sync; ``never``: not at these
    rates. ``age_seconds`` since it was first observed, ``idle_seconds`` since its last progress.
    Only the page has ``why``, the evidence in words, and ``copies``, every replica.
    """

    at_ms: int
    topic: str
    partition: int
    phase: str
    replicas: tuple[int, ...]
    original: tuple[int, ...]
    target: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int | None = None
    leader_epoch: int | None = None
    verdict: str
    cause: str | None = None
    evidence: Evidence | None = None
    advice: str | None = None
    bytes_remaining: int | None = None
    offsets_remaining: int | None = None
    rate_bytes_per_second: float | None = None
    rate_offsets_per_second: float | None = None
    eta_seconds: float | None = None
    never: bool | None = None
    age_seconds: float | None = None
    idle_seconds: float | None = None
    why: str | None = None
    copies: tuple[ReplicaCopy, ...] | None = None

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition that it is about."""
        return TopicPartition(self.topic, self.partition)

    @property
    def eta(self) -> float | None:
        """Seconds until it ends, infinite = never, None = unknown."""
        return float("inf") if self.never else self.eta_seconds


class ThrottleLine(Part, tag_field="kind", tag="throttle"):
    """A replication throttle ``on`` a broker or a topic that no present reassignment needs."""

    at_ms: int
    on: str
    name: str
    what: str
    advice: str


class MissingLine(Part, tag_field="kind", tag="missing"):
    """What the last observation lacks, in words."""

    at_ms: int
    what: str


Line = Reassignment | ThrottleLine | MissingLine


class EndedReassignment(Part, kw_only=True, omit_defaults=True):
    """A reassignment that ended, with its outcome, one of OUTCOMES in ``models/verdicts.py``.

    ``target``: the intended replicas. ``replicas``: those after the end, None if the topic was
    deleted. ``original``: those before. ``seconds``: for how long it was observed.
    """

    topic: str
    partition: int
    outcome: str
    at_ms: int
    original: tuple[int, ...]
    target: tuple[int, ...]
    replicas: tuple[int, ...] | None = None
    seconds: float

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition that it is about."""
        return TopicPartition(self.topic, self.partition)

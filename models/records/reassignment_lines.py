"""A reassignment as it is shown: the line of ``/api/reassignments`` and of ``--format json``.

The same value is the row of the tables and of the page. What isn't known is absent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from caughtup.models.ids import TopicPartition
from caughtup.models.records.fields import Part

#: What a verdict rests on, by name; all of it can be written as JSON.
Evidence = dict[str, int | float | str | bool | Sequence[int | str]]
Role = Literal["added", "removed", "stays"]


class ReplicaCopy(Part, omit_defaults=True):
    """A replica of a reassigned partition, and how much of its leader's log it has.

    ``share``: 1 is all of it. ``missing``: the broker says that it has no such replica.
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
    """A partition in movement: how it fares and why, how far its copies are.

    ``at_ms``: when it was last observed; ``phase``: see ``caughtup reassignments --help``.
    ``verdict``, ``cause``, ``evidence`` and ``advice``: as last assessed. Bytes, offsets, and the
    same a second: what all replicas that must get in sync have yet to copy, and copy; of offsets
    the replica that is furthest behind. ``eta_seconds``: until the last of them is there;
    ``never``: not at this pace. ``age_seconds`` since it was first seen, ``idle_seconds`` since it
    last got anywhere. ``why`` and ``copies`` are on the page only: the evidence in words, and
    every replica.
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
        """Seconds until it ends, infinite if it never does; None where that isn't known."""
        return float("inf") if self.never else self.eta_seconds


class ThrottleLine(Part, tag_field="kind", tag="throttle"):
    """A replication throttle ``on`` a broker or a topic that no reassignment of now needs."""

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
    """A reassignment that is over, and how it ended: one of ``models/verdicts.py``'s OUTCOMES.

    ``target``: the replicas that it was to have at last. ``replicas``: those that it has, None if
    the topic is gone. ``original``: those that it had before. ``seconds``: how long it was seen.
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

"""Simulated brokers, their throttles, and partitions that are reassigned between them."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from caughtup.models.ids import TopicPartition

TICK_MS = 500
CHUNK = 1 << 20
RECORD = 100


class Quota:
    """A broker's replication throttle in one direction, in bytes a second; None is no limit."""

    def __init__(self, rate: int | None) -> None:
        self.rate = rate
        self._seconds: deque[tuple[int, float]] = deque()

    def record(self, now_ms: int, sent: float) -> None:
        self._seconds.append((now_ms, sent))

    def exceeded(self, now_ms: int) -> bool:
        while self._seconds and self._seconds[0][0] <= now_ms - 11_000:
            self._seconds.popleft()
        return self.rate is not None and sum(sent for _, sent in self._seconds) / 10 > self.rate


@dataclass
class Broker:
    """A broker: what it can copy (bytes/s), and what ails it."""

    pace: float
    up: bool = True
    fenced: bool = False
    disk_full: bool = False
    down_since_ms: int = 0
    leader_quota: Quota = field(default_factory=lambda: Quota(None))
    follower_quota: Quota = field(default_factory=lambda: Quota(None))


@dataclass
class Reassignment:
    """A reassigned partition. Log ends in bytes, from the log's start on."""

    partition: TopicPartition
    old: tuple[int, ...]
    new: tuple[int, ...]
    size: float
    writes: float
    throttled: bool
    started_ms: int
    start_offset: int = 0
    leader: int | None = None
    epoch: int = 5
    ends: dict[int, float] = field(default_factory=dict)
    isr: set[int] = field(default_factory=set)
    ended_ms: int | None = None
    #: Faults: replicas that don't copy, aren't there, never join; a controller that won't complete.
    stopped: set[int] = field(default_factory=set)
    not_hosted: set[int] = field(default_factory=set)
    never_joins: set[int] = field(default_factory=set)
    never_completes: bool = False
    loses_copy_every_ms: dict[int, int] = field(default_factory=dict)
    joins_ms: dict[int, int] = field(default_factory=dict)
    leaderless_until_ms: int = 0

    def __post_init__(self) -> None:
        self.leader = self.old[0]
        self.isr = set(self.old)
        self.ends = dict.fromkeys(self.old, self.size) | dict.fromkeys(self.adding, 0.0)

    @property
    def adding(self) -> tuple[int, ...]:
        return tuple(sorted(set(self.new) - set(self.old)))

    @property
    def removing(self) -> tuple[int, ...]:
        return tuple(sorted(set(self.old) - set(self.new)))

    @property
    def replicas(self) -> tuple[int, ...]:
        return (*self.new, *self.removing)

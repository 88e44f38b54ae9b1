"""A cluster's last hours, simulated on a clock of its own through the service's tables.

Inputs arrive as the service reads them: records of ``__consumer_offsets`` in bytes, log ends,
observations. The same simulation gives the same state, at any time and on any machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

from caughtup.agents.process.health import Health
from caughtup.agents.recent.sampler import Sampler
from caughtup.models.ids import TopicPartition
from caughtup.models.offsets import EndOffsets
from caughtup.models.parameters import ApplicationParameters
from caughtup.models.polls.batch import Record, decode_batch
from caughtup.models.state.cluster import ClusterState
from tests.support.groups.records import commit, consumer_generation

SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000
#: The time that the pictures show: 2026-11-18 14:02:30 UTC.
NOW_MS = 1_795_010_550_000
STEP_MS = 15 * SECOND
#: The period of the load's waves (s), and their amplitude as a share of the average.
_WAVE_SECONDS, _WAVE = 700.0, 0.35
_FIRST = 1_000_000

#: A group's committed offset on a partition at a time (ms); None: it commits nothing then.
Position = Callable[["Topic", int, int], int | None]


class Topic(NamedTuple):
    """A topic with continuous writes, more to some partitions than to others."""

    name: str
    partitions: int
    per_second: float

    def end(self, partition: int, at_ms: int) -> int:
        """Return a partition's log end at a time (ms)."""
        seconds = (at_ms - NOW_MS) / SECOND + 12 * 3_600
        waves = _WAVE * _WAVE_SECONDS * math.sin(seconds / _WAVE_SECONDS)
        share = 1 + 0.25 * ((partition * 7) % 5 - 2) / 2
        return _FIRST + int(share * self.per_second / self.partitions * (seconds + waves))


def keeps_up(topic: Topic, partition: int, at_ms: int) -> int:
    """Commit the log end of a second ago."""
    return topic.end(partition, at_ms - SECOND)


def reads_late(by_ms: int) -> Position:
    """Commit the log end of ``by_ms`` ago."""
    return lambda topic, partition, at_ms: topic.end(partition, at_ms - by_ms)


def stops(since_ms: int) -> Position:
    """Keep up until a time (ms), then commit nothing."""
    return lambda topic, at, now: keeps_up(topic, at, now) if now <= since_ms else None


def stalls(since_ms: int, only: int | None = None) -> Position:
    """Keep up until a time (ms), then repeat the same commit; ``only`` on one partition."""

    def position(topic: Topic, partition: int, at_ms: int) -> int:
        stuck = only is None or partition == only
        return keeps_up(topic, partition, min(at_ms, since_ms) if stuck else at_ms)

    return position


def falls_back(since_ms: int, share: float) -> Position:
    """Keep up until a time (ms), then read only a share of new records."""

    def position(topic: Topic, partition: int, at_ms: int) -> int:
        if at_ms <= since_ms:
            return keeps_up(topic, partition, at_ms)
        begun = topic.end(partition, since_ms)
        return begun + int(share * (keeps_up(topic, partition, at_ms) - begun))

    return position


def gains(since_ms: int, behind_seconds: float, share: float) -> Position:
    """Start ``behind_seconds`` behind at a time (ms), and read ``share`` times the new records."""

    def position(topic: Topic, partition: int, at_ms: int) -> int:
        start = topic.end(partition, since_ms - round(behind_seconds * SECOND))
        read = share * (topic.end(partition, at_ms) - topic.end(partition, since_ms))
        return min(start + max(0, int(read)), keeps_up(topic, partition, at_ms))

    return position


class Reader(NamedTuple):
    """A consumer group, with its members from each time (ms) on."""

    group: str
    topic: Topic
    position: Position
    members: Mapping[int, tuple[str, ...]]


class Cluster:
    """A state with its clock; each of ``players`` acts at every step."""

    def __init__(
        self, minutes: int = 60, parameters: Mapping[str, ApplicationParameters] | None = None
    ) -> None:
        self.state = ClusterState("Tq3kVwKXR9-5xLzp0eGk2A", parameters or {})
        self.health = Health(cluster_name="production", ready=True, reader_lag=0)
        self.start_ms = self.now_ms = NOW_MS - minutes * MINUTE
        self.topics: list[Topic] = []
        self.readers: list[Reader] = []
        self.players: list[Callable[[int], None]] = []
        #: Since when (ms) an open transaction holds back a partition's last stable offset.
        self.held: dict[TopicPartition, int] = {}
        self._sampler = Sampler(self.state, self.health, lambda: self.now_ms)
        self._dealt: dict[str, int] = {}

    def topic(self, name: str, partitions: int, per_second: float) -> Topic:
        """Add a topic."""
        made = Topic(name, partitions, per_second)
        self.topics.append(made)
        return made

    def reads(self, group: str, topic: Topic, position: Position = keeps_up, *clients: str) -> None:
        """Add a group whose members joined before the start."""
        members = clients or (f"{group}-1", f"{group}-2")
        self.readers.append(Reader(group, topic, position, {self.start_ms: members}))

    def read(self, *records: Record) -> None:
        """Read one poll of ``__consumer_offsets`` now."""
        self.state.apply_batch(decode_batch(records), self.now_ms)

    def play(self, until_ms: int = NOW_MS) -> None:
        """Advance the clock."""
        while self.now_ms < until_ms:
            self.now_ms += STEP_MS
            self._step()

    def _step(self) -> None:
        state, now = self.state, self.now_ms
        for topic in self.topics:
            for number in range(topic.partitions):
                partition, end = TopicPartition(topic.name, number), topic.end(number, now)
                stable = topic.end(number, min(now, self.held.get(partition, now)))
                state.apply_ends(partition, EndOffsets(max(0, end - 40_000_000), stable, end, now))
        self.read(*(record for reader in self.readers for record in self._records(reader)))
        for player in self.players:
            player(now)
        for _ in state.decide(now):
            pass
        for group in state.group_names():
            for _ in state.assess(group, now):
                pass
        for _ in state.reassignment_watch.assess(state.reassignments, now):
            pass
        for _ in self._sampler.steps(sampling=True):
            pass

    def _records(self, reader: Reader) -> list[Record]:
        found: list[Record] = []
        due = [at_ms for at_ms in sorted(reader.members) if at_ms <= self.now_ms]
        if self._dealt.get(reader.group, 0) != len(due):
            self._dealt[reader.group] = len(due)
            found.append(self._generation(reader, 6 + len(due), reader.members[due[-1]]))
        for number in range(reader.topic.partitions):
            offset = reader.position(reader.topic, number, self.now_ms)
            if offset is not None:
                of = {"topic": reader.topic.name, "group": reader.group}
                found.append(commit(number, offset, at_ms=self.now_ms, **of))
        return found

    def _generation(self, reader: Reader, number: int, clients: tuple[str, ...]) -> Record:
        numbers = range(reader.topic.partitions)
        owned = {
            client: tuple(TopicPartition(reader.topic.name, n) for n in numbers[at :: len(clients)])
            for at, client in enumerate(clients)
        }
        return consumer_generation(number, owned, group=reader.group)

"""Generate four kinds of logs of ``__consumer_offsets``, for measurements.

*Compacted*: a log after the cleaner, with each key once: the last commit of each member, on its
assigned partitions. *Scattered*: each key once, no two of a group adjacent, the hardest to read.
*Interleaved*: a log before compaction, with repeated keys in turn. *Runs*: each group's commits on
all its partitions, one group after another, repeatedly, like a live log. A batch has as many
records as a member commits at once.

Values have the versions that brokers write: 3 from 2.1 on, 4 with a topic id from 4.1 on, 1 for
clients with a retention of their own. Some have metadata, like those of Kafka Streams; one in fifty
is a tombstone of an expired group; and each group has a metadata record. In a log of which a part
is transactional all groups commit through the brokers, ten offsets at once, so that all values are
the broker's.
"""

from __future__ import annotations

import random
import struct
import time
from collections.abc import Callable, Iterator
from itertools import chain
from typing import NamedTuple

from confluent_kafka import TopicPartition

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.topics import create_topics
from caughtup.demo.fleet.broker_commits import BrokerCommits, is_transactional
from caughtup.demo.fleet.offset_commits import (
    RawRecord,
    commit_key_prefix,
    make_offsets_topic,
    write_records,
)
from caughtup.models.assignors.java.strings import coordinator_partition

LOGS = ("compacted", "scattered", "interleaved", "runs")
#: Partitions that a member is assigned, and commits at once.
_ASSIGNED = 10
#: In a mixture, the number of values of each version in a hundred; and how rare tombstones are.
_MIXED = {4: 60, 3: 35, 1: 5}
_TOMBSTONES = 2
#: One group in this many is a Kafka Streams application, whose commits have metadata.
_STREAMS_GROUPS = 5
#: Kafka Streams' metadata: a magic byte and a partition's time, in base64.
_METADATA = b"AgAAAZMbXbpPAAAAAA=="
#: A group without members, as a broker leaves it: no generation, no protocol, no leader.
_EMPTY_GROUP = struct.pack(">hh", 3, 8) + b"consumer" + struct.pack(">ihhqi", 7, -1, -1, 0, 0)
_DAY_MS = 86_400_000
_SAID_EVERY = 1_000
#: The topic of all commits through the brokers: it has to exist.
_THROUGH_BROKERS = "domain.orders"


class GroupOffset(NamedTuple):
    """An offset that a group commits through the brokers."""

    group: str
    offset: TopicPartition
    in_transaction: bool


class Shape(NamedTuple):
    """The content of a log: ``groups`` × ``partitions`` keys, with ``records`` commits.

    ``version``: of all values; None for a mixture. ``transactional``: the percentage of the groups
    that commit in transactions.
    """

    records: int
    groups: int
    partitions: int
    version: int | None = None
    transactional: int = 0

    def is_transactional(self, group: int) -> bool:
        """Return whether a group, by its number, commits in transactions."""
        return is_transactional(group, self.transactional)

    @property
    def topics(self) -> int:
        """The number of topics; each is read by three groups on average."""
        return max(1, self.groups // 3)


def write_log(
    cluster: EmbeddedCluster,
    kind: str,
    shape: Shape,
    *,
    offsets_partitions: int,
    advance: Callable[[int], None] = lambda _: None,
) -> int:
    """Write a log to a cluster whose ``__consumer_offsets`` is new; return its number of records.

    The records are the same each time except for their times, within the last day. ``advance`` is
    called at intervals with the number of new records. Raises CaughtupError ``produce_failed``.
    """
    make_offsets_topic(cluster)
    if shape.transactional:
        create_topics(cluster, {_THROUGH_BROKERS: shape.partitions})
    written = 0

    def counted() -> Iterator[RawRecord]:
        nonlocal written
        waiting: dict[tuple[str, bool], list[TopicPartition]] = {}
        with BrokerCommits(cluster.bootstrap_servers) as commits:

            def commit(member: tuple[str, bool]) -> None:
                group, in_transaction = member
                commits.commit(group, waiting.pop(member), in_transaction=in_transaction)

            for record in records(kind, shape, offsets_partitions, int(time.time() * 1000)):
                written += 1
                if not written % _SAID_EVERY:
                    advance(_SAID_EVERY)
                if isinstance(record, RawRecord):
                    yield record
                    continue
                member = record.group, record.in_transaction
                waiting.setdefault(member, []).append(record.offset)
                if len(waiting[member]) == _ASSIGNED:
                    commit(member)
            for member in [*waiting]:
                commit(member)

    write_records(cluster, counted(), batch_records=_ASSIGNED)
    return written


def group_names(count: int) -> list[str]:
    """Return the names of the groups of a generated log."""
    return [f"team-{number % 97}.consumer-group-{number:06d}" for number in range(count)]


def records(
    kind: str, shape: Shape, offsets_partitions: int, now_ms: int
) -> Iterator[RawRecord | GroupOffset]:
    """Yield the records of a log in the order of writing, groups' metadata first."""
    drawn = random.Random(f"{kind} {shape}")
    groups = group_names(shape.groups)
    topics = [f"domain.orders-{number % shape.topics:05d}" for number in range(shape.groups)]
    homes = [coordinator_partition(group, offsets_partitions) for group in groups]
    heads = [commit_key_prefix(group, topic) for group, topic in zip(groups, topics, strict=True)]
    numbers = [partition.to_bytes(4) for partition in range(shape.partitions)]
    values = _values(shape, drawn)
    for name, home in zip(map(str.encode, groups), homes, strict=True):
        key = struct.pack(">hh", 2, len(name)) + name
        yield RawRecord(home, 0, now_ms, key, _EMPTY_GROUP)
    for index, number in enumerate(_order(kind, shape, drawn)):
        group, partition = divmod(number, shape.partitions)
        if shape.transactional:
            offset = TopicPartition(_THROUGH_BROKERS, partition, index + 1)
            yield GroupOffset(groups[group], offset, shape.is_transactional(group))
            continue
        made_ms = now_ms - _DAY_MS + index * _DAY_MS // shape.records
        value = values(group, index + 1, made_ms)
        yield RawRecord(homes[group], 0, made_ms, heads[group] + numbers[partition], value)


def _order(kind: str, shape: Shape, drawn: random.Random) -> Iterator[int]:
    """Yield the order of commits, as numbers of keys: group × partitions + partition."""
    keys = list(range(shape.groups * shape.partitions))
    if kind == "compacted":
        commits = [keys[at : at + _ASSIGNED] for at in range(0, len(keys), _ASSIGNED)]
        drawn.shuffle(commits)
        keys = list(chain.from_iterable(commits))
    elif kind != "runs":
        drawn.shuffle(keys)
    written = 0
    while written < shape.records:
        yield from keys[: shape.records - written]
        written += len(keys)


def _values(shape: Shape, drawn: random.Random) -> Callable[[int, int, int], bytes | None]:
    """Return a function that makes a commit's value from a group, an offset and a time (ms)."""
    versions = [4] * _MIXED[4] + [3] * _MIXED[3] + [1] * _MIXED[1]
    topic_ids = [drawn.randbytes(16) for _ in range(shape.topics)]
    choices = random.Random(shape.records)

    def make(group: int, offset: int, made_ms: int) -> bytes | None:
        chance = choices.random()
        if shape.version is None and chance * 100 < _TOMBSTONES:
            return None
        version = shape.version or versions[int(chance * 1e6) % 100]
        metadata = _METADATA if not group % _STREAMS_GROUPS else b""
        if version == 4:
            tagged = b"\x01\x00\x10" + topic_ids[group % shape.topics]
            head = struct.pack(">hqiB", 4, offset, 5, len(metadata) + 1)
            return head + metadata + struct.pack(">q", made_ms) + tagged
        if version == 3:
            head = struct.pack(">hqih", 3, offset, 5, len(metadata))
            return head + metadata + struct.pack(">q", made_ms)
        head = struct.pack(">hqh", 1, offset, len(metadata))
        return head + metadata + struct.pack(">qq", made_ms, made_ms + 7 * _DAY_MS)

    return make

"""Compute a bucket's generations and epochs of groups, and what the next batch compares with."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

import msgspec
import pyarrow as pa
from pyspark.sql.types import BinaryType, StringType

from caughtup.models.records.fields import or_none
from caughtup.models.state.continued_group import (
    LOST,
    ClusterNow,
    ContinuedGroup,
    GroupGeneration,
    GroupMemory,
    GroupRecord,
    deciding_offsets,
)
from caughtup.pipelines.history.buckets.lag import STATE, BucketLag, state_folder
from caughtup.pipelines.history.buckets.parts import TablePart, table_parts
from caughtup.pipelines.spark.arrow import arrow_schema
from caughtup.pipelines.tables import REBALANCES, columns, timestamps

#: The kinds of state: what is remembered of each group (GroupMemory), and of topics (KnownTopics).
MEMORIES, TOPICS = "rebalances", "topics"
#: Columns that the state's table has had from its first release on.
GROUP_MEMORIES = columns(group=StringType(), value=BinaryType())
TOPICS_REMEMBERED = columns(value=BinaryType())
#: The most bytes that are remembered of a group: one of 10,000 members takes a third.
_MOST_BYTES = 64 << 20
#: The most ids of topics, and the most topics that are known to be gone.
_MOST_TOPICS = 100_000
_encode = msgspec.msgpack.Encoder(order="sorted").encode
_decode_memory = msgspec.msgpack.Decoder(GroupMemory).decode
_CAUSE_FIELDS = ("kind", "sure", "client", "member", "host", "topic", "why")
_Row = dict[str, object]


class KnownTopics(NamedTuple):
    """Topics' names by id, the newest last, and the topics that are gone."""

    names: list[tuple[bytes, str]]
    gone: list[str]


_decode_topics = msgspec.msgpack.Decoder(KnownTopics).decode


class BucketGenerations:
    """A bucket's records of groups of a batch, with the state before it; None if empty."""

    def __init__(
        self,
        lag: BucketLag,
        records: pa.Table | None,
        before: pa.Table | None,
        topic_ids: pa.Table | None,
        memories: pa.Table | None,
        topics: pa.Table | None,
    ) -> None:
        """``before``: records from before the history, which make no rows."""
        self._lag = lag
        self._records = records
        self._before = before
        self._topics_before = _known_topics(topics)
        self._topics = _topics_now(self._topics_before, topic_ids, lag.first_partitions())
        self._memories: dict[str, bytes] = {}
        if memories is not None:
            names = memories.column("group").to_pylist()
            self._memories = dict(zip(names, memories.column("value").to_pylist(), strict=True))

    def tables(self, bucket: int) -> Iterator[TablePart]:
        """Yield the rows of the table of rebalances. What is remembered changes with that."""
        if self._records is None and self._before is None:
            return
        now = ClusterNow(
            dict(self._topics.names), self._lag.partition_counts(), frozenset(self._topics.gone)
        )
        for group, records in _by_group(self._before):
            self._begin(group, [one for _, one in records], now)
        rows = [
            row
            for group, records in _by_group(self._records)
            for row in self._rows(group, records, now)
        ]
        if rows:
            schema = arrow_schema(REBALANCES.columns)
            times = timestamps(pa.array([row.pop("as_of_ms") for row in rows], pa.int64()))
            table = pa.Table.from_pylist(
                rows, schema=schema.remove(schema.get_field_index("as_of"))
            )
            yield from table_parts(REBALANCES, bucket, table.append_column("as_of", times))

    def _begin(self, group: str, records: list[GroupRecord], now: ClusterNow) -> None:
        try:
            one = ContinuedGroup(group, None, now)
            one.begin(records)
            self._remember(group, one.memory())
        except Exception:  # noqa: BLE001 (nothing is known of this group; the others continue)
            self._remember(group, LOST)

    def _rows(
        self, group: str, records: list[tuple[int, GroupRecord]], now: ClusterNow
    ) -> list[_Row]:
        """Return the rows of a group; one that fails has a row with the error, and costs no other."""
        own, found = [one for _, one in records], list[GroupGeneration]()
        try:
            memory = self._memories.get(group)
            one = ContinuedGroup(group, None if memory is None else _memory(memory), now)
            # Nothing was held before a group's first generation, so that no commit says who was there.
            offsets = deciding_offsets(own)[memory is None :]
            found += one.read(own, self._lag.commits_before(group, offsets))
            self._remember(group, one.memory())
        except Exception as error:  # noqa: BLE001
            self._remember(group, LOST)
            last = own[-1]
            why = f"{type(error).__name__}: {error}"
            found = [GroupGeneration(last.timestamp_ms, last.log_offset, error=why)]
        partition = records[0][0]
        return [_row(group, one) | {"log_partition": partition} for one in found]

    def _remember(self, group: str, memory: GroupMemory | None) -> None:
        if memory is None:
            self._memories.pop(group, None)
            return
        encoded = _encode(memory)
        self._memories[group] = encoded if len(encoded) <= _MOST_BYTES else _encode(LOST)

    def remembered(self, bucket: int, buckets: int, *, whole: bool) -> Iterator[TablePart]:
        """Yield the changed state, after ``tables``; ``whole``: yield all of it."""
        if self._records is not None or self._before is not None or whole:
            names = sorted(self._memories)
            rows = pa.table(
                {"group": names, "value": [self._memories[name] for name in names]},
                schema=arrow_schema(GROUP_MEMORIES),
            )
            yield TablePart(STATE, state_folder(MEMORIES, bucket, buckets), rows, ())
        if self._topics != self._topics_before or whole:
            rows = pa.table({"value": [_encode(self._topics)]}, arrow_schema(TOPICS_REMEMBERED))
            yield TablePart(STATE, state_folder(TOPICS, bucket, buckets), rows, ())


def _memory(encoded: bytes) -> GroupMemory:
    """Decode what was remembered; LOST if a later release has written it otherwise."""
    try:
        return _decode_memory(encoded)
    except msgspec.DecodeError:
        return LOST


def _known_topics(rows: pa.Table | None) -> KnownTopics:
    names, gone = dict[bytes, str](), dict[str, None]()
    for value in [] if rows is None else rows.column("value").to_pylist():
        known = _decode_topics(value)
        names |= dict(known.names)
        gone |= dict.fromkeys(known.gone)
    return KnownTopics(list(names.items()), list(gone))


def _topics_now(
    before: KnownTopics, topic_ids: pa.Table | None, first_partitions: dict[str, bool]
) -> KnownTopics:
    names = dict(before.names)
    if topic_ids is not None:
        pairs = zip(
            *(topic_ids.column(name).to_pylist() for name in ("topic_id", "topic")), strict=True
        )
        for topic_id, topic in sorted(pairs):
            if names.get(topic_id) != topic:
                names.pop(topic_id, None)
                names[topic_id] = topic
    gone = [topic for topic in before.gone if not first_partitions.get(topic, False)]
    gone += sorted(t for t, there in first_partitions.items() if not there and t not in before.gone)
    return KnownTopics(list(names.items())[-_MOST_TOPICS:], gone[-_MOST_TOPICS:])


def _by_group(rows: pa.Table | None) -> Iterator[tuple[str, list[tuple[int, GroupRecord]]]]:
    """Yield each group with its records in the order of the log, each with the log's partition."""
    if rows is None:
        return
    names = ("group", "partition", "offset", "timestamp_ms", "key", "value")
    columns_of = (rows.column(name).to_pylist() for name in names)
    # Keys and values are not compared: a record has its place to itself.
    ordered = sorted(zip(*columns_of, strict=True), key=lambda row: row[:3])
    for group, own in groupby(ordered, key=lambda row: row[0]):
        yield group, [(partition, GroupRecord(*record)) for _, partition, *record in own]


def _row(group: str, one: GroupGeneration) -> _Row:
    row: _Row = {
        "as_of_ms": one.as_of_ms,
        "group": group,
        "group_type": one.group_type,
        "protocol": one.protocol,
        "error": one.error,
        "log_offset": one.log_offset,
    }
    rebalance = one.rebalance
    if rebalance is None:
        return row
    known = bool(rebalance.causes)
    return row | {
        "generation": rebalance.generation,
        "after": or_none(rebalance.after),
        "members": rebalance.members,
        "partitions": or_none(rebalance.partitions),
        "moved": or_none(rebalance.moved),
        "unfinished": rebalance.unfinished if known else None,
        "causes": [
            {name: or_none(getattr(cause, name)) for name in _CAUSE_FIELDS}
            for cause in rebalance.causes
        ]
        if known
        else None,
    }

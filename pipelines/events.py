"""Records of the two topics, decoded with the agents' own codecs into events of one shape."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from caughtup.models.errors import DecodeError
from caughtup.models.records.decoding import RefusedError
from caughtup.models.records.end_offsets import read_end_offsets
from caughtup.models.wire.consumer_offsets import OffsetKey, decode_key, decode_offset_commit
from caughtup.models.wire.record_keys import CONSUMER_OFFSETS
from caughtup.pipelines.schema import LATEST_MS

COMMIT = "commit"
END_OFFSET = "end_offset"


class Record(NamedTuple):
    """A record as Kafka has it; the timestamp in ms since the epoch."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None


class Event(NamedTuple):
    """What one record says of one topic-partition.

    ``log_partition`` and ``log_offset`` tell where the record stands in its own topic. The time
    is when the commit was made or the end offsets were seen; of a tombstone, its record's.
    ``present`` is False for a tombstone. What doesn't apply to the kind is "" or 0;
    where the last readable record ends is None where nobody looked.
    """

    kind: str
    topic: str
    partition: int
    log_partition: int
    log_offset: int
    time_ms: int
    group: str = ""
    present: bool = False
    committed: int = 0
    start_offset: int = 0
    last_stable_offset: int = 0
    end_offset: int = 0
    readable_end_offset: int | None = None


class Undecodable(NamedTuple):
    """A record that doesn't follow its format: which, and why, in one line."""

    record: Record
    why: str

    def __str__(self) -> str:
        record = self.record
        return f"{record.topic}-{record.partition} offset {record.offset}: {self.why}"


def decode_events(records: Iterable[Record]) -> Iterator[Event | Undecodable]:
    """Decode records of ``__consumer_offsets`` and of the end-offsets topic, in their order.

    Every offset commit is an event of its own, since a history wants each and not the last.
    What is neither a commit nor end offsets makes no event.
    """
    for record in records:
        try:
            event = (
                _commit_event(record)
                if record.topic == CONSUMER_OFFSETS
                else _end_offset_event(record)
            )
        except (DecodeError, RefusedError, UnicodeDecodeError) as error:
            yield Undecodable(record, " ".join(str(error).split()))
            continue
        if event is None:
            continue
        if not 0 <= event.time_ms <= LATEST_MS:
            yield Undecodable(record, f"bad_time: {event.time_ms} ms is no time since 1970")
        else:
            yield event


def _commit_event(record: Record) -> Event | None:
    if record.key is None:
        raise DecodeError("no_key", "a record without a key")
    key = decode_key(record.key)
    if not isinstance(key, OffsetKey):
        return None
    if record.value is None:
        return Event(
            COMMIT,
            key.topic,
            key.partition,
            record.partition,
            record.offset,
            record.timestamp_ms,
            group=key.group,
        )
    commit = decode_offset_commit(record.value)
    return Event(
        COMMIT,
        key.topic,
        key.partition,
        record.partition,
        record.offset,
        commit.commit_timestamp_ms,
        group=key.group,
        present=True,
        committed=commit.offset,
    )


def _end_offset_event(record: Record) -> Event:
    (topic, partition), ends = read_end_offsets(record.key, record.value)
    place = (topic, partition, record.partition, record.offset)
    if ends is None:
        return Event(END_OFFSET, *place, record.timestamp_ms)
    return Event(
        END_OFFSET,
        *place,
        ends.as_of_ms,
        present=True,
        start_offset=ends.start_offset,
        last_stable_offset=ends.last_stable_offset,
        end_offset=ends.end_offset,
        readable_end_offset=ends.readable_end_offset,
    )

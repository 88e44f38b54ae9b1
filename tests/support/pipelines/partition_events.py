"""Offset commits and end offsets as events of one kind, for comparison with columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from caughtup.models.errors import DecodeError
from caughtup.models.wire.consumer_offsets import OffsetKey, decode_key, decode_offset_commit
from caughtup.models.wire.record_keys import CONSUMER_OFFSETS
from caughtup.pipelines.events import KafkaRecord, Undecodable, decode_end_offsets
from caughtup.pipelines.schema import LATEST_MS

COMMIT = "commit"
END_OFFSET = "end_offset"


class Event(NamedTuple):
    """A record about one partition.

    ``log_partition`` and ``log_offset`` are the record's own place. The time is that of the commit
    or of the listing of end offsets; a tombstone has its record's. ``present`` is False for a
    tombstone. Fields of the other kind are "" or 0; an unknown readable end offset is None.
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


def decode_events(records: Iterable[KafkaRecord]) -> Iterator[Event | Undecodable]:
    """Decode records of ``__consumer_offsets`` and of the end-offsets topic, in their order.

    Each commit is an event; records of other kinds are left out.
    """
    for record in records:
        if record.topic == CONSUMER_OFFSETS:
            yield from _commit_events(record)
        else:
            yield from _end_offset_events(record)


def _commit_events(record: KafkaRecord) -> Iterator[Event | Undecodable]:
    try:
        event = _commit_event(record)
    except (DecodeError, UnicodeDecodeError) as error:
        yield Undecodable(record, " ".join(str(error).split()))
        return
    if event is None:
        return
    if not 0 <= event.time_ms <= LATEST_MS:
        yield Undecodable(record, f"bad_time: {event.time_ms} ms is not a time since 1970")
    else:
        yield event


def _end_offset_events(record: KafkaRecord) -> Iterator[Event | Undecodable]:
    for event in decode_end_offsets([record]):
        if isinstance(event, Undecodable):
            yield event
            continue
        topic, partition, log_offset, time_ms, present, *ends = event
        place = (topic, partition, record.partition, log_offset)
        yield Event(END_OFFSET, *place, time_ms, "", present, 0, *ends)


def _commit_event(record: KafkaRecord) -> Event | None:
    if record.key is None:
        raise DecodeError("no_key", "a record without a key")
    key = decode_key(record.key)
    if not isinstance(key, OffsetKey):
        return None
    place = (key.topic, key.partition, record.partition, record.offset)
    if record.value is None:
        return Event(COMMIT, *place, record.timestamp_ms, key.group)
    commit = decode_offset_commit(record.value)
    return Event(COMMIT, *place, commit.commit_timestamp_ms, key.group, True, commit.offset)

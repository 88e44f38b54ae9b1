"""Kafka records, those that cannot be decoded, and decoded end offsets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from caughtup.models.records.decoding import RefusedError
from caughtup.models.records.end_offsets import read_end_offsets
from caughtup.pipelines.schema import LATEST_MS


class KafkaRecord(NamedTuple):
    """A record of a Kafka topic; the timestamp is in ms since 1970."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None


class EndOffsetEvent(NamedTuple):
    """A decoded record of the end-offsets topic.

    ``log_offset``: the record's own offset. ``time_ms``: when the end offsets were listed; for a
    partition that is gone (not ``present``), when the record was written; its offsets are 0 then.
    ``readable_end_offset``: the offset after the last readable record, None if unknown.
    """

    topic: str
    partition: int
    log_offset: int
    time_ms: int
    present: bool = False
    start_offset: int = 0
    last_stable_offset: int = 0
    end_offset: int = 0
    readable_end_offset: int | None = None


class Undecodable(NamedTuple):
    """A malformed record, and why, in one line."""

    record: KafkaRecord
    why: str

    def __str__(self) -> str:
        record = self.record
        return f"{record.topic}-{record.partition} offset {record.offset}: {self.why}"


def decode_end_offsets(records: Iterable[KafkaRecord]) -> Iterator[EndOffsetEvent | Undecodable]:
    """Decode records of the end-offsets topic, in their order."""
    for record in records:
        try:
            (topic, partition), ends = read_end_offsets(record.key, record.value)
        except (RefusedError, UnicodeDecodeError) as error:
            yield Undecodable(record, " ".join(str(error).split()))
            continue
        if ends is None:
            event = EndOffsetEvent(topic, partition, record.offset, record.timestamp_ms)
        else:
            event = EndOffsetEvent(
                topic,
                partition,
                record.offset,
                ends.as_of_ms,
                present=True,
                start_offset=ends.start_offset,
                last_stable_offset=ends.last_stable_offset,
                end_offset=ends.end_offset,
                readable_end_offset=ends.readable_end_offset,
            )
        if not 0 <= event.time_ms <= LATEST_MS:
            yield Undecodable(record, f"bad_time: {event.time_ms} ms is not a time since 1970")
        else:
            yield event

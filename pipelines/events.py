"""Records as Kafka has them, those that can't be decoded, and decoded end offsets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from caughtup.models.records.decoding import RefusedError
from caughtup.models.records.end_offsets import read_end_offsets
from caughtup.pipelines.schema import LATEST_MS


class Record(NamedTuple):
    """A record as Kafka has it; the timestamp in ms since the epoch."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None


class EndOffsetEvent(NamedTuple):
    """What a record of the end-offsets topic says of a partition.

    ``log_offset`` is the record's own. ``time_ms`` is when the end offsets were sampled; of a
    partition that is gone (not ``present``), when the record was written, and its offsets are 0.
    ``readable_end_offset``: where the last readable record ends, None where it isn't known.
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
    """A record that doesn't follow its format: which, and why, in one line."""

    record: Record
    why: str

    def __str__(self) -> str:
        record = self.record
        return f"{record.topic}-{record.partition} offset {record.offset}: {self.why}"


def decode_end_offsets(records: Iterable[Record]) -> Iterator[EndOffsetEvent | Undecodable]:
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
            yield Undecodable(record, f"bad_time: {event.time_ms} ms is no time since 1970")
        else:
            yield event

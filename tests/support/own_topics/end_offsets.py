"""Records of caughtup-end-offsets, as the probe writes them."""

from __future__ import annotations

from caughtup.models.ids import TopicPartition
from caughtup.models.offsets import EndOffsets
from caughtup.models.records.end_offsets import FORMAT, EndOffsetsRecord


def end_offsets_record(
    topic: str, partition: int, ends: EndOffsets | int, at_ms: int = 0
) -> tuple[bytes, bytes]:
    """Return a record's key and value: a log from offset 0, its end, and the time (ms)."""
    if isinstance(ends, int):
        ends = EndOffsets(0, ends, ends, at_ms)
    record = EndOffsetsRecord.from_ends(TopicPartition(topic, partition), ends)
    return record.key, FORMAT.encode(record)

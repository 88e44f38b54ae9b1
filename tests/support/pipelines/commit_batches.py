"""Records of ``__consumer_offsets`` as Arrow batches, with the results of the models' decoders."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

from caughtup.models.errors import DecodeError
from caughtup.models.wire.consumer_offsets import (
    OffsetCommit,
    OffsetKey,
    decode_key,
    decode_offset_commit,
)
from caughtup.pipelines.events import KafkaRecord
from caughtup.pipelines.history.decoding.commit_columns import COMMIT_COLUMNS, decode_commit_columns
from tests.support import wire

LATEST_MS = 253_402_300_799_999  # the end of the year 9999
NOW_MS = 1_732_000_000_000
KEY = OffsetKey("billing", "orders", 3)
COMMIT = OffsetCommit(1041, 7, "seen", NOW_MS, -1, b"0123456789abcdef")


class Expected(NamedTuple):
    commits: list[dict[str, object]]
    others: list[int]
    undecodable: list[tuple[int, str]]


def record(
    key: bytes | None, value: bytes | None, at: int = 0, time_ms: int = NOW_MS
) -> KafkaRecord:
    return KafkaRecord("__consumer_offsets", 7, at, time_ms, key, value)


def commit(version: int = 4, key: OffsetKey = KEY, **changes: object) -> KafkaRecord:
    value = wire.offset_commit(COMMIT._replace(**changes), version)
    return record(wire.offset_key(key), value)


def batch_of(records: list[KafkaRecord], bytes_type: pa.DataType | None = None) -> pa.RecordBatch:
    topic, partition, offset, time_ms, key, value = zip(*records, strict=True) or ((),) * 6
    raw = pa.binary() if bytes_type is None else bytes_type
    return pa.RecordBatch.from_arrays(
        [
            pa.array(topic, pa.string()),
            pa.array(partition, pa.int32()),
            pa.array(offset, pa.int64()),
            pa.array(time_ms, pa.int64()),
            pa.array(key, raw),
            pa.array(value, raw),
        ],
        names=list(KafkaRecord._fields),
    )


def known(number: int) -> int | None:
    return None if number == -1 else number


def one_by_one(records: list[KafkaRecord]) -> Expected:
    """Decode records one by one with the models' decoders."""
    expected = Expected([], [], [])
    for row, (_, log_partition, log_offset, record_ms, raw_key, raw_value) in enumerate(records):
        try:
            if raw_key is None:
                raise DecodeError("no_key", "a record without a key")
            key = decode_key(raw_key)
            if not isinstance(key, OffsetKey):
                expected.others.append(row)
                continue
            value = None if raw_value is None else decode_offset_commit(raw_value)
            time_ms = record_ms if value is None else value.commit_timestamp_ms
            if not 0 <= time_ms <= LATEST_MS:
                raise DecodeError("bad_time", f"{time_ms} ms is not a time since 1970")
        except DecodeError as error:
            expected.undecodable.append((row, str(error)))
            continue
        expected.commits.append(
            {
                **key._asdict(),
                "present": value is not None,
                "committed": value and value.offset,
                "leader_epoch": value and known(value.leader_epoch),
                "metadata": None if value is None else value.metadata,
                "commit_time_ms": time_ms,
                "expire_time_ms": value and known(value.expire_timestamp_ms),
                "topic_id": value and value.topic_id,
                "log_partition": log_partition,
                "log_offset": log_offset,
                "record_time_ms": record_ms,
            }
        )
    return expected


def decode(batch: pa.RecordBatch) -> Expected:
    commits, others, undecodable = decode_commit_columns(batch)
    commits.validate(full=True)
    assert commits.schema == COMMIT_COLUMNS
    return Expected(commits.to_pylist(), others.tolist(), undecodable)

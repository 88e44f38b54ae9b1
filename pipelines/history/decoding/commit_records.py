"""Records of ``__consumer_offsets`` whose bytes are not in the usual format, one by one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import pyarrow as pa

from caughtup.models.errors import DecodeError
from caughtup.models.wire.bounds import time_ms
from caughtup.models.wire.consumer_offsets import OffsetKey, decode_key, decode_offset_commit


class CommitRecords(NamedTuple):
    """Commits by row, as the fields of COMMIT_COLUMNS; rows of other keys; rows that are neither.

    Rows are in the order that was asked for.
    """

    commits: dict[int, dict[str, object]]
    others: list[int]
    undecodable: list[tuple[int, str]]


def decode_commit_records(batch: pa.RecordBatch, rows: Iterable[int]) -> CommitRecords:
    """Decode some rows of a batch as decode_commit_columns has it, with the models' decoders."""
    found = CommitRecords({}, [], [])
    keys = batch.column("key")
    for row in rows:
        try:
            raw_key = keys[row].as_py()
            if raw_key is None:
                raise DecodeError("no_key", "a record without a key")
            key = decode_key(raw_key)
            if isinstance(key, OffsetKey):
                found.commits[row] = _commit(batch, row, key)
            else:
                found.others.append(row)
        except DecodeError as error:
            found.undecodable.append((row, " ".join(str(error).split())))
    return found


def _commit(batch: pa.RecordBatch, row: int, key: OffsetKey) -> dict[str, object]:
    record_time = batch.column("timestamp_ms")[row].as_py()
    raw_value = batch.column("value")[row].as_py()
    fields: dict[str, object] = {}
    if raw_value is None:
        time = time_ms(record_time)
    else:
        value = decode_offset_commit(raw_value)
        time = value.commit_timestamp_ms
        fields = {
            "committed": value.offset,
            "leader_epoch": _known(value.leader_epoch),
            "metadata": value.metadata,
            "expire_time_ms": _known(value.expire_timestamp_ms),
            "topic_id": value.topic_id,
        }
    return fields | {
        "group": key.group,
        "topic": key.topic,
        "partition": key.partition,
        "present": raw_value is not None,
        "commit_time_ms": time,
        "log_partition": batch.column("partition")[row].as_py(),
        "log_offset": batch.column("offset")[row].as_py(),
        "record_time_ms": record_time,
    }


def _known(number: int) -> int | None:
    return None if number == -1 else number

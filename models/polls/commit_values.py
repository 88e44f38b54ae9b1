"""Values of committed offsets, by column: every version's fields, without a step for each record.

What is accepted is what ``decode_offset_commit`` accepts, save for forms that nobody writes: those
are not good here, and are left to it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from caughtup.models.polls.column_reader import ColumnReader
from caughtup.models.wire.bounds import LATEST_MS

TOPIC_ID_BYTES = 16
_VERSIONS = range(5)
# The tag of the topic id and the length after it, a byte each, as one number.
_TOPIC_ID_HEAD = TOPIC_ID_BYTES


def read_commit_values(values: ColumnReader) -> dict[str, NDArray[Any]]:
    """Read every version's fields into one array each, -1 or zeroes where a row has none.

    ``committed`` (int64), ``epoch`` (int32), ``metadata_start`` and ``metadata_end`` (where its
    bytes are), ``time`` and ``expire`` (ms), ``topic_id`` (16 bytes). Rows that can't be read, or
    whose numbers are out of range, are not good afterwards.
    """
    count = len(values.good)
    nowhere = values.position
    version = values.int16()
    values.require((version >= _VERSIONS.start) & (version < _VERSIONS.stop))
    columns: dict[str, NDArray[Any]] = {
        "committed": np.zeros(count, np.int64),
        "epoch": np.full(count, -1, np.int32),
        "metadata_start": nowhere.copy(),
        "metadata_end": nowhere.copy(),
        "time": np.zeros(count, np.int64),
        "expire": np.full(count, -1, np.int64),
        "topic_id": np.zeros(count, np.dtype((np.void, TOPIC_ID_BYTES))),
    }
    for one in _VERSIONS:
        rows = np.flatnonzero(values.good & (version == one))
        if not rows.size:
            continue
        if rows.size == count:
            return columns | _read_version(values, one)
        selected = values.select(rows)
        for name, read in _read_version(selected, one).items():
            columns[name][rows] = read
        values.put_back(rows, selected)
    return columns


def _read_version(values: ColumnReader, version: int) -> dict[str, NDArray[Any]]:
    """Read what follows the version. Source: Kafka's ``OffsetCommitValue``."""
    flexible = version >= 4
    fields: dict[str, NDArray[Any]] = {"committed": values.int64()}
    values.require(fields["committed"] >= 0)
    if version >= 3:
        fields["epoch"] = values.int32()
        values.require(fields["epoch"] >= -1)
    length = values.uvarint(2) - 1 if flexible else values.int16()
    fields["metadata_start"], fields["metadata_end"] = values.span(length)
    fields["time"] = values.int64()
    values.require((fields["time"] >= 0) & (fields["time"] <= LATEST_MS))
    if version == 1:
        fields["expire"] = np.maximum(values.int64(), -1)
    if flexible:
        fields["topic_id"] = _read_topic_id(values)
    return fields


def _read_topic_id(values: ColumnReader) -> NDArray[np.void]:
    """Read tagged fields, of which there may be none, or the topic id's alone."""
    tags = values.uint8()
    values.require(tags <= 1)
    rows = np.flatnonzero(tags == 1)
    if rows.size == len(tags):
        values.require(values.int16() == _TOPIC_ID_HEAD)
        return values.raw(TOPIC_ID_BYTES)
    topic_id = np.zeros(len(tags), np.dtype((np.void, TOPIC_ID_BYTES)))
    tagged = values.select(rows)
    tagged.require(tagged.int16() == _TOPIC_ID_HEAD)
    topic_id[rows] = tagged.raw(TOPIC_ID_BYTES)
    values.put_back(rows, tagged)
    return topic_id

"""Files in the checkpoint of a Spark query: its id, each batch's end offsets, the first offsets.

Spark doesn't specify these formats. Decoded are those of Spark 4.0 and of the next release by its
sources; others are refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, NamedTuple, TypeVar

import msgspec  # noqa: TID251 - allowed here

from caughtup.models.ids import NUMBER_MAX, TopicPartition
from caughtup.models.records.decoding import (
    BAD_JSON,
    BAD_TYPE,
    OTHER_SCHEMA,
    TOO_LARGE,
    TOO_MANY,
    RefusedError,
    require_bounded,
)
from caughtup.models.records.fields import Offset, TimeMs, Topic

T = TypeVar("T")
#: The greatest size of a file: 100,000 partitions take two megabytes.
MOST_BYTES = 16 << 20
MOST_ID_BYTES = 4 << 10
#: The most partitions and sources of one query.
MOST_PARTITIONS = 200_000
MOST_SOURCES = 1_000
#: The line of a source that has no offset yet.
_NO_OFFSET = b"-"
_INDEXED, _NAMED = b"v1", b"v2"

_Partitions = dict[Annotated[int, msgspec.Meta(ge=0, le=NUMBER_MAX)], Offset]
_kafka = msgspec.json.Decoder(dict[Topic, _Partitions])
_any_numbers = msgspec.json.Decoder(dict[str, dict[str, object]])
_any_json = msgspec.json.Decoder(msgspec.Raw)


class _Metadata(msgspec.Struct, rename="camel"):
    batch_timestamp_ms: TimeMs = 0


class _Query(msgspec.Struct):
    id: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


_metadata = msgspec.json.Decoder(_Metadata)
_query = msgspec.json.Decoder(_Query)


class BatchEnd(NamedTuple):
    """The end of a batch: the next offset to read of each of its partitions.

    ``at_ms`` is when the batch began, None if it isn't in the file. ``sources`` is the number of
    Kafka sources with offsets.
    """

    at_ms: int | None
    offsets: Mapping[TopicPartition, int]
    sources: int


def decode_query_id(value: bytes) -> str:
    """Return the query's id, the same after each restart, from ``metadata``. Raises RefusedError."""
    require_bounded(value, MOST_ID_BYTES)
    return _decoded(_query, value).id


def decode_batch_end(value: bytes) -> BatchEnd:
    """Return the end of a batch from ``offsets/N``. Raises RefusedError.

    Other sources than Kafka are ignored. The lower offset counts of a partition that two sources
    read.
    """
    version, *lines = _lines(value)
    if version not in (_INDEXED, _NAMED):
        raise RefusedError(OTHER_SCHEMA, f"{_shown(version)}, not v1 or v2")
    if len(lines) < 2:
        raise RefusedError(BAD_JSON, "no line of a source: it ends too early")
    if len(lines) - 1 > MOST_SOURCES:
        raise RefusedError(TOO_MANY, f"{len(lines) - 1:,} sources")
    header, *sources = lines
    at_ms = 0
    if header:
        at_ms = _decoded(_metadata, header).batch_timestamp_ms
    if version == _NAMED:
        sources = [_unnamed(source) for source in sources]
    found = [_kafka_offsets(source) for source in sources if source != _NO_OFFSET]
    kafka = [offsets for offsets in found if offsets is not None]
    return BatchEnd(at_ms or None, _lowest(kafka), len(kafka))


def decode_first_offsets(value: bytes) -> Mapping[TopicPartition, int] | None:
    """Return the first offsets of a Kafka source from ``sources/N/0``; None for another source.

    Raises RefusedError.
    """
    if not value.startswith(b"\0"):
        return None  # other sources don't write this byte
    lines = _lines(value[1:])
    offsets = _kafka_offsets(b"\n".join(lines[1:] if lines[0] == _INDEXED else lines))
    return None if offsets is None else _lowest([offsets])


def is_commit(value: bytes) -> bool:
    """Return whether a file ``commits/N`` is complete: then it begins with its version."""
    return value.startswith(b"v")


def _lines(value: bytes) -> list[bytes]:
    if len(value) > MOST_BYTES:
        raise RefusedError(TOO_LARGE, f"{len(value):,} bytes, more than {MOST_BYTES:,}")
    if (lines := value.count(b"\n")) > MOST_SOURCES + 2:
        raise RefusedError(TOO_MANY, f"{lines:,} lines")
    return [line.strip() for line in value.split(b"\n")]


def _unnamed(source: bytes) -> bytes:
    _, colon, offset = source.partition(b":")
    if not colon:
        raise RefusedError(BAD_JSON, "a line without a source's name")
    return offset


def _kafka_offsets(line: bytes) -> dict[str, dict[int, int]] | None:
    """Return the offsets in the line of a source; None if it isn't Kafka's. Raises RefusedError."""
    require_bounded(line, MOST_BYTES)
    try:
        found: dict[str, dict[int, int]] = _kafka.decode(line)
    except msgspec.ValidationError as error:
        if _is_kafka_like(line):
            raise RefusedError(BAD_TYPE, str(error)) from None
        return None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RefusedError(BAD_JSON, str(error)) from None
    return found


def _is_kafka_like(line: bytes) -> bool:
    """Return whether a line has numbers by topic and partition, as only Kafka's source writes."""
    try:
        topics = _any_numbers.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        _decoded(_any_json, line)
        return False
    numbers = [(key, of) for partitions in topics.values() for key, of in partitions.items()]
    return bool(numbers) and all(
        key.removeprefix("-").isdecimal() and isinstance(of, int | float) for key, of in numbers
    )


def _lowest(sources: Iterable[Mapping[str, Mapping[int, int]]]) -> dict[TopicPartition, int]:
    found: dict[TopicPartition, int] = {}
    for topics in sources:
        if sum(map(len, topics.values())) + len(found) > MOST_PARTITIONS:
            raise RefusedError(TOO_MANY, f"more than {MOST_PARTITIONS:,} partitions")
        for topic, partitions in topics.items():
            for number, offset in partitions.items():
                partition = TopicPartition(topic, number)
                found[partition] = min(offset, found.get(partition, offset))
    return found


def _decoded(decoder: msgspec.json.Decoder[T], value: bytes) -> T:
    require_bounded(value, MOST_BYTES)
    try:
        return decoder.decode(value)
    except msgspec.ValidationError as error:
        raise RefusedError(BAD_TYPE, str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RefusedError(BAD_JSON, str(error)) from None


def _shown(version: bytes) -> str:
    return version[:20].decode(errors="backslashreplace") or "no version"

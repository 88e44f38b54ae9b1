"""The types of records' fields, with Kafka's bounds and with units."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

import msgspec  # noqa: TID251 - allowed here

from caughtup.models.wire.bounds import LATEST_MS

#: Kafka's greatest length of a topic's name, which limits that of a stateful application, too.
MOST_TOPIC_CHARACTERS = 249
#: Kafka bounds a group's name only by the size of its records, and accepts an empty one; names of
#: applications are shorter.
MOST_GROUP_BYTES = 32_767
MOST_APPLICATION_CHARACTERS = 1_000
#: A consumer's id contains the application's, the process's and the thread's.
MOST_NAME_CHARACTERS = 1_000
MOST_PROCESS_CHARACTERS = 255

K = TypeVar("K")
T = TypeVar("T")
Struct = TypeVar("Struct", bound=msgspec.Struct)

_LONG_MAX = 2**63 - 1
INT_MAX = 2**31 - 1
#: ``$`` alone also matches before a trailing newline.
_END = r"$(?!\n)"


def _unit(unit: str) -> msgspec.Meta:
    """Return a number's unit, as ``x-unit`` in JSON Schema."""
    return msgspec.Meta(extra_json_schema={"x-unit": unit})


Offset = Annotated[int, msgspec.Meta(ge=0, le=_LONG_MAX), _unit("offset")]
#: A number of offsets, or a sum of them over the changelogs of a task.
Offsets = Annotated[int, msgspec.Meta(ge=0, le=_LONG_MAX), _unit("offsets")]
#: A lag with Kafka Streams' sentinels: -2 for a running active, -3 for unknown.
Lag = Annotated[int, msgspec.Meta(ge=-3, le=_LONG_MAX), _unit("offsets")]
Bytes = Annotated[int, msgspec.Meta(ge=0, le=_LONG_MAX), _unit("bytes")]
BytesPerSecond = Annotated[int, msgspec.Meta(ge=0, le=_LONG_MAX), _unit("bytes/s")]
#: A trend of bytes: a copy may shrink.
BytesTrend = Annotated[float, msgspec.Meta(ge=-1e30, le=1e30), _unit("bytes/s")]
Count = Annotated[int, msgspec.Meta(ge=0, le=_LONG_MAX)]
Long = Annotated[int, msgspec.Meta(ge=-_LONG_MAX - 1, le=_LONG_MAX)]
Partition = Annotated[int, msgspec.Meta(ge=0, le=INT_MAX)]
Broker = Annotated[int, msgspec.Meta(ge=0, le=INT_MAX)]
#: -1 if a broker doesn't know it.
Epoch = Annotated[int, msgspec.Meta(ge=-1, le=INT_MAX)]
Generation = Annotated[int, msgspec.Meta(ge=0, le=INT_MAX)]
Int = Annotated[int, msgspec.Meta(ge=-INT_MAX - 1, le=INT_MAX)]
TimeMs = Annotated[int, msgspec.Meta(ge=0, le=LATEST_MS), _unit("ms since the epoch")]
#: A time as coordinators write it: -1 from older ones, which don't know it.
StateTimeMs = Annotated[int, msgspec.Meta(ge=-1, le=LATEST_MS), _unit("ms since the epoch")]
#: A time that a leader computes from its configs, which may have any value.
DueTimeMs = Annotated[
    int, msgspec.Meta(ge=-_LONG_MAX - 1, le=_LONG_MAX), _unit("ms since the epoch")
]
DurationMs = Annotated[int, msgspec.Meta(ge=0, le=_LONG_MAX), _unit("ms")]
#: The length of a window; the time between two triggers, or of a batch, at most a year.
WindowSeconds = Annotated[int, msgspec.Meta(gt=0, le=86_400), _unit("s")]
TriggerSeconds = Annotated[float, msgspec.Meta(ge=0, le=366 * 86_400), _unit("s")]
#: The time between two triggers of the stream that measures rates.
RatesTriggerSeconds = Annotated[float, msgspec.Meta(ge=0, le=3_600), _unit("s")]
#: Any other time; Kafka's longest interval is 3e8 years.
MOST_SECONDS = 1e30
Seconds = Annotated[float, msgspec.Meta(ge=0, le=MOST_SECONDS), _unit("s")]
SignedSeconds = Annotated[float, msgspec.Meta(ge=-1e30, le=1e30), _unit("s")]
OffsetsPerSecond = Annotated[float, msgspec.Meta(ge=-1e30, le=1e30), _unit("offsets/s")]
#: The error of a rate.
Spread = Annotated[float, msgspec.Meta(ge=0, le=1e30), _unit("offsets/s")]
RecordsPerSecond = Annotated[float, msgspec.Meta(ge=0, le=1e30), _unit("records/s")]

Topic = Annotated[str, msgspec.Meta(pattern=rf"^[a-zA-Z0-9._-]{{1,{MOST_TOPIC_CHARACTERS}}}{_END}")]
TopicId = Annotated[str, msgspec.Meta(pattern=rf"^[0-9a-f]{{32}}{_END}")]
#: The group of an application, and any group.
Group = Annotated[str, msgspec.Meta(min_length=1, max_length=MOST_APPLICATION_CHARACTERS)]
AnyGroup = Annotated[str, msgspec.Meta(max_length=MOST_GROUP_BYTES)]
#: The name of a client, a member, a config or a rack, or an id.
Name = Annotated[str, msgspec.Meta(max_length=MOST_NAME_CHARACTERS)]
#: A process's id as its application sets it; in Kafka Streams, a UUID.
Process = Annotated[str, msgspec.Meta(min_length=1, max_length=MOST_PROCESS_CHARACTERS)]
ProcessUuid = Annotated[
    str,
    msgspec.Meta(
        pattern=rf"^[0-9a-fA-F]{{8}}(-[0-9a-fA-F]{{4}}){{3}}-[0-9a-fA-F]{{12}}{_END}", max_length=36
    ),
]
Task = Annotated[str, msgspec.Meta(pattern=rf"^(0|[1-9][0-9]{{0,8}})_(0|[1-9][0-9]{{0,8}}){_END}")]
#: A task where there may be millions: its form is checked only when the scenario is read.
TaskText = Annotated[str, msgspec.Meta(min_length=3, max_length=19)]
Brokers = tuple[Broker, ...]
#: The least and the greatest value of an offset sum.
OffsetSums = Annotated[list[Offsets], msgspec.Meta(min_length=2, max_length=2)]

#: A field that isn't in the JSON object, where null would have another meaning.
Absent = msgspec.UnsetType
ABSENT = msgspec.UNSET


#: A part that is encoded JSON already.
Json = msgspec.Raw


class Record(msgspec.Struct):
    """The value of a record. Each field has a line in its struct's docstring, for docs/topics.md.

    schema: the version of what the fields mean.
    """

    schema: int


class Part(msgspec.Struct):
    """A part of a record."""


def renamed(name: str) -> Any:
    """Return a required field whose JSON name is a keyword in Python."""
    return msgspec.field(name=name)


def renamed_absent(name: str) -> Absent:
    """Return an optional field whose JSON name is a keyword in Python."""
    field: Absent = msgspec.field(name=name, default=ABSENT)
    return field


def no_entries() -> dict[K, T]:
    """Return a field that is an object, empty if absent."""
    return msgspec.field(default_factory=dict)


def or_absent(value: T | None) -> T | Absent:
    """Return a value for an optional field: ABSENT for None."""
    return ABSENT if value is None else value


def or_none(field: T | Absent | None) -> T | None:
    """Return the value of an optional field: None if it is absent."""
    return None if isinstance(field, Absent) else field


def changed(record: Struct, **fields: object) -> Struct:
    """Return a record with other values of some fields."""
    return msgspec.structs.replace(record, **fields)


def extended(kind: type[Struct], part: msgspec.Struct, **fields: object) -> Struct:
    """Return a record as ``kind``, which extends its type, with the added fields."""
    return kind(**{**msgspec.structs.asdict(part), **fields})


def as_json(part: msgspec.Struct) -> Json:
    """Return a record as encoded JSON."""
    return Json(msgspec.json.encode(part))


def json_values(part: msgspec.Struct) -> dict[str, object]:
    """Return a record as a dict of JSON values, for readers that take any JSON."""
    fields: dict[str, object] = msgspec.json.decode(msgspec.json.encode(part))
    return fields

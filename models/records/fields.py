"""What fields of records may be: types with their bounds, as Kafka bounds them, and their units."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

import msgspec  # noqa: TID251 - allowed here

from caughtup.models.wire.bounds import LATEST_MS

#: Kafka's longest name of a topic, and with it that of an application with state.
MOST_TOPIC_CHARACTERS = 249
#: Of a group's name Kafka bounds only what its own records hold, and lets it be empty. Nobody
#: calls an application so.
MOST_GROUP_BYTES = 32_767
MOST_APPLICATION_CHARACTERS = 1_000
#: A consumer's id is made of its application's, the process's and its thread's.
MOST_NAME_CHARACTERS = 1_000
MOST_PROCESS_CHARACTERS = 255

T = TypeVar("T")
Struct = TypeVar("Struct", bound=msgspec.Struct)

_LONG_MAX = 2**63 - 1
INT_MAX = 2**31 - 1
#: ``$`` alone lets a line's end through.
_END = r"$(?!\n)"


def _unit(unit: str) -> msgspec.Meta:
    """Return a number's unit, which JSON Schema has as ``x-unit``."""
    return msgspec.Meta(extra_json_schema={"x-unit": unit})


Offset = Annotated[int, msgspec.Meta(ge=0, le=_LONG_MAX), _unit("offset")]
#: A number of offsets, or a sum of them over the changelogs of a task.
Offsets = Annotated[int, msgspec.Meta(ge=0, le=_LONG_MAX), _unit("offsets")]
#: A lag as Kafka Streams has it: -2 is a running active's, -3 is unknown.
Lag = Annotated[int, msgspec.Meta(ge=-3, le=_LONG_MAX), _unit("offsets")]
Bytes = Annotated[int, msgspec.Meta(ge=0, le=_LONG_MAX), _unit("bytes")]
BytesPerSecond = Annotated[int, msgspec.Meta(ge=0, le=_LONG_MAX), _unit("bytes/s")]
#: The same as a trend has it: a copy may shrink.
BytesTrend = Annotated[float, msgspec.Meta(ge=-1e30, le=1e30), _unit("bytes/s")]
Count = Annotated[int, msgspec.Meta(ge=0, le=_LONG_MAX)]
Long = Annotated[int, msgspec.Meta(ge=-_LONG_MAX - 1, le=_LONG_MAX)]
Partition = Annotated[int, msgspec.Meta(ge=0, le=INT_MAX)]
Broker = Annotated[int, msgspec.Meta(ge=0, le=INT_MAX)]
#: -1 where a broker doesn't know it.
Epoch = Annotated[int, msgspec.Meta(ge=-1, le=INT_MAX)]
Generation = Annotated[int, msgspec.Meta(ge=0, le=INT_MAX)]
Int = Annotated[int, msgspec.Meta(ge=-INT_MAX - 1, le=INT_MAX)]
TimeMs = Annotated[int, msgspec.Meta(ge=0, le=LATEST_MS), _unit("ms since the epoch")]
#: The same as older coordinators write it: -1 where they don't know.
StateTimeMs = Annotated[int, msgspec.Meta(ge=-1, le=LATEST_MS), _unit("ms since the epoch")]
#: The same as a leader computes it, whatever its configs are.
DueTimeMs = Annotated[
    int, msgspec.Meta(ge=-_LONG_MAX - 1, le=_LONG_MAX), _unit("ms since the epoch")
]
DurationMs = Annotated[int, msgspec.Meta(ge=0, le=_LONG_MAX), _unit("ms")]
#: Of a window, between two triggers, or of a batch, which nobody waits a year for.
WindowSeconds = Annotated[int, msgspec.Meta(gt=0, le=86_400), _unit("s")]
TriggerSeconds = Annotated[float, msgspec.Meta(ge=0, le=366 * 86_400), _unit("s")]
#: The same of who measures rates, over a quarter of an hour at most.
RatesTriggerSeconds = Annotated[float, msgspec.Meta(ge=0, le=3_600), _unit("s")]
#: Any other time. Kafka's longest interval is 3e8 years.
MOST_SECONDS = 1e30
Seconds = Annotated[float, msgspec.Meta(ge=0, le=MOST_SECONDS), _unit("s")]
SignedSeconds = Annotated[float, msgspec.Meta(ge=-1e30, le=1e30), _unit("s")]
OffsetsPerSecond = Annotated[float, msgspec.Meta(ge=-1e30, le=1e30), _unit("offsets/s")]
#: How far a rate may be off.
Spread = Annotated[float, msgspec.Meta(ge=0, le=1e30), _unit("offsets/s")]
RecordsPerSecond = Annotated[float, msgspec.Meta(ge=0, le=1e30), _unit("records/s")]

Topic = Annotated[str, msgspec.Meta(pattern=rf"^[a-zA-Z0-9._-]{{1,{MOST_TOPIC_CHARACTERS}}}{_END}")]
TopicId = Annotated[str, msgspec.Meta(pattern=rf"^[0-9a-f]{{32}}{_END}")]
#: The group of an application, and any group that there is.
Group = Annotated[str, msgspec.Meta(min_length=1, max_length=MOST_APPLICATION_CHARACTERS)]
AnyGroup = Annotated[str, msgspec.Meta(max_length=MOST_GROUP_BYTES)]
#: A client's or a member's name, a config's, a rack's, an id.
Name = Annotated[str, msgspec.Meta(max_length=MOST_NAME_CHARACTERS)]
#: A process as the application names it; of Kafka Streams' own, a UUID.
Process = Annotated[str, msgspec.Meta(min_length=1, max_length=MOST_PROCESS_CHARACTERS)]
ProcessUuid = Annotated[
    str,
    msgspec.Meta(
        pattern=rf"^[0-9a-fA-F]{{8}}(-[0-9a-fA-F]{{4}}){{3}}-[0-9a-fA-F]{{12}}{_END}", max_length=36
    ),
]
Task = Annotated[str, msgspec.Meta(pattern=rf"^(0|[1-9][0-9]{{0,8}})_(0|[1-9][0-9]{{0,8}}){_END}")]
#: The same where there may be millions, which are held to their form as a scenario is read.
TaskText = Annotated[str, msgspec.Meta(min_length=3, max_length=19)]
Brokers = tuple[Broker, ...]
#: The least and the greatest that an offset sum was.
OffsetSums = Annotated[list[Offsets], msgspec.Meta(min_length=2, max_length=2)]

#: What is not in a record at all, where null would say something else.
Absent = msgspec.UnsetType
ABSENT = msgspec.UNSET


class Record(msgspec.Struct):
    """The value of a record. Each field has a line in its struct's docstring, for docs/topics.md.

    schema: the version of what the fields mean.
    """

    schema: int


class Part(msgspec.Struct):
    """A part of a record."""


def renamed(name: str) -> Any:
    """Return a field that must be there, whose JSON name Python keeps for itself."""
    return msgspec.field(name=name)


def renamed_absent(name: str) -> Any:
    """Return a field that may be absent, whose JSON name Python keeps for itself."""
    return msgspec.field(name=name, default=ABSENT)


def no_entries() -> Any:
    """Return a field that is an object, empty where it is absent."""
    return msgspec.field(default_factory=dict)


def or_absent(value: T | None) -> T | Absent:
    """Return a value as a field that may be absent has it; None is absent."""
    return ABSENT if value is None else value


def or_none(field: T | Absent | None) -> T | None:
    """Return the value of a field that may be absent, None where it is."""
    return None if isinstance(field, Absent) else field


def changed(record: Struct, **fields: Any) -> Struct:
    """Return a record with other values of some fields."""
    return msgspec.structs.replace(record, **fields)


def json_values(part: msgspec.Struct) -> dict[str, Any]:
    """Return a record as JSON's own values, for readers that take any JSON."""
    fields: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(part))
    return fields

"""What fields of records may be: each type with its bounds, as Kafka bounds it where it does."""

from __future__ import annotations

from typing import Annotated, Any

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

_LONG_MAX = 2**63 - 1
_INT_MAX = 2**31 - 1
#: ``$`` alone lets a line's end through.
_END = r"$(?!\n)"

#: An offset, a number of offsets, of bytes, or of bytes a second.
Offset = Annotated[int, msgspec.Meta(ge=0, le=_LONG_MAX)]
Count = Offset
#: A lag as Kafka Streams tells it: -2 is a running active's, -3 is unknown.
Lag = Annotated[int, msgspec.Meta(ge=-3, le=_LONG_MAX)]
Long = Annotated[int, msgspec.Meta(ge=-_LONG_MAX - 1, le=_LONG_MAX)]
Partition = Annotated[int, msgspec.Meta(ge=0, le=_INT_MAX)]
Broker = Annotated[int, msgspec.Meta(ge=0, le=_INT_MAX)]
#: -1 where a broker doesn't know it.
Epoch = Annotated[int, msgspec.Meta(ge=-1, le=_INT_MAX)]
Generation = Annotated[int, msgspec.Meta(ge=0, le=_INT_MAX)]
Int = Annotated[int, msgspec.Meta(ge=-_INT_MAX - 1, le=_INT_MAX)]
#: Milliseconds since the epoch.
TimeMs = Annotated[int, msgspec.Meta(ge=0, le=LATEST_MS)]
#: The same as older coordinators write it: -1 where they don't know.
StateTimeMs = Annotated[int, msgspec.Meta(ge=-1, le=LATEST_MS)]
#: Seconds of a window, between two triggers, or of a batch, which nobody waits a year for.
WindowSeconds = Annotated[int, msgspec.Meta(gt=0, le=86_400)]
TriggerSeconds = Annotated[float, msgspec.Meta(ge=0, le=366 * 86_400)]
#: The same of who measures rates, over a quarter of an hour at most.
RatesTriggerSeconds = Annotated[float, msgspec.Meta(ge=0, le=3_600)]
#: Any other seconds, or whatever there is in one. Kafka's longest interval is 3e8 years.
Amount = Annotated[float, msgspec.Meta(ge=0, le=1e30)]
Rate = Annotated[float, msgspec.Meta(ge=-1e30, le=1e30)]

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
#: The same where there may be millions, which are looked at once more as a scenario.
TaskText = Annotated[str, msgspec.Meta(min_length=3, max_length=19)]
Brokers = tuple[Broker, ...]
#: What an offset sum was between.
OffsetSums = Annotated[list[Offset], msgspec.Meta(min_length=2, max_length=2)]

#: What is not in a record at all, where null would say something else.
Absent = msgspec.UnsetType
ABSENT = msgspec.UNSET


class Record(msgspec.Struct):
    """The value of a record. ``schema``: the version of what its fields mean."""

    schema: int


class Part(msgspec.Struct):
    """A part of a record."""


def renamed(name: str) -> Any:
    """Give a field that must be there a name that Python keeps for itself."""
    return msgspec.field(name=name)


def renamed_absent(name: str) -> Any:
    """Give a field that may be absent a name that Python keeps for itself."""
    return msgspec.field(name=name, default=ABSENT)


def no_entries() -> Any:
    """Give a field that is an object no entries where it is absent."""
    return msgspec.field(default_factory=dict)


def builtins_of(record: Record) -> dict[str, Any]:
    """Return a record as JSON's own values, as it was written."""
    fields: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(record))
    return fields

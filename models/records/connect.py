"""Records of a Connect cluster's own topics, which its workers write: configs, statuses, offsets.

Configurations, stack traces and offsets may contain passwords, so only the fields of these values
leave this file.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal, TypeVar

import msgspec  # noqa: TID251 - allowed here

from caughtup.models.ids import NUMBER_MAX, ConnectorTaskId
from caughtup.models.records.decoding import (
    BAD_JSON,
    BAD_KEY,
    BAD_TYPE,
    TOO_LARGE,
    RefusedError,
    require_bounded,
)

T = TypeVar("T")
#: The greatest size of a value: configurations of connectors contain schemas and certificates.
MOST_BYTES = 1 << 20
MOST_KEY_BYTES = 64 << 10
#: The most characters that are kept of a text in a configuration or a status.
CHARACTERS = 1_000
#: The most tasks of one connector.
MOST_TASKS = 100_000

#: A connector or one of its tasks.
Subject = str | ConnectorTaskId


def key_text(key: bytes | None) -> str:
    """Return a key as text. Raises RefusedError."""
    if key is None:
        raise RefusedError(BAD_KEY, "a record without a key")
    if len(key) > MOST_KEY_BYTES:
        raise RefusedError(TOO_LARGE, f"a key of {len(key):,} bytes")
    try:
        return key.decode()
    except UnicodeDecodeError:
        raise RefusedError(BAD_KEY, "a key that isn't UTF-8") from None


def task_named(name: str) -> ConnectorTaskId:
    """Return the task of a name such as ``orders-sink-0``. Raises RefusedError."""
    connector, dash, number = name.rpartition("-")
    if not dash or not number.isascii() or not number.isdecimal() or len(number) > 9:
        raise RefusedError(BAD_KEY, "not the name of a task")
    task = int(number)
    if task > NUMBER_MAX:
        raise RefusedError(BAD_KEY, "not the number of a task")
    return ConnectorTaskId(connector, task)


def decoded(decoder: msgspec.json.Decoder[T], value: bytes) -> T:
    """Return a decoded value.

    Raises RefusedError, whose message quotes nothing of the value, as it may contain a password.
    """
    require_bounded(value, MOST_BYTES)
    try:
        return decoder.decode(value)
    except msgspec.ValidationError:
        raise RefusedError(BAD_TYPE, "fields of other types than Connect writes") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise RefusedError(BAD_JSON, "not JSON") from None


TargetState = Literal["STARTED", "PAUSED", "STOPPED"]


@dataclass(frozen=True, slots=True)
class ConnectorConfig:
    """The stored part of a connector's configuration; ``group`` is a sink's consumer group.

    ``tasks_max`` is None if it isn't a number. A source has no ``topics``.
    """

    connector: str
    connector_class: str
    tasks_max: int | None
    topics: tuple[str, ...]
    topics_regex: str
    group: str

    @property
    def is_sink(self) -> bool:
        """Whether it reads topics."""
        return bool(self.topics or self.topics_regex)


@dataclass(frozen=True, slots=True)
class ConnectorDeleted:
    """A connector was deleted."""

    connector: str


@dataclass(frozen=True, slots=True)
class TaskConfigured:
    """A task's configuration was written; it takes effect at ``TasksCommitted``."""

    task: ConnectorTaskId


@dataclass(frozen=True, slots=True)
class TasksCommitted:
    """The number of a connector's tasks from now on."""

    connector: str
    tasks: int


@dataclass(frozen=True, slots=True)
class TargetStateSet:
    """A connector's new target state."""

    connector: str
    state: TargetState


ConfigEvent = ConnectorConfig | ConnectorDeleted | TaskConfigured | TasksCommitted | TargetStateSet


class _Properties(msgspec.Struct):
    properties: dict[str, str | None]


class _Tasks(msgspec.Struct):
    tasks: int


class _Target(msgspec.Struct):
    state: str | None = None
    second: str | None = msgspec.field(default=None, name="state.v2")


_properties = msgspec.json.Decoder(_Properties)
_tasks = msgspec.json.Decoder(_Tasks)
_target = msgspec.json.Decoder(_Target)
_TARGETS: dict[str, TargetState] = {
    "STARTED": "STARTED",
    "PAUSED": "PAUSED",
    "STOPPED": "STOPPED",
}


def decode_config(key: bytes | None, value: bytes | None) -> ConfigEvent | None:
    """Return the event of a config topic's record; None if it isn't about connectors.

    Raises RefusedError. Source: Connect's ``KafkaConfigBackingStore``.
    """
    name = key_text(key)
    kind, _, rest = name.partition("-")
    if name.startswith("target-state-"):
        connector = name.removeprefix("target-state-")
        if value is None:
            return TargetStateSet(connector, "STARTED")
        target = decoded(_target, value)
        state = target.second or target.state or ""
        if state not in _TARGETS:
            raise RefusedError(BAD_TYPE, "no target state")
        return TargetStateSet(connector, _TARGETS[state])
    if kind == "connector":
        return _connector(rest, value)
    if kind == "task" and value is not None:
        return TaskConfigured(task_named(rest))
    if kind == "commit" and value is not None:
        tasks = decoded(_tasks, value).tasks
        if not 0 <= tasks <= MOST_TASKS:
            raise RefusedError(BAD_TYPE, "more tasks than caughtup reads, or fewer than 0")
        return TasksCommitted(rest, tasks)
    return None


def _connector(name: str, value: bytes | None) -> ConfigEvent:
    if value is None:
        return ConnectorDeleted(name)
    config = decoded(_properties, value).properties
    topics = (config.get("topics") or "")[:MOST_KEY_BYTES]
    tasks_max = config.get("tasks.max") or "1"
    return ConnectorConfig(
        connector=name,
        connector_class=(config.get("connector.class") or "")[:CHARACTERS],
        tasks_max=int(tasks_max) if tasks_max.isdecimal() and len(tasks_max) < 10 else None,
        topics=tuple(sorted({topic.strip() for topic in topics.split(",")} - {""})),
        topics_regex=(config.get("topics.regex") or "")[:CHARACTERS],
        group=(config.get("consumer.override.group.id") or f"connect-{name}")[:CHARACTERS],
    )


State = Literal["UNASSIGNED", "RUNNING", "PAUSED", "STOPPED", "FAILED", "DESTROYED", "RESTARTING"]


@dataclass(frozen=True, slots=True)
class Status:
    """The state of a connector or a task that a worker reported in a generation.

    ``worker`` is the host and port of the worker's URL. ``error`` is the class of the exception by
    which it failed, "" without one.
    """

    subject: Subject
    state: State
    worker: str
    generation: int
    error: str = ""


@dataclass(frozen=True, slots=True)
class StatusRemoved:
    """A status was removed."""

    subject: Subject


class _Status(msgspec.Struct):
    state: str
    worker_id: str
    generation: int
    trace: str | None = None


_status = msgspec.json.Decoder(_Status)
_STATES: dict[str, State] = {
    "UNASSIGNED": "UNASSIGNED",
    "RUNNING": "RUNNING",
    "PAUSED": "PAUSED",
    "STOPPED": "STOPPED",
    "FAILED": "FAILED",
    "DESTROYED": "DESTROYED",
    "RESTARTING": "RESTARTING",
}


def decode_status(key: bytes | None, value: bytes | None) -> Status | StatusRemoved | None:
    """Return the event of a status topic's record; None if it is about topics of a connector.

    Raises RefusedError. Source: Connect's ``KafkaStatusBackingStore``.
    """
    name = key_text(key)
    subject: Subject
    if name.startswith("status-topic-"):
        return None
    if name.startswith("status-connector-"):
        subject = name.removeprefix("status-connector-")
    elif name.startswith("status-task-"):
        subject = task_named(name.removeprefix("status-task-"))
    else:
        raise RefusedError(BAD_KEY, "not a key of a status topic")
    if value is None:
        return StatusRemoved(subject)
    status = decoded(_status, value)
    state = _STATES.get(status.state)
    if state is None or not 0 <= status.generation + 1 <= 1 << 31:
        raise RefusedError(BAD_TYPE, "no state, or no generation")
    if state == "DESTROYED":
        return StatusRemoved(subject)
    error = "" if status.trace is None else _class(status.trace)
    return Status(subject, state, status.worker_id[:CHARACTERS], status.generation, error)


def _class(trace: str) -> str:
    """Return the exception's class alone: the rest of a stack trace may quote a configuration."""
    first = trace[:CHARACTERS].split("\n", 1)[0].split(":", 1)[0].strip()
    return first if first.replace(".", "").replace("$", "").replace("_", "").isalnum() else ""


@dataclass(frozen=True, slots=True)
class SourceOffset:
    """A source stored an offset of a partition, given as a digest; ``removed``: it was reset."""

    connector: str
    partition: bytes
    removed: bool


_source = msgspec.json.Decoder(tuple[str, msgspec.Raw])


def decode_source_offset(key: bytes | None, value: bytes | None) -> SourceOffset:
    """Return the connector and partition of an offset topic's record, not the offset.

    Raises RefusedError. Source: Connect's ``OffsetStorageWriter``.
    """
    if key is None:
        raise RefusedError(BAD_KEY, "a record without a key")
    if value is not None and len(value) > MOST_BYTES:
        raise RefusedError(TOO_LARGE, f"{len(value):,} bytes, more than {MOST_BYTES:,}")
    require_bounded(key, MOST_KEY_BYTES)
    try:
        connector, _ = _source.decode(key)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise RefusedError(BAD_KEY, "not a key of an offset topic") from None
    return SourceOffset(connector, blake2b(key, digest_size=16).digest(), value is None)

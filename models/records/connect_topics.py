"""A Connect worker cluster's own topics: its configuration, its statuses, its source offsets.

Whoever runs connectors may write anything into them, passwords included: of a connector's
configuration only what is named here leaves this file, and of a failure only its class.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Literal

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

#: Values may be no larger: connectors bring schemas and certificates in their configurations.
_MOST_BYTES = 1 << 20
_MOST_KEY_BYTES = 64 << 10
#: Characters that are kept of what a configuration or a status says.
_CHARACTERS = 1_000
#: Tasks of one connector: nobody has as many.
MOST_TASKS = 100_000

TargetState = Literal["STARTED", "PAUSED", "STOPPED"]
State = Literal["UNASSIGNED", "RUNNING", "PAUSED", "STOPPED", "FAILED", "DESTROYED", "RESTARTING"]
#: What a status is of: a connector or one of its tasks.
Subject = str | ConnectorTaskId


@dataclass(frozen=True, slots=True)
class ConnectorConfig:
    """What is kept of a connector's configuration; ``group`` is its sink's consumer group.

    ``tasks_max`` is None where it isn't a number. A source has no ``topics`` to read.
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
    """A connector that is deleted."""

    connector: str


@dataclass(frozen=True, slots=True)
class TaskConfigured:
    """A task whose configuration was written; it holds once the connector's tasks are committed."""

    task: ConnectorTaskId


@dataclass(frozen=True, slots=True)
class TasksCommitted:
    """How many tasks a connector has from now on."""

    connector: str
    tasks: int


@dataclass(frozen=True, slots=True)
class TargetStateSet:
    """Whether a connector shall run."""

    connector: str
    state: TargetState


ConfigEvent = ConnectorConfig | ConnectorDeleted | TaskConfigured | TasksCommitted | TargetStateSet


@dataclass(frozen=True, slots=True)
class Status:
    """What a worker said of a connector or a task: its state, in which generation, and of whom.

    ``worker`` is host and port of its URL. ``error`` is the class of what it failed of, "" without.
    """

    subject: Subject
    state: State
    worker: str
    generation: int
    error: str = ""


@dataclass(frozen=True, slots=True)
class StatusRemoved:
    """A status that holds no more."""

    subject: Subject


@dataclass(frozen=True, slots=True)
class SourceOffset:
    """A source's offset of one of its partitions, by a digest; ``removed``: it was reset."""

    connector: str
    partition: bytes
    removed: bool


class _Properties(msgspec.Struct):
    properties: dict[str, str | None]


class _Tasks(msgspec.Struct):
    tasks: int


class _Target(msgspec.Struct):
    state: str | None = None
    second: str | None = msgspec.field(default=None, name="state.v2")


class _Status(msgspec.Struct):
    state: str
    worker_id: str
    generation: int
    trace: str | None = None


_properties = msgspec.json.Decoder(_Properties)
_tasks = msgspec.json.Decoder(_Tasks)
_target = msgspec.json.Decoder(_Target)
_status = msgspec.json.Decoder(_Status)
_source = msgspec.json.Decoder(tuple[str, msgspec.Raw])
_TARGETS: dict[str, TargetState] = {
    "STARTED": "STARTED",
    "PAUSED": "PAUSED",
    "STOPPED": "STOPPED",
}
_STATES: dict[str, State] = {
    "UNASSIGNED": "UNASSIGNED",
    "RUNNING": "RUNNING",
    "PAUSED": "PAUSED",
    "STOPPED": "STOPPED",
    "FAILED": "FAILED",
    "DESTROYED": "DESTROYED",
    "RESTARTING": "RESTARTING",
}


def decode_config(key: bytes | None, value: bytes | None) -> ConfigEvent | None:
    """Read a record of a config topic; None for what isn't about connectors (a session key, say).

    Raises RefusedError. Source: Connect's ``KafkaConfigBackingStore``.
    """
    name = _text(key)
    kind, _, rest = name.partition("-")
    if name.startswith("target-state-"):
        connector = name.removeprefix("target-state-")
        if value is None:
            return TargetStateSet(connector, "STARTED")
        target = _decoded(_target, value)
        said = target.second or target.state or ""
        if said not in _TARGETS:
            raise RefusedError(BAD_TYPE, "no target state")
        return TargetStateSet(connector, _TARGETS[said])
    if kind == "connector":
        return _connector(rest, value)
    if kind == "task" and value is not None:
        return TaskConfigured(_task(rest))
    if kind == "commit" and value is not None:
        tasks = _decoded(_tasks, value).tasks
        if not 0 <= tasks <= MOST_TASKS:
            raise RefusedError(BAD_TYPE, "a number of tasks that nobody has")
        return TasksCommitted(rest, tasks)
    return None


def decode_status(key: bytes | None, value: bytes | None) -> Status | StatusRemoved | None:
    """Read a record of a status topic; None for the topics that a connector uses.

    Raises RefusedError. Source: Connect's ``KafkaStatusBackingStore``.
    """
    name = _text(key)
    subject: Subject
    if name.startswith("status-topic-"):
        return None
    if name.startswith("status-connector-"):
        subject = name.removeprefix("status-connector-")
    elif name.startswith("status-task-"):
        subject = _task(name.removeprefix("status-task-"))
    else:
        raise RefusedError(BAD_KEY, "no key of a status topic")
    if value is None:
        return StatusRemoved(subject)
    status = _decoded(_status, value)
    state = _STATES.get(status.state)
    if state is None or not 0 <= status.generation + 1 <= 1 << 31:
        raise RefusedError(BAD_TYPE, "no state, or no generation")
    if state == "DESTROYED":
        return StatusRemoved(subject)
    error = "" if status.trace is None else _class(status.trace)
    return Status(subject, state, status.worker_id[:_CHARACTERS], status.generation, error)


def decode_source_offset(key: bytes | None, value: bytes | None) -> SourceOffset:
    """Read a record of an offset topic: which connector it is of, and nothing of what is in it.

    Raises RefusedError. Source: Connect's ``OffsetStorageWriter``.
    """
    if key is None:
        raise RefusedError(BAD_KEY, "a record without a key")
    if value is not None and len(value) > _MOST_BYTES:
        raise RefusedError(TOO_LARGE, f"{len(value):,} bytes, more than {_MOST_BYTES:,}")
    require_bounded(key, _MOST_KEY_BYTES)
    try:
        connector, _ = _source.decode(key)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise RefusedError(BAD_KEY, "no key of an offset topic") from None
    return SourceOffset(connector, blake2b(key, digest_size=16).digest(), value is None)


def _connector(name: str, value: bytes | None) -> ConfigEvent:
    if value is None:
        return ConnectorDeleted(name)
    given = _decoded(_properties, value).properties
    topics = (given.get("topics") or "")[:_MOST_KEY_BYTES]
    tasks_max = given.get("tasks.max") or "1"
    return ConnectorConfig(
        connector=name,
        connector_class=(given.get("connector.class") or "")[:_CHARACTERS],
        tasks_max=int(tasks_max) if tasks_max.isdecimal() and len(tasks_max) < 10 else None,
        topics=tuple(sorted({topic.strip() for topic in topics.split(",")} - {""})),
        topics_regex=(given.get("topics.regex") or "")[:_CHARACTERS],
        group=(given.get("consumer.override.group.id") or f"connect-{name}")[:_CHARACTERS],
    )


def _text(key: bytes | None) -> str:
    if key is None:
        raise RefusedError(BAD_KEY, "a record without a key")
    if len(key) > _MOST_KEY_BYTES:
        raise RefusedError(TOO_LARGE, f"a key of {len(key):,} bytes")
    try:
        return key.decode()
    except UnicodeDecodeError:
        raise RefusedError(BAD_KEY, "a key that isn't UTF-8") from None


def _task(name: str) -> ConnectorTaskId:
    """Read ``orders-sink-0``, whatever characters the connector's name has."""
    connector, dash, number = name.rpartition("-")
    if not dash or not number.isascii() or not number.isdecimal() or len(number) > 9:
        raise RefusedError(BAD_KEY, "no task's name")
    task = int(number)
    if task > NUMBER_MAX:
        raise RefusedError(BAD_KEY, "no task's number")
    return ConnectorTaskId(connector, task)


def _decoded(decoder: msgspec.json.Decoder[Any], value: bytes) -> Any:
    """Decode a value. What is refused is told without it: a password may be in it."""
    require_bounded(value, _MOST_BYTES)
    try:
        return decoder.decode(value)
    except msgspec.ValidationError:
        raise RefusedError(BAD_TYPE, "fields of other types than Connect writes") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise RefusedError(BAD_JSON, "no JSON") from None


def _class(trace: str) -> str:
    """Return the class of what failed: the rest of a stack trace may quote a configuration."""
    first = trace[:_CHARACTERS].split("\n", 1)[0].split(":", 1)[0].strip()
    return first if first.replace(".", "").replace("$", "").replace("_", "").isalnum() else ""

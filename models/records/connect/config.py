"""Records of a Connect cluster's own topics, which its workers write: configs, statuses, offsets.

Configurations, stack traces and offsets may contain passwords, so only the fields of these values
leave this file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import msgspec  # noqa: TID251 - allowed here

from caughtup.models.ids import ConnectorTaskId
from caughtup.models.records.connect.reading import (
    CHARACTERS,
    MOST_KEY_BYTES,
    MOST_TASKS,
    decoded,
    key_text,
    task_named,
)
from caughtup.models.records.decoding import BAD_TYPE, RefusedError

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
            raise RefusedError(BAD_TYPE, "a number of tasks that nobody has")
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

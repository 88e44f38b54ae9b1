"""Records of a config topic: connectors, their tasks, and whether they shall run.

Whoever runs connectors may write anything into a configuration, passwords included: only what is
named here leaves this file.
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
    """Read a record of a config topic; None for what isn't about connectors (a session key, say).

    Raises RefusedError. Source: Connect's ``KafkaConfigBackingStore``.
    """
    name = key_text(key)
    kind, _, rest = name.partition("-")
    if name.startswith("target-state-"):
        connector = name.removeprefix("target-state-")
        if value is None:
            return TargetStateSet(connector, "STARTED")
        target = decoded(_target, value)
        said = target.second or target.state or ""
        if said not in _TARGETS:
            raise RefusedError(BAD_TYPE, "no target state")
        return TargetStateSet(connector, _TARGETS[said])
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
    given = decoded(_properties, value).properties
    topics = (given.get("topics") or "")[:MOST_KEY_BYTES]
    tasks_max = given.get("tasks.max") or "1"
    return ConnectorConfig(
        connector=name,
        connector_class=(given.get("connector.class") or "")[:CHARACTERS],
        tasks_max=int(tasks_max) if tasks_max.isdecimal() and len(tasks_max) < 10 else None,
        topics=tuple(sorted({topic.strip() for topic in topics.split(",")} - {""})),
        topics_regex=(given.get("topics.regex") or "")[:CHARACTERS],
        group=(given.get("consumer.override.group.id") or f"connect-{name}")[:CHARACTERS],
    )

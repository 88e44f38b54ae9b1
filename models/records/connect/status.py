"""Records of a status topic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import msgspec  # noqa: TID251 - allowed here

from caughtup.models.records.connect.reading import (
    CHARACTERS,
    Subject,
    decoded,
    key_text,
    task_named,
)
from caughtup.models.records.decoding import BAD_KEY, BAD_TYPE, RefusedError

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
        raise RefusedError(BAD_KEY, "no key of a status topic")
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

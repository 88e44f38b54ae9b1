"""The fields of a recommendation record that a follower reads; it ignores all others."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from caughtup.models.errors import CaughtupError
from caughtup.models.ids import ProcessId, TaskId
from caughtup.models.records.topics import MOST_RECOMMENDATION_BYTES

T = TypeVar("T")

#: One of these bytes precedes every JSON value but the first; a value takes about 100 bytes.
_SEPARATORS = b",[{"
_MOST_SEPARATORS = 1 << 20
_LONG_MAX = (1 << 63) - 1
#: Decision ids are written into log lines.
_NAME = re.compile("[!-~]{1,100}")


@dataclass(frozen=True, slots=True)
class FollowedRecommendation:
    """A recommendation as a follower keeps it; the keys of ``standby`` are its processes.

    ``found`` has the processes on which each task was active at the decision, and ``config`` the
    configs of the decision, under Kafka's names. ``worthwhile_after_ms`` is how long after the
    decision a probing rebalance is worthwhile; None if the record doesn't say.
    """

    decision_id: str
    active: Mapping[TaskId, ProcessId]
    standby: Mapping[ProcessId, frozenset[TaskId]]
    found: Mapping[TaskId, frozenset[ProcessId]]
    config: Mapping[str, object]
    probing_needed: bool
    worthwhile_after_ms: int | None


def require_bounded(value: bytes) -> None:
    """Raise CaughtupError ``malformed`` for a value that would take too much memory to parse.

    Source: ``caughtup.Recommendation``.
    """
    if len(value) > MOST_RECOMMENDATION_BYTES:
        raise _malformed(f"{len(value)} bytes")
    if sum(value.count(one) for one in _SEPARATORS) > _MOST_SEPARATORS:
        raise _malformed(f"over {_MOST_SEPARATORS} values")


def read_followed(record: object, group: str) -> FollowedRecommendation:
    """Read a record of ``recommended-assignments``, as decoded from JSON.

    Raises CaughtupError ``malformed`` for every record that a follower refuses. Source:
    ``caughtup.Recommendation``.
    """
    # Not by the struct of models/records, with which the service reads its own topic: that one
    # requires fields that no follower reads, refuses a missing time that followers don't need, and
    # accepts task ids only as the service writes them. Followers in Java and in Python have to
    # refuse the same records for the same reasons.
    root = _take(record, dict, "the record")
    if type(root.get("schema")) is not int or root["schema"] != 1:
        raise _malformed("schema is not 1")
    if root.get("group") != group:
        raise _malformed("group is not the expected one")
    decision_id = _take(root.get("decision_id"), str, "decision_id")
    if not _NAME.fullmatch(decision_id):
        raise _malformed("decision_id is not a name")
    processes = [_process(one) for one in _take(root.get("process_ids"), list, "process_ids")]
    if len(set(processes)) < len(processes):
        raise _malformed("process_ids names a process twice")
    active, standby = _read_assignment(root.get("assignment"), processes)
    inputs = _take(root.get("inputs"), dict, "inputs")
    scenario = _take(inputs.get("scenario"), dict, "inputs.scenario")
    found: dict[TaskId, set[ProcessId]] = {}
    clients = _take(scenario.get("clients"), dict, "inputs.scenario.clients")
    for text, client in clients.items():
        process = _process(text)
        had = _take(client, dict, "inputs.scenario.clients")
        for task in _tasks(had.get("previous_active"), "previous_active"):
            found.setdefault(task, set()).add(process)
    config = _take(scenario.get("config", {}), dict, "inputs.scenario.config")
    probing = _take(root.get("probing_rebalance"), dict, "probing_rebalance")
    needed = _take(probing.get("needed"), bool, "probing_rebalance.needed")
    worthwhile = _time(probing.get("worthwhile_at_ms"))
    decided = _time(root.get("decided_at_ms"))
    after = None if worthwhile is None or decided is None else worthwhile - decided
    return FollowedRecommendation(
        decision_id=decision_id,
        active=active,
        standby={process: frozenset(tasks) for process, tasks in standby.items()},
        found={task: frozenset(had) for task, had in found.items()},
        config=config,
        probing_needed=needed,
        worthwhile_after_ms=after,
    )


def _read_assignment(
    value: object, processes: list[ProcessId]
) -> tuple[dict[TaskId, ProcessId], dict[ProcessId, set[TaskId]]]:
    active: dict[TaskId, ProcessId] = {}
    standby: dict[ProcessId, set[TaskId]] = {}
    for text, given in _take(value, dict, "assignment").items():
        process = _process(text)
        if process not in processes or process in standby:
            raise _malformed("assignment has other processes than process_ids")
        standby[process] = set()
        tasks = _take(given, dict, "assignment")
        for task in _tasks(tasks.get("active"), "active"):
            if task in active:
                raise _malformed(f"{task} is active twice")
            active[task] = process
        for task in _tasks(tasks.get("standby"), "standby"):
            if task in standby[process]:
                raise _malformed(f"{task} is twice standby on one process")
            standby[process].add(task)
    if len(standby) < len(processes):
        raise _malformed("assignment has other processes than process_ids")
    for task, process in active.items():
        if task in standby[process]:
            raise _malformed(f"{task} is active and standby on one process")
    return active, standby


def _take(value: object, wanted: type[T], place: str) -> T:
    if type(value) is not wanted:
        raise _malformed(f"{place} does not have the expected type")
    return value


def _tasks(value: object, place: str) -> list[TaskId]:
    tasks = []
    for text in _take(value, list, place):
        try:
            tasks.append(TaskId.parse(_take(text, str, place)))
        except CaughtupError:
            raise _malformed("a task is not written like 0_3") from None
    return tasks


def _process(text: object) -> ProcessId:
    try:
        return ProcessId.parse(_take(text, str, "a process"))
    except CaughtupError:
        raise _malformed("a process is not a UUID") from None


def _time(value: object) -> int | None:
    return value if type(value) is int and 0 <= value <= _LONG_MAX else None


def _malformed(message: str) -> CaughtupError:
    return CaughtupError("malformed", message)


@dataclass(frozen=True, slots=True)
class Objection:
    """Why a recommendation isn't followed, or why there is none: a code and a clause."""

    code: str
    message: str

"""The start of a simulation from what is known of a group: copies, positions, speeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from caughtup.models.copies.warmups import CopyAssessment
from caughtup.models.decisions.task_table import TaskCopy
from caughtup.models.groups.generation import StreamsClient, StreamsGeneration
from caughtup.models.ids import ProcessId, TaskId
from caughtup.models.simulation.streams.run import RunningInstance, RunningThread

Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class Speeds:
    """The speeds of an application, in offsets a second.

    ``restore``: the least and the greatest observed restore rate of a copy, None without any;
    ``writes``: what each task writes to its changelogs, if observed.
    """

    restore: tuple[float, float] | None
    writes: Mapping[TaskId, float]


def speeds(copies: Iterable[CopyAssessment]) -> Speeds:
    """Return the observed restore rates of copies, and the growth of their changelogs."""
    rates: list[float] = []
    writes: dict[TaskId, float] = {}
    for copy in copies:
        figures = copy.figures
        if figures.rate is not None and figures.rate > 0 and figures.lag and figures.lag.high > 0:
            rates.append(figures.rate)
        if figures.growth is not None and figures.growth >= 0:
            writes[copy.copy.task] = max(writes.get(copy.copy.task, 0.0), figures.growth)
    return Speeds((min(rates), max(rates)) if rates else None, writes)


def running_instances(
    generation: StreamsGeneration,
    rows: Sequence[TaskCopy],
    ends: Mapping[TaskId, int],
    now_ms: int,
    restore_per_second: float,
) -> tuple[RunningInstance, ...]:
    """Return the instances of a generation, with the positions of their copies from the task table.

    The table may show them as of the start of the generation: since then each thread has restored
    ``restore_per_second`` offsets of its copies together, up to their ``ends``. Instances are named
    after their clients; a number is added to a name that two clients have.
    """
    sums: dict[str, dict[TaskId, int]] = {}
    table: dict[str, dict[TaskId, TaskCopy]] = {}
    for row in rows:
        at = reached(row)
        if row.role != "active" and at is not None:
            sums.setdefault(row.process, {})[row.task] = at
            table.setdefault(row.process, {})[row.task] = row
    for process, client in generation.clients.items():
        for thread in _threads(client):
            copies = table.get(str(process), {})
            sums.get(str(process), {}).update(
                _restored_by_now(
                    thread, copies, ends, generation.as_of_ms, now_ms, restore_per_second
                )
            )
    names = instance_names(generation)
    return tuple(
        RunningInstance(
            names[process],
            process,
            _threads(client),
            sums.get(str(process), {}),
            tags=client.members[0].client_tags,
            rack=client.members[0].rack,
        )
        for process, client in generation.clients.items()
    )


def instance_names(generation: StreamsGeneration) -> dict[ProcessId, str]:
    """Return a name for each instance: its client's, with a number if another one has it."""
    return distinct_names((process, client.name) for process, client in generation.clients.items())


def distinct_names(wanted: Iterable[tuple[Key, str]]) -> dict[Key, str]:
    """Return a name for each key: the one given, with a number if another key has it."""
    names: dict[Key, str] = {}
    taken: set[str] = set()
    for key, first in wanted:
        name, number = first, 2
        while name in taken:
            name, number = f"{first} ({number})", number + 1
        taken.add(name)
        names[key] = name
    return names


def _threads(client: StreamsClient) -> tuple[RunningThread, ...]:
    return tuple(
        RunningThread(
            tuple(sorted(set(member.assignment.active))) if member.assignment else (),
            tuple(sorted(member.assignment.standby)) if member.assignment else (),
            member.assignment.next_rebalance_ms if member.assignment else None,
        )
        for member in client.members
    )


def _restored_by_now(
    thread: RunningThread,
    copies: Mapping[TaskId, TaskCopy],
    ends: Mapping[TaskId, int],
    as_of_ms: int,
    now_ms: int,
    restore_per_second: float,
) -> dict[TaskId, int]:
    """Return the positions of a thread's copies by now: actives first, the rest at equal rates."""
    found = {}
    seen_ms = [copies[task].as_of_ms or as_of_ms for task in thread.tasks if task in copies]
    left = restore_per_second * max(now_ms - max(seen_ms, default=now_ms), 0) / 1_000
    for tasks in (thread.active, thread.standby):
        behind = {
            task: max(ends.get(task, 0) - at, 0)
            for task in tasks
            if task in copies and (at := reached(copies[task])) is not None
        }
        nearest = sorted(behind, key=lambda task: (behind[task], task))
        for number, task in enumerate(nearest):
            way = min(behind[task], int(left / (len(nearest) - number)))
            found[task] = (reached(copies[task]) or 0) + way
            left -= way
    return found


def reached(row: TaskCopy) -> int | None:
    """Return the offset sum that a copy has reached; None if unknown."""
    if row.offset_sum is not None and row.offset_sum >= 0:
        return row.offset_sum
    if row.lag is not None and row.end_offset_sum is not None:
        return max(row.end_offset_sum - row.lag, 0)
    return None

"""A story's beginning from what is known of a group: who has what, how far, and how fast it goes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from caughtup.models.copies.warmups import CopyAssessment
from caughtup.models.decisions.task_table import TaskCopy
from caughtup.models.groups.generation import StreamsClient, StreamsGeneration
from caughtup.models.ids import ProcessId, TaskId
from caughtup.models.simulation.streams.run import RunningInstance, RunningThread


@dataclass(frozen=True, slots=True)
class Speeds:
    """How fast things go, in offsets a second.

    ``restore``: the least and the greatest that copies were seen to restore, None where none was;
    ``writes``: what each task writes to its changelogs, as far as that was seen.
    """

    restore: tuple[float, float] | None
    writes: Mapping[TaskId, float]


def speeds(copies: Iterable[CopyAssessment]) -> Speeds:
    """Gather how fast copies were seen to restore, and their changelogs to grow."""
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
    generation: StreamsGeneration, rows: Sequence[TaskCopy]
) -> tuple[RunningInstance, ...]:
    """Return the instances of a generation, with how far their copies are by the task table.

    They have their clients' names; where two have one name, a number is added.
    """
    sums: dict[str, dict[TaskId, int]] = {}
    for row in rows:
        reached = _reached(row)
        if row.role != "active" and reached is not None:
            sums.setdefault(row.process, {})[row.task] = reached
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
    """Return a name for each instance: its client's, with a number where that isn't its own."""
    names: dict[ProcessId, str] = {}
    taken: set[str] = set()
    for process, client in generation.clients.items():
        name, number = client.name, 2
        while name in taken:
            name, number = f"{client.name} ({number})", number + 1
        taken.add(name)
        names[process] = name
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


def _reached(row: TaskCopy) -> int | None:
    """Return the offset sum that a copy has reached; None if nobody knows."""
    if row.offset_sum is not None and row.offset_sum >= 0:
        return row.offset_sum
    if row.lag is not None and row.end_offset_sum is not None:
        return max(row.end_offset_sum - row.lag, 0)
    return None

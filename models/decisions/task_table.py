"""The lag table of a Streams application: every copy of every task, by client."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from caughtup.models.assignment.decision import Decision
from caughtup.models.decisions.inputs.gathering import GenerationInputs
from caughtup.models.groups.generation import StreamsGeneration
from caughtup.models.groups.streams import StreamsGroup
from caughtup.models.histories.commits import CommitHistory
from caughtup.models.ids import CopyKey, TaskId, TopicPartition
from caughtup.models.offsets import LATEST_OFFSET, UNKNOWN_OFFSET_SUM, task_lag
from caughtup.models.tasks.positions import TaskPosition


@dataclass(frozen=True, slots=True)
class TaskCopy:
    """One copy of one task on one process, with its client id.

    ``role``: active, restoring (an active that wasn't running when its client joined), standby,
    warmup, or none (state on disk of a task that isn't assigned). ``lag``, ``offset_sum`` and
    ``end_offset_sum`` are in offsets, None when unknown; ``changelogs`` has the lag of each
    changelog topic if the application reported it. ``provenance`` of the lag: ``running`` (an
    active has none), ``measured`` (reported by the application between rebalances), ``reported``
    (the member's offset sum in the rebalance, with an exactly known end offset sum), ``estimated``
    (the same with an upper bound), ``unknown``. ``as_of_ms``: the time of the lag, None if unknown.
    """

    generation: int
    task: TaskId
    process: str
    client_id: str
    role: str
    lag: int | None
    provenance: str
    offset_sum: int | None
    end_offset_sum: int | None
    as_of_ms: int | None
    changelogs: Mapping[str, int] = field(default_factory=dict)


def assigned_copies(
    generation: StreamsGeneration, inputs: GenerationInputs, decision: Decision | None
) -> tuple[TaskCopy, ...]:
    """Return every copy as it was when the generation began, ordered by task and client.

    ``decision`` is the leader's, by which warm-ups differ from standbys; None if unknown.
    """
    copies: list[tuple[TaskId, int, TaskCopy]] = []
    for place, (process, client) in enumerate(generation.clients.items()):
        warmups = decision.clients[process].warmup if decision else ()
        active, standby, sums = client.active(), client.standby(), client.offset_sums
        name = str(process), client.name
        for task in active | standby | sums.keys():
            if task in active:
                runs = _had_nothing_to_restore(sums, task, inputs)
                role = "active" if runs else "restoring"
            elif task in standby:
                role = "warmup" if task in warmups else "standby"
            else:
                role = "none"
            copy = _copy(generation, inputs, name, sums.get(task, 0), task, role)
            copies.append((task, place, copy))
    return tuple(copy for _, _, copy in sorted(copies, key=lambda entry: entry[:2]))


def task_table(
    copies: Iterable[TaskCopy],
    generation: StreamsGeneration,
    positions: Mapping[CopyKey, TaskPosition],
    commits: Mapping[TopicPartition, CommitHistory],
) -> list[TaskCopy]:
    """Return every copy of a generation (``assigned_copies``) as it is now.

    ``positions`` are reported by the application; those from before the generation are ignored.
    ``commits`` are the application's: only a running active commits its task's input after the
    generation began.
    """
    table = []
    for copy in copies:
        if copy.role == "restoring" and _was_processed(copy.task, generation, commits):
            copy = replace(copy, role="active", lag=None, provenance="running", end_offset_sum=None)
        if positions:
            position = positions.get(CopyKey(copy.process, copy.task))
            if position is not None and position.at_ms >= (copy.as_of_ms or 0):
                copy = _measured(copy, position)
        table.append(copy)
    return table


def _was_processed(
    task: TaskId, generation: StreamsGeneration, commits: Mapping[TopicPartition, CommitHistory]
) -> bool:
    """Return whether a task's input was committed after the generation began."""
    return any(
        known.commit_timestamp_ms > generation.as_of_ms
        for partition in generation.sources(task)
        if (known := commits.get(partition)) is not None
    )


def coordinator_task_table(
    group: StreamsGroup, positions: Mapping[CopyKey, TaskPosition]
) -> list[TaskCopy]:
    """Return every copy of a group whose tasks the coordinator assigns (KIP-1071), in its order.

    Lags are only known from ``positions``: the group's records have the assignment alone.
    """
    copies = []
    for held in group.copies():
        process = held.member.process or ""
        copy = TaskCopy(
            generation=group.epoch or 0,
            task=held.task,
            process=process,
            client_id=held.member.client_id,
            role=held.role,
            lag=None,
            provenance="unknown",
            offset_sum=None,
            end_offset_sum=None,
            as_of_ms=None,
        )
        position = positions.get(CopyKey(process, held.task))
        copies.append(copy if position is None else _measured(copy, position))
    return copies


def _measured(copy: TaskCopy, position: TaskPosition) -> TaskCopy:
    """Return a copy with its reported position, unless that is of another role, and so older."""
    is_active = copy.role in ("active", "restoring")
    role = position.role or copy.role
    if (role in ("active", "restoring")) != is_active:
        return copy
    if role == "active":
        return replace(copy, role=role, lag=None, provenance="running", as_of_ms=position.at_ms)
    if position.lag is None:
        return copy
    return replace(
        copy,
        role="restoring" if is_active else copy.role,
        lag=position.lag,
        provenance="measured",
        offset_sum=None,
        end_offset_sum=None,
        as_of_ms=position.at_ms,
        changelogs=position.changelogs,
    )


def _had_nothing_to_restore(
    sums: Mapping[TaskId, int], task: TaskId, inputs: GenerationInputs
) -> bool:
    """Return whether a client could run a task at once: it ran it before, or had all its state."""
    if task not in inputs.ends:
        return True
    offset_sum, bound = sums.get(task, 0), inputs.ends[task]
    return offset_sum == LATEST_OFFSET or (bound is not None and offset_sum == bound.high)


def _copy(
    generation: StreamsGeneration,
    inputs: GenerationInputs,
    name: tuple[str, str],
    offset_sum: int,
    task: TaskId,
    role: str,
) -> TaskCopy:
    """Return a copy on the process and client in ``name``."""
    lag = end_sum = None
    if role == "active":
        provenance = "running"
    elif offset_sum < 0 or task not in inputs.ends or (bound := inputs.ends[task]) is None:
        provenance = "unknown"
    else:
        end_sum = bound.high
        lag = task_lag(offset_sum, end_sum)
        provenance = "reported" if bound.low == bound.high else "estimated"
    return TaskCopy(
        generation=generation.generation,
        task=task,
        process=name[0],
        client_id=name[1],
        role=role,
        lag=lag,
        provenance=provenance,
        offset_sum=None if offset_sum in (LATEST_OFFSET, UNKNOWN_OFFSET_SUM) else offset_sum,
        end_offset_sum=end_sum,
        as_of_ms=generation.as_of_ms,
    )

"""The lag table of a Streams application: every copy of every task, by client."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from caughtup.models.assignors.decision import Decision
from caughtup.models.groups import StreamsClient, StreamsGeneration
from caughtup.models.ids import ProcessId, TaskId
from caughtup.models.inputs import GenerationInputs
from caughtup.models.lag import LATEST_OFFSET, UNKNOWN_OFFSET_SUM, task_lag


@dataclass(frozen=True, slots=True)
class TaskCopy:
    """One copy of one task on one client.

    ``role``: active, restoring (an active that wasn't running when its client joined), standby,
    warmup, or none (state on disk that nobody asked for). ``lag``, ``offset_sum`` and
    ``end_offset_sum`` are in offsets, None when unknown. ``provenance`` of the lag: ``running``
    (an active has none), ``reported`` (the member's own sum against an end offset sum known
    exactly), ``estimated`` (an upper bound: the end may have grown), ``unknown``.
    ``as_of_ms``: the moment it speaks of.
    """

    task: TaskId
    process: ProcessId
    role: str
    lag: int | None
    provenance: str
    offset_sum: int | None
    end_offset_sum: int | None
    as_of_ms: int


def task_table(
    generation: StreamsGeneration,
    inputs: GenerationInputs,
    decision: Decision | None,
    processed_since: Callable[[TaskId], bool],
) -> list[TaskCopy]:
    """List every copy, ordered by task and client.

    ``decision`` tells warm-ups among the standbys; None when it isn't known to be the leader's.
    ``processed_since(task)`` tells whether the task's input was committed after this generation
    began, which only a running active does.
    """
    copies: list[TaskCopy] = []
    for process, client in generation.clients.items():
        warmups = decision.clients[process].warmup if decision else ()
        active, standby = client.active(), client.standby()
        for task in active | standby | client.offset_sums.keys():
            if task in active:
                runs = _had_nothing_to_restore(client, task, inputs) or processed_since(task)
                role = "active" if runs else "restoring"
            elif task in standby:
                role = "warmup" if task in warmups else "standby"
            else:
                role = "none"
            copies.append(_copy(generation, inputs, client, task, role))
    return sorted(copies, key=lambda copy: (copy.task, copy.process))


def _had_nothing_to_restore(client: StreamsClient, task: TaskId, inputs: GenerationInputs) -> bool:
    """Tell whether a client could run a task at once: it ran it, or had all of its state."""
    if task not in inputs.ends:
        return True
    offset_sum, bound = client.offset_sums.get(task, 0), inputs.ends[task]
    return offset_sum == LATEST_OFFSET or (bound is not None and offset_sum == bound.high)


def _copy(
    generation: StreamsGeneration,
    inputs: GenerationInputs,
    client: StreamsClient,
    task: TaskId,
    role: str,
) -> TaskCopy:
    offset_sum = client.offset_sums.get(task, 0)
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
        task=task,
        process=client.process,
        role=role,
        lag=lag,
        provenance=provenance,
        offset_sum=None if offset_sum in (LATEST_OFFSET, UNKNOWN_OFFSET_SUM) else offset_sum,
        end_offset_sum=end_sum,
        as_of_ms=generation.as_of_ms,
    )

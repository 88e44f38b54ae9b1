"""What each worker runs after a round, while the round is being decided."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import cycle
from typing import TypeVar

from caughtup.models.assignors.java.strings import utf16
from caughtup.models.connect.work import Work
from caughtup.models.ids import ConnectorTaskId
from caughtup.models.wire.connect_protocol import NOTHING, ConnectorsAndTasks

T = TypeVar("T", str, ConnectorTaskId)


class WorkerLoad:
    """A worker's connectors and tasks, in its order; newly assigned ones come last."""

    __slots__ = ("connectors", "kept_connectors", "kept_tasks", "name", "tasks")

    def __init__(self, name: str, owned: ConnectorsAndTasks, *, once: bool = False) -> None:
        """Begin with what the worker owns; ``once`` is whether it names each item once."""
        self.name = name
        self.connectors = list(owned.connectors if once else dict.fromkeys(owned.connectors))
        self.tasks = list(owned.tasks if once else dict.fromkeys(owned.tasks))
        self.kept_connectors = len(self.connectors)
        self.kept_tasks = len(self.tasks)

    @property
    def is_empty(self) -> bool:
        """Whether the worker runs nothing."""
        return not self.connectors and not self.tasks

    def remove(self, work: Work) -> None:
        """Remove what is in ``work``, newly assigned items included."""
        if not work:
            return
        kept = _but(self.connectors[: self.kept_connectors], work.connectors)
        self.connectors = kept + _but(self.connectors[self.kept_connectors :], work.connectors)
        self.kept_connectors = len(kept)
        kept_tasks = _but(self.tasks[: self.kept_tasks], work.tasks)
        self.tasks = kept_tasks + _but(self.tasks[self.kept_tasks :], work.tasks)
        self.kept_tasks = len(kept_tasks)

    @property
    def started(self) -> ConnectorsAndTasks:
        """What was newly assigned to the worker."""
        connectors = self.connectors[self.kept_connectors :]
        tasks = self.tasks[self.kept_tasks :]
        return (
            ConnectorsAndTasks(tuple(connectors), tuple(tasks)) if connectors or tasks else NOTHING
        )


def _but(items: list[T], gone: frozenset[T]) -> list[T]:
    return [item for item in items if item not in gone]


def assign_to_least_loaded(loads: Iterable[WorkerLoad], work: ConnectorsAndTasks) -> None:
    """Assign each connector, then each task, to the worker with the fewest of the kind, by name.

    Source: Connect's ``assignConnectors`` and ``assignTasks``.
    """
    by_name = sorted(loads, key=lambda load: utf16(load.name))
    by_connectors = sorted([load.connectors for load in by_name], key=len)
    counts = [len(connectors) for connectors in by_connectors]
    for connector, place in zip(work.connectors, _fewest_first(counts), strict=False):
        by_connectors[place].append(connector)
    by_tasks = sorted([load.tasks for load in by_name], key=len)
    counts = [len(tasks) for tasks in by_tasks]
    for task, place in zip(work.tasks, _fewest_first(counts), strict=False):
        by_tasks[place].append(task)


def assign_in_turn(workers: Sequence[WorkerLoad], work: ConnectorsAndTasks) -> None:
    """Assign connectors to workers in turn, then tasks, from the first worker again."""
    for connector, worker in zip(work.connectors, cycle(workers), strict=False):
        worker.connectors.append(connector)
    for task, worker in zip(work.tasks, cycle(workers), strict=False):
        worker.tasks.append(task)


def _fewest_first(counts: list[int]) -> Iterator[int]:
    """Yield for each item the place of the worker that gets it; ``counts`` ascend."""
    level, end = counts[0], 0
    while True:
        while end < len(counts) and counts[end] <= level:
            end += 1
        yield from range(end)
        level += 1

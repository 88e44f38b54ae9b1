"""What each worker will run after a round, while it is being decided."""

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
    """A worker's connectors and tasks, in its order; what is dealt to it comes last."""

    __slots__ = ("connectors", "name", "rank", "started_connectors", "started_tasks", "tasks")

    def __init__(self, name: str, owned: ConnectorsAndTasks) -> None:
        self.name = name
        self.rank = utf16(name)
        self.connectors = list(dict.fromkeys(owned.connectors))
        self.tasks = list(dict.fromkeys(owned.tasks))
        self.started_connectors: list[str] = []
        self.started_tasks: list[ConnectorTaskId] = []

    @property
    def is_empty(self) -> bool:
        """Whether the worker runs nothing."""
        return not self.connectors and not self.tasks

    def remove(self, work: Work) -> None:
        """Remove what is in ``work``, were it only just dealt."""
        if not work:
            return
        if not work.connectors.isdisjoint(self.connectors):
            self.connectors = _but(self.connectors, work.connectors)
            self.started_connectors = _but(self.started_connectors, work.connectors)
        if not work.tasks.isdisjoint(self.tasks):
            self.tasks = _but(self.tasks, work.tasks)
            self.started_tasks = _but(self.started_tasks, work.tasks)

    def start_connector(self, connector: str) -> None:
        """Add a connector that the worker shall start."""
        self.connectors.append(connector)
        self.started_connectors.append(connector)

    def start_task(self, task: ConnectorTaskId) -> None:
        """Add a task that the worker shall start."""
        self.tasks.append(task)
        self.started_tasks.append(task)

    @property
    def started(self) -> ConnectorsAndTasks:
        """What was dealt to it."""
        if not self.started_connectors and not self.started_tasks:
            return NOTHING
        return ConnectorsAndTasks(tuple(self.started_connectors), tuple(self.started_tasks))


def _but(items: list[T], gone: frozenset[T]) -> list[T]:
    return [item for item in items if item not in gone]


def deal_to_least_loaded(loads: Iterable[WorkerLoad], work: ConnectorsAndTasks) -> None:
    """Deal connectors, then tasks, each to those who have fewest of the kind, by name.

    Source: Connect's ``assignConnectors`` and ``assignTasks``.
    """
    workers = list(loads)
    workers.sort(key=lambda one: (len(one.connectors), one.rank))
    counts = [len(one.connectors) for one in workers]
    for connector, place in zip(work.connectors, _fewest_first(counts), strict=False):
        workers[place].start_connector(connector)
    workers.sort(key=lambda one: (len(one.tasks), one.rank))
    counts = [len(one.tasks) for one in workers]
    for task, place in zip(work.tasks, _fewest_first(counts), strict=False):
        workers[place].start_task(task)


def deal_in_turn(workers: Sequence[WorkerLoad], work: ConnectorsAndTasks) -> None:
    """Deal connectors to some workers in turn, then tasks, beginning with the first one again."""
    for connector, worker in zip(work.connectors, cycle(workers), strict=False):
        worker.start_connector(connector)
    for task, worker in zip(work.tasks, cycle(workers), strict=False):
        worker.start_task(task)


def _fewest_first(counts: list[int]) -> Iterator[int]:
    """Yield places of ascending counts: one each to all that have no more than the first one."""
    level, end = counts[0], 0
    while True:
        while end < len(counts) and counts[end] <= level:
            end += 1
        yield from range(end)
        level += 1

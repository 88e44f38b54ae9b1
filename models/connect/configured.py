"""What is configured: connectors, each with its tasks, which are numbered from 0."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain, repeat

from caughtup.models.connect.work import NO_WORK, Work, java_sorted
from caughtup.models.ids import ConnectorTaskId
from caughtup.models.wire.connect_protocol import ConnectorsAndTasks


@dataclass(frozen=True, slots=True)
class Configured:
    """Connector → number of its tasks, of which one is made only where it is needed.

    A large group has thousands of tasks, and most rounds neither make nor delete one.
    """

    connectors: Mapping[str, int]

    def __bool__(self) -> bool:
        return bool(self.connectors)

    @property
    def task_count(self) -> int:
        """How many tasks there are."""
        return sum(self.connectors.values())

    def foreign(self, work: Work) -> Work:
        """Return what isn't configured."""
        count_of = self.connectors.get
        connectors = work.connectors - self.connectors.keys()
        tasks = [task for task in work.tasks if task[1] >= count_of(task[0], 0)]
        return Work(frozenset(connectors), frozenset(tasks)) if connectors or tasks else NO_WORK

    def missing(self, work: Work, foreign: Work) -> ConnectorsAndTasks:
        """Return what is configured and isn't there, in order.

        ``foreign`` is what of ``work`` isn't configured.
        """
        connectors = java_sorted(self.connectors.keys() - work.connectors)
        if len(work.tasks) - len(foreign.tasks) == self.task_count:
            return ConnectorsAndTasks(connectors)
        tasks: Iterable[ConnectorTaskId] = chain.from_iterable(
            map(ConnectorTaskId, repeat(connector), range(self.connectors[connector]))
            for connector in java_sorted(self.connectors)
        )
        if work.tasks:
            tasks = (task for task in tasks if task not in work.tasks)
        return ConnectorsAndTasks(connectors, tuple(tasks))

"""The names of connectors and tasks in text: ``A`` is a connector, ``A-0`` its first task."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from caughtup.models.connect.work import Work
from caughtup.models.errors import ScenarioError
from caughtup.models.ids import ConnectorTaskId
from caughtup.models.wire.connect_protocol import ConnectorsAndTasks

#: A task's number has no leading zeroes and at most nine digits, more than any group needs.
_TASK = re.compile(r"(.*)-(0|[1-9][0-9]{0,8})", re.DOTALL)


class Names:
    """Distinguishes connectors from tasks by name: ``A-0`` may also be a connector."""

    def __init__(self, configured: Iterable[Mapping[str, int]]) -> None:
        """Keep the connectors that were ever configured, each with its most tasks."""
        self._most_tasks: dict[str, int] = {}
        for connectors in configured:
            for connector, tasks in connectors.items():
                self._most_tasks[connector] = max(tasks, self._most_tasks.get(connector, 0))

    def read(self, names: Iterable[str], place: str) -> ConnectorsAndTasks:
        """Return names as tasks, or as connectors if one of that name was ever configured.

        Raises ScenarioError ``ambiguous`` where a connector and a task of another have the name.
        """
        connectors: list[str] = []
        tasks: list[ConnectorTaskId] = []
        for name in names:
            task = self._task(name, place)
            if task is None:
                connectors.append(name)
            else:
                tasks.append(task)
        return ConnectorsAndTasks(tuple(connectors), tuple(tasks))

    def _task(self, name: str, place: str) -> ConnectorTaskId | None:
        match = _TASK.fullmatch(name)
        if match is None:
            return None
        task = ConnectorTaskId(match[1], int(match[2]))
        if name not in self._most_tasks:
            return task
        if task.task < self._most_tasks.get(task.connector, 0):
            raise ScenarioError(
                "ambiguous", f"{place}: {name!r:.80} is a connector, and a task of another"
            )
        return None


def written(work: ConnectorsAndTasks) -> list[str]:
    """Return the names of connectors, then of tasks by connector and number, once each."""
    ordered = Work.of([work]).in_order()
    return [*ordered.connectors, *map(str, ordered.tasks)]

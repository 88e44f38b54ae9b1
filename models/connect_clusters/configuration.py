"""The configuration in a config topic as of each offset: connectors and their numbers of tasks."""

from __future__ import annotations

from collections import deque

from caughtup.models.ids import ConnectorTaskId
from caughtup.models.records.connect import (
    MOST_TASKS,
    ConfigEvent,
    ConnectorConfig,
    ConnectorDeleted,
    TargetState,
    TaskConfigured,
    TasksCommitted,
)
from caughtup.models.records.decoding import TOO_MANY, RefusedError

#: The most connectors of a worker cluster.
MOST_CONNECTORS = 20_000
#: The newest changes are kept, to be undone: leaders decide from no much older configuration.
_CHANGES = 50_000


class Configuration:
    """A worker cluster's configuration. Source: Connect's ``KafkaConfigBackingStore``.

    ``connectors`` has each connector's number of tasks as its leader counts them: 0 if some of
    the tasks' configurations are missing, as compaction may leave it. ``changed_ms`` has when
    each connector or its tasks changed (ms, the broker's clock).
    """

    def __init__(self) -> None:
        self.configs: dict[str, ConnectorConfig] = {}
        self.targets: dict[str, TargetState] = {}
        self.inconsistent: set[str] = set()
        self.changed_ms: dict[str, int] = {}
        self.connectors: dict[str, int] = {}
        self.next_offset = 0
        self._committed: dict[str, int] = {}
        self._total = 0
        self._deferred: dict[str, set[int]] = {}
        #: Each change: the offset after it, the connector, its tasks before (None: no connector).
        self._changes: deque[tuple[int, str, int | None]] = deque(maxlen=_CHANGES)

    def at(self, offset: int) -> dict[str, int] | None:
        """Return the configuration of a leader that read the topic up to an offset, exclusive.

        None if the topic is not read so far, or the changes since are no longer kept.
        """
        if offset > self.next_offset:
            return None
        then = dict(self.connectors)
        for since, name, before in reversed(self._changes):
            if since <= offset:
                return then
            if before is None:
                then.pop(name, None)
            else:
                then[name] = before
        return then if len(self._changes) < _CHANGES else None

    def note(self, offset: int) -> None:
        """Note that the record at an offset was read, whether or not it can be applied."""
        self.next_offset = max(self.next_offset, offset + 1)

    def apply(self, event: ConfigEvent | None, offset: int, at_ms: int) -> None:
        """Apply the record at an offset.

        Raises RefusedError if there are too many connectors or tasks.
        """
        self.note(offset)
        if event is None or not self._apply(event, at_ms):
            return
        name = event.task.connector if isinstance(event, TaskConfigured) else event.connector
        before, now = self.connectors.get(name), self._count(name)
        if before != now:
            self._changes.append((offset + 1, name, before))
            if now is None:
                del self.connectors[name]
            else:
                self.connectors[name] = now

    def _count(self, name: str) -> int | None:
        """Return a connector's number of tasks as a leader counts them, None for no connector."""
        if name not in self.configs:
            return None
        return 0 if name in self.inconsistent else self._committed.get(name, 0)

    def _apply(self, event: ConfigEvent, at_ms: int) -> bool:
        """Apply an event; return whether it may change a connector's number of tasks."""
        if isinstance(event, ConnectorConfig):
            name = event.connector
            if name not in self.configs and len(self.configs) >= MOST_CONNECTORS:
                raise RefusedError(TOO_MANY, f"more than {MOST_CONNECTORS} connectors")
            self.changed_ms.setdefault(name, at_ms)
            self.configs[name] = event
            return True
        if isinstance(event, ConnectorDeleted):
            self._delete(event.connector)
            return True
        if isinstance(event, TaskConfigured):
            self._defer(event.task)
            return False
        if isinstance(event, TasksCommitted):
            return self._commit(event, at_ms)
        self.targets[event.connector] = event.state
        if len(self.targets) > MOST_CONNECTORS:
            del self.targets[next(iter(self.targets))]
        return False

    def _delete(self, name: str) -> None:
        self.configs.pop(name, None)
        self.targets.pop(name, None)
        self.changed_ms.pop(name, None)
        self._total -= self._committed.pop(name, 0)
        self._deferred.pop(name, None)
        self.inconsistent.discard(name)

    def _defer(self, task: ConnectorTaskId) -> None:
        deferred = self._deferred.setdefault(task.connector, set())
        if task.task < MOST_TASKS:
            deferred.add(task.task)
        if len(self._deferred) > MOST_CONNECTORS:
            del self._deferred[next(iter(self._deferred))]

    def _commit(self, event: TasksCommitted, at_ms: int) -> bool:
        name, deferred = event.connector, self._deferred.pop(event.connector, set())
        before = self._committed.get(name)
        if self._total - (before or 0) + event.tasks > MOST_TASKS:
            raise RefusedError(TOO_MANY, f"more than {MOST_TASKS} tasks")
        if deferred.issuperset(range(event.tasks)):
            self.inconsistent.discard(name)
        else:
            self.inconsistent.add(name)
        if before != event.tasks:
            self.changed_ms[name] = at_ms
        self._committed[name] = event.tasks
        self._total += event.tasks - (before or 0)
        if len(self._committed) > 2 * MOST_CONNECTORS:
            self._total -= self._committed.pop(next(iter(self._committed)))
        return True

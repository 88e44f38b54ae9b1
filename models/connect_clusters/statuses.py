"""The statuses that workers report, and how fresh the offsets of source connectors are."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from caughtup.models.records.connect import SourceOffset, Status, StatusRemoved, Subject
from caughtup.models.records.decoding import TOO_MANY, RefusedError

#: The most connectors and tasks with a status, deleted ones included.
_MOST_STATUSES = 200_000
#: The most workers that are remembered after others have overwritten their statuses.
_MOST_WORKERS = 10_000
#: The most connectors with source offsets, and the most counted partitions of each.
_MOST_CONNECTORS, _MOST_PARTITIONS = 20_000, 10_000


class DatedStatus(NamedTuple):
    """A status, and when it was written (ms, by the broker's clock if that stamps records)."""

    status: Status
    at_ms: int


class Statuses:
    """The newest status of each connector and task.

    ``late`` has statuses of workers that wrote them after another worker had in a later
    generation: such a worker ran, or still runs, what was revoked from it.
    """

    def __init__(self) -> None:
        self.newest: dict[Subject, DatedStatus] = {}
        self.late: dict[Subject, DatedStatus] = {}
        #: Records that were applied.
        self.records = 0
        self._workers: Counter[str] = Counter()
        self._earlier: dict[str, None] = {}

    def apply(self, event: Status | StatusRemoved | None, at_ms: int) -> None:
        """Apply a record. Raises RefusedError if there are too many statuses."""
        if event is None:
            return
        self.records += 1
        before = self.newest.get(event.subject)
        if before is not None:
            self._workers[before.status.worker] -= 1
        if isinstance(event, StatusRemoved):
            self.newest.pop(event.subject, None)
            self.late.pop(event.subject, None)
            return
        if before is None and len(self.newest) >= _MOST_STATUSES:
            raise RefusedError(TOO_MANY, f"more than {_MOST_STATUSES} statuses")
        said = DatedStatus(event, at_ms)
        if (
            before is not None
            and before.status.worker != event.worker
            and event.generation < before.status.generation
        ):
            self.late[event.subject] = said
        else:
            self.late.pop(event.subject, None)
        self.newest[event.subject] = said
        self._workers[event.worker] += 1
        self._earlier[event.worker] = None
        if len(self._earlier) > _MOST_WORKERS:
            del self._earlier[next(iter(self._earlier))]

    def workers(self) -> set[str]:
        """Return the ids of workers that wrote one of the newest statuses."""
        return {worker for worker, count in self._workers.items() if count > 0}

    def earlier_workers(self) -> set[str]:
        """Return the ids of the workers remembered as having ever written a status."""
        return set(self._earlier)


class Freshness(NamedTuple):
    """When a source connector last stored an offset (ms), and for how many partitions it has."""

    at_ms: int
    partitions: int


class SourceOffsets:
    """The freshness of each source connector's offsets."""

    def __init__(self) -> None:
        self._partitions: dict[str, set[bytes]] = {}
        self._at_ms: dict[str, int] = {}

    def apply(self, event: SourceOffset, at_ms: int) -> None:
        """Apply a record. Raises RefusedError if there are too many connectors."""
        known = self._partitions.get(event.connector)
        if known is None:
            if len(self._partitions) >= _MOST_CONNECTORS:
                raise RefusedError(TOO_MANY, f"offsets of more than {_MOST_CONNECTORS} connectors")
            known = self._partitions[event.connector] = set()
        if event.removed:
            known.discard(event.partition)
            return
        if len(known) < _MOST_PARTITIONS:
            known.add(event.partition)
        self._at_ms[event.connector] = max(at_ms, self._at_ms.get(event.connector, 0))

    def of(self, connector: str) -> Freshness | None:
        """Return the freshness of a connector's offsets, None if it stored none."""
        at_ms = self._at_ms.get(connector)
        return None if at_ms is None else Freshness(at_ms, len(self._partitions[connector]))

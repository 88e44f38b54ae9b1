"""What workers say of connectors and tasks, and how fresh the offsets are that sources store."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from caughtup.models.records.connect.reading import Subject
from caughtup.models.records.connect.source_offsets import SourceOffset
from caughtup.models.records.connect.status import Status, StatusRemoved
from caughtup.models.records.decoding import TOO_MANY, RefusedError

#: Connectors and tasks with a status: as many as there may be, deleted ones included.
_MOST_STATUSES = 200_000
#: Workers that are remembered, though others have written all of their statuses anew.
_MOST_WORKERS = 10_000
#: Connectors with source offsets, and partitions of each that are counted.
_MOST_CONNECTORS, _MOST_PARTITIONS = 20_000, 10_000


class Said(NamedTuple):
    """A status, and when it was written (ms, by the broker's clock where it stamps records)."""

    status: Status
    at_ms: int


class Statuses:
    """The newest status of each connector and task.

    ``late`` are those that a worker wrote after another one had in a later generation: it ran, or
    still runs, what it should have stopped.
    """

    def __init__(self) -> None:
        self.newest: dict[Subject, Said] = {}
        self.late: dict[Subject, Said] = {}
        #: Records that were applied.
        self.records = 0
        self._workers: Counter[str] = Counter()
        self._earlier: dict[str, None] = {}

    def apply(self, event: Status | StatusRemoved | None, at_ms: int) -> None:
        """Apply a record. Raises RefusedError where there are too many."""
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
        said = Said(event, at_ms)
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
        """Name the workers that wrote any of the newest statuses."""
        return {worker for worker, count in self._workers.items() if count > 0}

    def earlier_workers(self) -> set[str]:
        """Name the workers that ever wrote one, as long as that is remembered."""
        return set(self._earlier)


class Freshness(NamedTuple):
    """When a source last stored an offset (ms), and of how many partitions it has one."""

    at_ms: int
    partitions: int


class SourceOffsets:
    """How fresh each source connector's offsets are."""

    def __init__(self) -> None:
        self._partitions: dict[str, set[bytes]] = {}
        self._at_ms: dict[str, int] = {}

    def apply(self, event: SourceOffset, at_ms: int) -> None:
        """Apply a record. Raises RefusedError where there are too many."""
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
        """Return how fresh a connector's offsets are; None where it stored none."""
        at_ms = self._at_ms.get(connector)
        return None if at_ms is None else Freshness(at_ms, len(self._partitions[connector]))

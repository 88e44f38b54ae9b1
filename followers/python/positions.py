"""Make the records of task-positions: the positions of a process's copies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from caughtup.followers.python.topology import Topology
from caughtup.models.ids import ProcessId, TaskId, TopicPartition
from caughtup.models.records.keys import encode_copy
from caughtup.models.records.task_positions import FORMAT, PositionRecord, Role

#: How often unchanged positions are published again.
_REPEAT_SECONDS = 60.0

Offsets = Mapping[TopicPartition, int]


class PositionReports:
    """Makes records of positions that changed since the last call, and each minute of all."""

    def __init__(self, topology: Topology, group: str, process: ProcessId, client_id: str) -> None:
        self._topology = topology
        self._group = group
        self._process = str(process)
        self._client_id = client_id
        self._published: dict[bytes, PositionRecord] = {}
        self._repeated = 0.0

    def records(
        self,
        restoring: Iterable[TaskId],
        standby: Iterable[TaskId],
        positions: Offsets,
        starts: Offsets,
        ends: Offsets,
        now_ms: int,
        clock: float,
    ) -> dict[bytes, bytes | None]:
        """Return the records to write, by key; a tombstone for a copy that no longer restores.

        ``positions``: the next offsets of changelog partitions; ``starts`` and ``ends``: their
        bounds. ``now_ms`` goes into the records; ``clock`` is monotonic, in s.
        """
        repeat = clock - self._repeated >= _REPEAT_SECONDS
        self._repeated = clock if repeat else self._repeated
        there: dict[bytes, PositionRecord] = {}
        roles: tuple[tuple[Role, Iterable[TaskId]], ...]
        roles = ("restoring", restoring), ("standby", standby)
        for role, tasks in roles:
            for task in sorted(tasks):
                key = encode_copy(self._group, self._process, str(task))
                there[key] = self._position(task, role, positions, starts, ends)
        records: dict[bytes, bytes | None] = {}
        for key, position in there.items():
            if repeat or position != self._published.get(key):
                records[key] = FORMAT.encode(replace(position, at_ms=now_ms))
        for key in self._published.keys() - there.keys():
            records[key] = None
        self._published = there
        return records

    def _position(
        self, task: TaskId, role: Role, positions: Offsets, starts: Offsets, ends: Offsets
    ) -> PositionRecord:
        lags: dict[str, int | None] = {}
        leads: dict[str, int | None] = {}
        for one in sorted(self._topology.tables_of(task).values()):
            at, start, end = positions.get(one, 0), starts.get(one), ends.get(one)
            lags[one.topic] = None if end is None else max(0, end - max(at, start or 0))
            leads[one.topic] = None if start is None else max(0, at - start)
        known = [lag for lag in lags.values() if lag is not None]
        return PositionRecord(
            FORMAT.schema,
            self._group,
            self._process,
            self._client_id,
            str(task),
            role,
            sum(known) if len(known) == len(lags) else None,
            lags,
            leads,
        )

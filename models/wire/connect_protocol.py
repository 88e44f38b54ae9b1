"""The messages between Connect's workers and their leader: work owned, assigned, revoked."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from caughtup.models.errors import DecodeError
from caughtup.models.ids import NUMBER_MAX, ConnectorTaskId
from caughtup.models.wire.bounds import bounded
from caughtup.models.wire.reader import Reader

#: The protocol type of a group of Connect workers.
PROTOCOL_TYPE = "connect"
#: By version: 0 eager, 1 compatible, 2 sessioned (KIP-507), which is written as 1 is.
PROTOCOLS = ("default", "compatible", "sessioned")
EAGER = PROTOCOLS[0]

_CONNECTOR = -1  # in place of a task's number: the connector itself
_NO_OFFSET = -1  # nothing was read from the config topic
_TASK = struct.Struct(">i")
_CONNECTOR_BYTES = 6  # a name's length and the count of its tasks
_NULL_ARRAY = b"\xff\xff\xff\xff"
_INT_MAX = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class ConnectorsAndTasks:
    """Connectors and tasks, each in the order of the message."""

    connectors: tuple[str, ...] = ()
    tasks: tuple[ConnectorTaskId, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.connectors or self.tasks)


NOTHING = ConnectorsAndTasks()


@dataclass(frozen=True, slots=True)
class WorkerAssignment:
    """A leader's assignment for a worker.

    ``assigned`` is the worker's whole work in version 0, and from version 1 on the work to start in
    addition. ``error`` 1 means that the leader had not read the config topic up to
    ``config_offset``, which some worker had: all workers join again. ``delay_ms`` is the time to
    wait before joining again, 0 for not joining again. Before version 1 ``revoked`` is empty.
    """

    version: int
    error: int
    leader: str
    leader_url: str
    config_offset: int
    assigned: ConnectorsAndTasks
    revoked: ConnectorsAndTasks
    delay_ms: int


@dataclass(frozen=True, slots=True)
class WorkerState:
    """A worker's subscription.

    ``config_offset`` is the position in the config topic, -1 if nothing was read. ``assignment`` is
    the worker's last assignment, with the work that it ran then as ``assigned``; None in version 0,
    for a worker that joins for the first time, and for one that gave up all work.
    """

    version: int
    url: str
    config_offset: int
    assignment: WorkerAssignment | None

    @property
    def owned(self) -> ConnectorsAndTasks:
        """The work that the worker ran when it joined."""
        return NOTHING if self.assignment is None else self.assignment.assigned


def decode_worker_state(data: bytes) -> WorkerState:
    """Decode a worker's subscription, versions 0 to 2.

    Trailing bytes are tolerated, as Connect tolerates them. Raises DecodeError: ``unknown_version``
    for a later version, ``out_of_range``. Source: Connect's
    ``IncrementalCooperativeConnectProtocol``.
    """
    reader = Reader(data)
    version = _version(reader, "subscription")
    url, config_offset = reader.string(), _config_offset(reader)
    owned = reader.nullable_byte_string() if version else None
    assignment = None if owned is None else decode_worker_assignment(owned)
    return WorkerState(version, url, config_offset, assignment)


def decode_worker_assignment(data: bytes) -> WorkerAssignment:
    """Decode a worker's assignment, versions 0 to 2; trailing bytes are tolerated.

    Raises DecodeError: ``unknown_version`` for a later version, ``out_of_range`` for an impossible
    task number, a negative delay or an offset below -1. Source: Connect's ``ExtendedAssignment``.
    """
    reader = Reader(data)
    version = _version(reader, "assignment")
    # Keyword arguments are evaluated as written, and that is the order on the wire.
    return WorkerAssignment(
        version=version,
        error=reader.int16(),
        leader=reader.string(),
        leader_url=reader.string(),
        config_offset=_config_offset(reader),
        assigned=_nullable_connectors_and_tasks(reader) if version else _by_connector(reader),
        revoked=_nullable_connectors_and_tasks(reader) if version else NOTHING,
        delay_ms=bounded("delay", reader.int32(), 0, _INT_MAX) if version else 0,
    )


def _version(reader: Reader, what: str) -> int:
    version = reader.int16()
    if not 0 <= version < len(PROTOCOLS):
        raise DecodeError("unknown_version", f"Connect {what} version {version}")
    return version


def _config_offset(reader: Reader) -> int:
    return bounded("config offset", reader.int64(), _NO_OFFSET)


def _nullable_connectors_and_tasks(reader: Reader) -> ConnectorsAndTasks:
    if reader.data.startswith(_NULL_ARRAY, reader.position):
        reader.take(len(_NULL_ARRAY))
        return NOTHING
    return _by_connector(reader)


def _by_connector(reader: Reader) -> ConnectorsAndTasks:
    """Read an array of connectors, each with task numbers, of which -1 is the connector itself."""
    connectors: list[str] = []
    tasks: list[ConnectorTaskId] = []
    for _ in range(reader.array_length(_CONNECTOR_BYTES)):
        name = reader.string()
        for (number,) in reader.rows(_TASK):
            if bounded("task", number, _CONNECTOR, NUMBER_MAX) == _CONNECTOR:
                connectors.append(name)
            else:
                tasks.append(ConnectorTaskId(name, number))
    return ConnectorsAndTasks(tuple(connectors), tuple(tasks))

"""What Connect's workers and their leader send each other: what each has, is given, and lets go."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from caughtup.models.errors import DecodeError
from caughtup.models.ids import NUMBER_MAX, ConnectorTaskId
from caughtup.models.wire.bounds import bounded
from caughtup.models.wire.reader import Reader

#: The protocol type of a group of Connect workers, which is how one is told from others.
PROTOCOL_TYPE = "connect"
#: By version: 0 eager, 1 compatible, 2 sessioned (KIP-507), which is written as 1 is.
PROTOCOLS = ("default", "compatible", "sessioned")
EAGER = PROTOCOLS[0]

_CONNECTOR = -1  # stands among the numbers of tasks for the connector itself
_NO_OFFSET = -1  # of a config topic that nothing was read from
_TASK = struct.Struct(">i")
_CONNECTOR_BYTES = 6  # a name's length and the count of its tasks
_NULL_ARRAY = b"\xff\xff\xff\xff"
_INT_MAX = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class ConnectorsAndTasks:
    """Connectors and tasks, each in the order of the wire."""

    connectors: tuple[str, ...] = ()
    tasks: tuple[ConnectorTaskId, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.connectors or self.tasks)


NOTHING = ConnectorsAndTasks()


@dataclass(frozen=True, slots=True)
class WorkerAssignment:
    """What the leader told a worker.

    ``assigned`` is all that the worker shall run in version 0, and from 1 on what it shall start
    beside what it has. ``error`` 1 means that the leader had not read the config topic as far as
    ``config_offset``, which some worker had: everybody joins again. ``delay_ms`` is how long to
    wait before joining again, 0 for not at all. Before version 1 nothing is ``revoked``.
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
    """What a worker said when it joined.

    ``config_offset`` is how far it had read the config topic, -1 if not at all. ``assignment`` has
    as ``assigned`` what it ran then, beside what its last leader told it; None in version 0, for
    one that joins for the first time, and for one that gave everything up.
    """

    version: int
    url: str
    config_offset: int
    assignment: WorkerAssignment | None

    @property
    def owned(self) -> ConnectorsAndTasks:
        """What the worker ran when it joined."""
        return NOTHING if self.assignment is None else self.assignment.assigned


def decode_worker_state(data: bytes) -> WorkerState:
    """Read what a worker said when it joined (its subscription), versions 0 to 2.

    Bytes left over are tolerated, as Connect tolerates them. Raises DecodeError:
    ``unknown_version`` for a later version, ``out_of_range``. Source: Connect's
    ``IncrementalCooperativeConnectProtocol``.
    """
    reader = Reader(data)
    version = _version(reader, "subscription")
    url, config_offset = reader.string(), _config_offset(reader)
    owned = reader.nullable_byte_string() if version else None
    assignment = None if owned is None else decode_worker_assignment(owned)
    return WorkerState(version, url, config_offset, assignment)


def decode_worker_assignment(data: bytes) -> WorkerAssignment:
    """Read what the leader told a worker, versions 0 to 2; bytes left over are tolerated.

    Raises DecodeError: ``unknown_version`` for a later version, ``out_of_range`` for a number that
    no task has, a negative delay or an offset below -1. Source: Connect's ``ExtendedAssignment``.
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
    """Read an array of connectors, each with numbers of tasks, -1 being the connector itself."""
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

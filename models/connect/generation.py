"""A generation of a Connect group, as its metadata record has it: who joined, and was told what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from caughtup.models.connect.decision import WorkerDecision
from caughtup.models.connect.round import Round
from caughtup.models.connect.worker import owned_after
from caughtup.models.errors import DecodeError
from caughtup.models.wire.connect_protocol import (
    NOTHING,
    PROTOCOL_TYPE,
    ConnectorsAndTasks,
    WorkerAssignment,
    WorkerState,
    decode_worker_assignment,
    decode_worker_state,
)
from caughtup.models.wire.group_metadata import GroupMember, GroupMetadata


@dataclass(frozen=True, slots=True)
class ConnectWorker:
    """A worker: what it said when it joined, and what its leader told it.

    ``told`` is None while the leader has told nothing yet.
    """

    member_id: str
    client_id: str
    host: str
    said: WorkerState
    told: WorkerAssignment | None

    @property
    def owns(self) -> ConnectorsAndTasks:
        """What it has when it has done as it was told, in the order in which it will say so."""
        if self.told is None:
            return self.said.owned
        owned = self.said.owned if self.told.version else NOTHING
        return owned_after(owned, WorkerDecision(self.told.assigned, self.told.revoked))


@dataclass(frozen=True, slots=True)
class ConnectGeneration:
    """A generation, with its workers by member id in the order of the record.

    ``leader`` is a member id, ``protocol`` one of ``default`` (eager), ``compatible`` and
    ``sessioned``, ``as_of_ms`` when the group's state changed, -1 if unknown. ``skipped`` names
    members that could not be read, with the reason.
    """

    group: str
    generation: int
    protocol: str | None
    leader: str | None
    as_of_ms: int
    workers: Mapping[str, ConnectWorker]
    skipped: tuple[str, ...] = ()

    @property
    def delay_ms(self) -> int:
        """How long the leader told all to wait before they join again, 0 for not at all."""
        return max((one.told.delay_ms for one in self.workers.values() if one.told), default=0)

    @property
    def rejoin_at_ms(self) -> int | None:
        """When the delay ends, in ms since the epoch; None without one, or without a time."""
        return self.as_of_ms + self.delay_ms if self.delay_ms and self.as_of_ms >= 0 else None

    @property
    def error(self) -> int:
        """The leader's error: 1 if it had not read the config topic as far as some worker."""
        return max((one.told.error for one in self.workers.values() if one.told), default=0)

    def round(
        self, connectors: Mapping[str, int], time_ms: int, *, last_completed: bool = True
    ) -> Round:
        """Return what the leader decided from, had it read this configuration by then."""
        said = {name: worker.said.owned for name, worker in self.workers.items()}
        return Round(time_ms, connectors, said, last_completed)


def read_connect_generation(group: str, metadata: GroupMetadata) -> ConnectGeneration | None:
    """Read a Connect group's generation from its metadata.

    Returns None for groups of another protocol type, and for records without members. A member
    that can't be read is left out and named in ``skipped``.
    """
    if metadata.protocol_type != PROTOCOL_TYPE or not metadata.members:
        return None
    workers: dict[str, ConnectWorker] = {}
    skipped: list[str] = []
    for member in metadata.by_id().values():
        try:
            workers[member.member_id] = _read(member)
        except DecodeError as error:
            skipped.append(f"{member.member_id}: {error}")
    return ConnectGeneration(
        group=group,
        generation=metadata.generation,
        protocol=metadata.protocol,
        leader=metadata.leader,
        as_of_ms=metadata.state_timestamp_ms,
        workers=workers,
        skipped=tuple(skipped),
    )


def _read(member: GroupMember) -> ConnectWorker:
    return ConnectWorker(
        member_id=member.member_id,
        client_id=member.client_id,
        host=member.client_host,
        said=decode_worker_state(member.subscription),
        told=decode_worker_assignment(member.assignment) if member.assignment else None,
    )

"""A generation of a Connect group in its metadata record: its workers and their assignments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from caughtup.models.connect.decision import Round, WorkerDecision, owned_after
from caughtup.models.connect.work import Configured, Work
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
class ConnectMember:
    """A worker as a member of the group: its state when it joined, and its assignment.

    ``assignment`` is None until the leader has sent one.
    """

    member_id: str
    client_id: str
    host: str
    state: WorkerState
    assignment: WorkerAssignment | None

    @property
    def owns(self) -> ConnectorsAndTasks:
        """What the worker owns after its assignment, in the order in which it will report it."""
        if self.assignment is None:
            return self.state.owned
        owned = self.state.owned if self.assignment.version else NOTHING
        return owned_after(owned, WorkerDecision(self.assignment.assigned, self.assignment.revoked))


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
    workers: Mapping[str, ConnectMember]
    skipped: tuple[str, ...] = ()

    @property
    def delay_ms(self) -> int:
        """The delay in ms after which the workers are to join again, 0 without one."""
        return max(
            (one.assignment.delay_ms for one in self.workers.values() if one.assignment), default=0
        )

    @property
    def rejoin_at_ms(self) -> int | None:
        """When the delay ends, in ms since the epoch; None without one, or without a time."""
        return self.as_of_ms + self.delay_ms if self.delay_ms and self.as_of_ms >= 0 else None

    @property
    def error(self) -> int:
        """The leader's error: 1 if it had not read the config topic as far as some worker."""
        return max(
            (one.assignment.error for one in self.workers.values() if one.assignment), default=0
        )

    def round(
        self, connectors: Mapping[str, int], time_ms: int, *, last_completed: bool = True
    ) -> Round:
        """Return the leader's input, if it had read this configuration at that time (ms)."""
        owned = {name: worker.state.owned for name, worker in self.workers.items()}
        return Round(time_ms, connectors, owned, last_completed)


def read_connect_generation(group: str, metadata: GroupMetadata) -> ConnectGeneration | None:
    """Return a Connect group's generation, decoded from its metadata.

    Returns None for groups of another protocol type, and for records without members. A member
    that cannot be decoded is left out and named in ``skipped``.
    """
    if metadata.protocol_type != PROTOCOL_TYPE or not metadata.members:
        return None
    workers: dict[str, ConnectMember] = {}
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


def _read(member: GroupMember) -> ConnectMember:
    return ConnectMember(
        member_id=member.member_id,
        client_id=member.client_id,
        host=member.client_host,
        state=decode_worker_state(member.subscription),
        assignment=decode_worker_assignment(member.assignment) if member.assignment else None,
    )


def worker_id(worker: ConnectMember) -> str:
    """Return Connect's worker id, host and port of its URL; without a URL its client id."""
    _, _, rest = worker.state.url.partition("://")
    return rest.partition("/")[0] or worker.client_id


def active(generation: ConnectGeneration) -> Work:
    """Return what workers ran when they joined."""
    return Work.of(worker.state.owned for worker in generation.workers.values())


def assigned(generation: ConnectGeneration) -> Work:
    """Return what the leader assigned to workers."""
    sent = (worker.assignment for worker in generation.workers.values())
    return Work.of(one.assigned for one in sent if one is not None)


def revoked(generation: ConnectGeneration) -> Work:
    """Return what the leader revoked from workers."""
    sent = (worker.assignment for worker in generation.workers.values())
    return Work.of(one.revoked for one in sent if one is not None)


def owned_then(generation: ConnectGeneration) -> Work:
    """Return what workers run after their assignments."""
    return Work.of(worker.owns for worker in generation.workers.values())


def config_offset(generation: ConnectGeneration) -> int:
    """Return the offset to which the leader had read the config topic, -1 if unknown."""
    sent = (worker.assignment for worker in generation.workers.values())
    return max((one.config_offset for one in sent if one is not None), default=-1)


def seen_configuration(generation: ConnectGeneration) -> dict[str, int]:
    """Return the smallest configuration that has all that workers run and are assigned."""
    seen = active(generation) | assigned(generation)
    counts = dict.fromkeys(sorted(seen.connectors), 0)
    for task in sorted(seen.tasks):
        counts[task.connector] = max(task.task + 1, counts.get(task.connector, 0))
    return counts


def unassigned(generation: ConnectGeneration, connectors: dict[str, int]) -> ConnectorsAndTasks:
    """Return what is configured and no worker runs after its assignment, in order."""
    has, configured = owned_then(generation), Configured(connectors)
    return configured.missing(has, configured.foreign(has))

"""A simulated Connect group: its leaders decide, and each generation is a log record."""

from __future__ import annotations

from collections.abc import Mapping

from caughtup.models.connect.assignors import decide_incremental
from caughtup.models.connect.decision import NO_MEMORY, ConnectDecision, Memory, Round, owned_after
from caughtup.models.connect.generation import ConnectGeneration, read_connect_generation
from caughtup.models.wire.connect_protocol import (
    NOTHING,
    ConnectorsAndTasks,
    WorkerAssignment,
    WorkerState,
)
from caughtup.models.wire.group_metadata import GroupMember, GroupMetadata, decode_group_metadata
from tests.models.wire.connect_encoders import worker_assignment, worker_state
from tests.support import wire

GROUP = "connect-cluster"
AT_MS = 1_790_000_000_000


def url(worker: str) -> str:
    return f"http://{worker.lower()}:8083/"


def member_record(
    name: str,
    worker: str,
    owned: ConnectorsAndTasks,
    assignment: WorkerAssignment,
    config_offset: int = 0,
) -> GroupMember:
    before = WorkerAssignment(2, 0, "", "", config_offset, owned, NOTHING, 0) if owned else None
    said = WorkerState(2, url(worker), config_offset, before)
    return GroupMember(
        name,
        None,
        worker,
        "/10.0.0.1",
        60_000,
        10_000,
        worker_state(said),
        worker_assignment(assignment),
    )


class Group:
    """Workers by name; each gets a new member id at every join."""

    def __init__(self, connectors: Mapping[str, int], max_delay_ms: int = 300_000) -> None:
        self.connectors = dict(connectors)
        self.max_delay_ms = max_delay_ms
        self.generation = 0
        self.now_ms = AT_MS
        self.config_offset = 1
        self.owned: dict[str, ConnectorsAndTasks] = {}
        self.members: dict[str, str] = {}
        self.memories: dict[str, Memory] = {}
        self.led: str | None = None
        self.last_led: dict[str, int] = {}
        #: The newest generation's record.
        self.value = b""
        self._joined = 0

    def join(self, *workers: str) -> None:
        for worker in workers:
            self._joined += 1
            self.members[worker] = f"connect-{worker}-{self._joined:04d}"
            self.owned[worker] = NOTHING

    def leave(self, *workers: str) -> None:
        """Remove a worker; it returns as a new process."""
        for worker in workers:
            del self.members[worker], self.owned[worker]
            self.memories.pop(worker, None)
            if self.led == worker:
                self.led = None

    def round(self, *, clock_ms: int = 0) -> tuple[ConnectGeneration, ConnectDecision]:
        """Complete a rebalance; the leader's clock is ``clock_ms`` ahead of the record's."""
        self.generation += 1
        if self.led is None:
            self.led = next(iter(self.members))
        names = {worker: self.members[worker] for worker in self.members}
        workers = {names[worker]: self.owned[worker] for worker in self.members}
        last = self.last_led.get(self.led)
        completed = last is None or last == self.generation - 1
        round_ = Round(self.now_ms + clock_ms, self.connectors, workers, completed)
        decision, memory = decide_incremental(
            round_, self.memories.get(self.led, NO_MEMORY), self.max_delay_ms
        )
        self.memories[self.led] = memory
        self.last_led[self.led] = self.generation
        leader = names[self.led]
        records = []
        for worker, name in names.items():
            one = decision.workers[name]
            assignment = WorkerAssignment(
                2, 0, leader, url(self.led), self.config_offset,
                one.assigned, one.revoked, decision.delay_ms,
            )  # fmt: skip
            records.append(
                member_record(name, worker, self.owned[worker], assignment, self.config_offset)
            )
            self.owned[worker] = owned_after(self.owned[worker], one)
        metadata = GroupMetadata(
            "connect", self.generation, "sessioned", leader, self.now_ms, tuple(records)
        )
        self.value = wire.group_metadata(metadata, 3)
        recorded = decode_group_metadata(self.value)
        generation = read_connect_generation(GROUP, recorded)
        assert generation is not None
        return generation, decision

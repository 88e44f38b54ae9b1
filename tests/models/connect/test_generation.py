"""Generations of Connect groups, as the log of groups has them."""

from __future__ import annotations

from dataclasses import replace

from caughtup.models.connect.assignors import decide_incremental
from caughtup.models.connect.decision import NO_MEMORY
from caughtup.models.connect.generation import read_connect_generation
from caughtup.models.groups.generation import group_type
from caughtup.models.ids import ConnectorTaskId
from caughtup.models.wire.connect_protocol import (
    NOTHING,
    ConnectorsAndTasks,
    WorkerAssignment,
    WorkerState,
)
from caughtup.models.wire.group_metadata import GroupMember, GroupMetadata, decode_group_metadata
from tests.models.wire.connect_encoders import worker_assignment, worker_state
from tests.support import wire

AS_OF_MS = 1_732_000_000_000
ALL = ConnectorsAndTasks(("A", "B"), (ConnectorTaskId("A", 0), ConnectorTaskId("B", 0)))
REVOKED = ConnectorsAndTasks(("A",), (ConnectorTaskId("A", 0),))
KEPT = ConnectorsAndTasks(("B",), (ConnectorTaskId("B", 0),))


def told(assigned: ConnectorsAndTasks, revoked: ConnectorsAndTasks, delay_ms: int = 0):
    return WorkerAssignment(2, 0, "w1", "http://w1:8083/", 42, assigned, revoked, delay_ms)


def member(name: str, owned: ConnectorsAndTasks, assignment: WorkerAssignment) -> GroupMember:
    said = WorkerState(2, f"http://{name}:8083/", 42, told(owned, NOTHING) if owned else None)
    return GroupMember(
        name, None, f"connect-{name}", "/10.0.0.1", 60_000, 10_000,
        worker_state(said), worker_assignment(assignment),
    )  # fmt: skip


W1 = member("w1", ALL, told(NOTHING, REVOKED))
W2 = member("w2", NOTHING, told(NOTHING, NOTHING))
METADATA = GroupMetadata("connect", 7, "sessioned", "w1", AS_OF_MS, (W2, W1))


def test_a_generation_has_what_workers_had_and_what_they_have_then():
    recorded = decode_group_metadata(wire.group_metadata(METADATA, 3))
    generation = read_connect_generation("connect-cluster", recorded)
    assert generation is not None
    assert (generation.generation, generation.leader) == (7, "w1")
    assert (generation.delay_ms, generation.rejoin_at_ms, generation.error) == (0, None, 0)
    assert [*generation.workers] == ["w2", "w1"]
    w1 = generation.workers["w1"]
    assert (w1.state.owned, w1.state.url, w1.client_id) == (ALL, "http://w1:8083/", "connect-w1")
    assert w1.owns == KEPT
    assert generation.workers["w2"].owns == NOTHING


def test_what_the_leader_decided_from_gives_what_it_told():
    generation = read_connect_generation("connect-cluster", METADATA)
    assert generation is not None
    round_ = generation.round({"A": 1, "B": 1}, AS_OF_MS)
    decision, _ = decide_incremental(round_, NO_MEMORY)
    for name, worker in generation.workers.items():
        assert worker.assignment is not None
        assert decision.workers[name].assigned == worker.assignment.assigned
        assert decision.workers[name].revoked == worker.assignment.revoked


def test_a_delay_ends_so_long_after_the_groups_state_changed():
    waiting = replace(METADATA, members=(member("w1", ALL, told(NOTHING, NOTHING, 300_000)),))
    generation = read_connect_generation("connect-cluster", waiting)
    assert generation is not None
    assert generation.rejoin_at_ms == AS_OF_MS + 300_000
    unknown = read_connect_generation("connect-cluster", replace(waiting, state_timestamp_ms=-1))
    assert unknown is not None
    assert (unknown.delay_ms, unknown.rejoin_at_ms) == (300_000, None)


def test_what_an_eager_worker_is_told_is_all_that_it_has():
    assignment = replace(told(KEPT, NOTHING), version=0)
    eager = replace(W1, assignment=worker_assignment(assignment))
    generation = read_connect_generation("g", replace(METADATA, members=(eager,)))
    assert generation is not None
    assert generation.workers["w1"].owns == KEPT


def test_a_worker_that_was_told_nothing_yet_has_what_it_had():
    joined = replace(W1, assignment=b"")
    generation = read_connect_generation("g", replace(METADATA, members=(joined,)))
    assert generation is not None
    assert generation.workers["w1"].owns == ALL
    assert (generation.delay_ms, generation.error) == (0, 0)


def test_a_worker_that_cannot_be_read_costs_itself():
    newer = replace(W2, subscription=wire.number("h", 3) + W2.subscription[2:])
    generation = read_connect_generation("g", replace(METADATA, members=(newer, W1)))
    assert generation is not None
    assert [*generation.workers] == ["w1"]
    assert generation.skipped == ("w2: unknown_version: Connect subscription version 3",)


def test_a_group_is_connects_by_its_protocol_type():
    assert group_type(METADATA) == "connect"
    consumers = replace(METADATA, protocol_type="consumer")
    assert group_type(consumers) == "classic"
    assert read_connect_generation("g", consumers) is None
    assert read_connect_generation("g", replace(METADATA, members=())) is None

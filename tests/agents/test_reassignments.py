"""Records of caughtup-reassignments: taken, ended, and skipped when they are malformed."""

from __future__ import annotations

import json
import logging
from typing import Any

import msgspec
import pytest

from caughtup.agents.reassignment_records import (
    CLUSTER_KEY,
    ClusterRecord,
    ReassignmentRecord,
    encode,
)
from caughtup.agents.reassignments import apply_record, known_movements
from caughtup.models.ids import TopicPartition
from caughtup.models.reassignment import offsets_remaining
from caughtup.models.reassignment_look import BrokerLook, ClusterLook, PartitionLook
from tests.support.streams import cluster_state

PARTITION = TopicPartition("orders", 0)
KEY = b"orders-0"
MOVING = ReassignmentRecord(
    schema=1,
    topic="orders",
    partition=0,
    as_of_ms=1_000,
    replicas=(3, 1, 2),
    adding=(3,),
    removing=(2,),
    isr=(1, 2),
    leader=1,
    log_ends={1: 900, 2: 900, 3: 100},
)


def encoded(record: ReassignmentRecord = MOVING, **changes: Any) -> bytes:
    return json.dumps({**msgspec.to_builtins(record, str_keys=True), **changes}).encode()


def ended(replicas: tuple[int, ...]) -> bytes:
    return msgspec.json.encode(ReassignmentRecord(1, "orders", 0, 2_000, replicas, ended=True))


def test_a_record_reads_back_as_the_look_it_was_written_of() -> None:
    state = cluster_state()
    apply_record(state, KEY, msgspec.json.encode(MOVING))
    assert state.reassignments.moving[PARTITION].latest == PartitionLook(
        partition=PARTITION,
        replicas=(3, 1, 2),
        adding=(3,),
        removing=(2,),
        isr=(1, 2),
        leader=1,
        log_ends={1: 900, 2: 900, 3: 100},
        as_of_ms=1_000,
    )


def test_what_could_not_be_had_is_absent() -> None:
    state = cluster_state()
    bare = ReassignmentRecord(1, "orders", 0, 1_000, (3, 1), (3,), (1,))
    assert b"leader" not in msgspec.json.encode(bare)
    apply_record(state, KEY, msgspec.json.encode(bare))
    latest = state.reassignments.moving[PARTITION].latest
    assert (latest.leader, latest.isr, offsets_remaining(latest)) == (None, (), None)


@pytest.mark.parametrize(
    ("replicas", "outcome"),
    [((3, 1), "completed"), ((1, 2), "cancelled"), ((), "vanished"), ((8, 9), "superseded")],
)
def test_the_last_look_ends_a_movement(replicas: tuple[int, ...], outcome: str) -> None:
    state = cluster_state()
    apply_record(state, KEY, encoded())
    apply_record(state, KEY, ended(replicas))
    apply_record(state, KEY, None)
    assert state.reassignments.moving == {}
    (end,) = state.reassignments.ended
    assert (end.partition, end.outcome, end.at_ms) == (PARTITION, outcome, 2_000)


def test_an_end_and_a_tombstone_of_what_was_never_seen_say_nothing() -> None:
    state = cluster_state()
    apply_record(state, KEY, None)
    apply_record(state, KEY, ended((1, 2)))
    assert (state.reassignments.moving, state.reassignments.ended) == ({}, [])


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\xff", id="not UTF-8"),
        pytest.param(b"7", id="not an object"),
        pytest.param(encoded()[:-1], id="cut short"),
        pytest.param(encoded(replicas="3,1"), id="a string for broker ids"),
        pytest.param(encoded(replicas=[None]), id="no broker id"),
        pytest.param(encoded(log_ends={"leader": 5}), id="log ends of no broker"),
        pytest.param(encoded(as_of_ms=None), id="null"),
        pytest.param(b'{"schema": 1, "topic": "orders"}', id="fields missing"),
        pytest.param(b"[" * 100_000, id="nested deeply"),
    ],
)
def test_a_malformed_record_is_logged_in_one_line_and_skipped(
    value: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    state = cluster_state()
    with caplog.at_level(logging.WARNING):
        apply_record(state, KEY, value)
    assert state.reassignments.moving == {}
    (line,) = caplog.messages
    assert "skipped a record of reassignments, key b'orders-0'" in line
    assert "\n" not in line
    apply_record(state, KEY, encoded())
    assert list(state.reassignments.moving) == [PARTITION]


def test_the_beginning_that_a_record_tells_counts_where_it_was_not_seen() -> None:
    state = cluster_state()
    apply_record(state, KEY, encoded(schema=2, since_ms=300, original=[2, 1]))
    tracked = state.reassignments.moving[PARTITION]
    assert (tracked.since_ms, tracked.original) == (300, (2, 1))


def test_a_movement_that_is_not_listed_propagates_until_it_is_again() -> None:
    state = cluster_state()
    apply_record(state, KEY, encoded())
    apply_record(state, KEY, encoded(unlisted=True, as_of_ms=1_500))
    tracked = state.reassignments.moving[PARTITION]
    assert (tracked.unlisted_ms, tracked.phase(None)) == (1_500, "propagating")
    apply_record(state, KEY, encoded(as_of_ms=2_000))
    assert (tracked.unlisted_ms, tracked.phase(None)) == (None, "A")


def test_a_look_at_the_cluster_is_taken_for_all_partitions() -> None:
    state = cluster_state()
    look = ClusterLook(7, {1: BrokerLook(fenced=True)}, missing=("sizes on broker 1: hm",))
    apply_record(state, CLUSTER_KEY, encode(ClusterRecord.from_look(look)))
    assert state.reassignments.cluster == look
    assert state.reassignments.moving == {}


@pytest.mark.parametrize("value", [b"", b"{}", b'{"schema": 2, "as_of_ms": 7, "brokers": 3}'])
def test_a_malformed_look_at_the_cluster_is_skipped(
    value: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    state = cluster_state()
    with caplog.at_level(logging.WARNING):
        apply_record(state, CLUSTER_KEY, value)
    assert state.reassignments.cluster is None
    (line,) = caplog.messages
    assert "skipped a record of reassignments, key b'_cluster'" in line


def test_what_ended_is_taken_up_again_only_if_nobody_told_what_followed() -> None:
    looks = [(KEY, encoded()), (KEY, encoded(as_of_ms=1_500))]
    over = [*looks, (KEY, ended((3, 1))), (KEY, None), (CLUSTER_KEY, b"{}")]
    assert known_movements(over, untold=[]) == {}
    (known,) = known_movements(over, untold=[PARTITION]).values()
    assert (known.look.partition, known.look.as_of_ms) == (PARTITION, 1_500)
    assert known_movements(looks, untold=[]) == {PARTITION: known}
    assert known_movements([*over, *looks[:1]], untold=[])[PARTITION].look.as_of_ms == 1_000

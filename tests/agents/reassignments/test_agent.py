"""Records of caughtup-reassignments: taken, ended, and refused when they are malformed."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from caughtup.agents.reassignments import agent as reassignment_records
from caughtup.agents.reassignments.agent import apply_record, read_back
from caughtup.models.clocks import AHEAD_MS
from caughtup.models.ids import TopicPartition
from caughtup.models.records.reassignments import (
    CLUSTER_KEY,
    BrokerRecord,
    ClusterRecord,
    ReassignmentRecord,
    offsets_remaining,
)
from tests.support.own_topics.malformed import malformed
from tests.support.reassignments.observations import ORDERS
from tests.support.states import cluster_state

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


def test_a_record_reads_back_as_the_observation_it_was_written_of() -> None:
    state = cluster_state()
    apply_record(state, KEY, msgspec.json.encode(MOVING))
    assert state.reassignments.ongoing[ORDERS].latest == MOVING


def test_what_could_not_be_had_is_absent() -> None:
    state = cluster_state()
    bare = ReassignmentRecord(1, "orders", 0, 1_000, (3, 1), (3,), (1,))
    assert b"leader" not in msgspec.json.encode(bare)
    apply_record(state, KEY, msgspec.json.encode(bare))
    latest = state.reassignments.ongoing[ORDERS].latest
    assert (latest.leader, latest.isr, offsets_remaining(latest)) == (None, (), None)


@pytest.mark.parametrize(
    ("replicas", "outcome"),
    [((3, 1), "completed"), ((1, 2), "cancelled"), ((), "vanished"), ((8, 9), "superseded")],
)
def test_the_last_observation_ends_a_reassignment(replicas: tuple[int, ...], outcome: str) -> None:
    state = cluster_state()
    apply_record(state, KEY, encoded())
    apply_record(state, KEY, ended(replicas))
    apply_record(state, KEY, None)
    assert state.reassignments.ongoing == {}
    (end,) = state.reassignments.ended
    assert (end.topic_partition, end.outcome, end.at_ms) == (ORDERS, outcome, 2_000)


def test_an_end_and_a_tombstone_of_what_was_never_seen_say_nothing() -> None:
    state = cluster_state()
    apply_record(state, KEY, None)
    apply_record(state, KEY, ended((1, 2)))
    assert (state.reassignments.ongoing, state.reassignments.ended) == ({}, [])


@pytest.mark.parametrize(
    ("reason", "key", "value"),
    [
        *malformed(KEY, encoded()),
        pytest.param("bad_type", KEY, encoded(replicas="3,1"), id="a string for broker ids"),
        pytest.param("bad_type", KEY, encoded(replicas=[None]), id="no broker id"),
        pytest.param("bad_type", KEY, encoded(log_ends={"leader": 5}), id="log ends of no broker"),
        pytest.param("bad_type", KEY, encoded(log_ends={"1": 2**63}), id="beyond all offsets"),
        pytest.param("bad_type", KEY, encoded(as_of_ms=None), id="null"),
        pytest.param("bad_type", KEY, b'{"schema": 1, "topic": "orders"}', id="fields missing"),
        pytest.param("bad_key", KEY, encoded(partition=1), id="of another partition"),
        pytest.param("from_the_future", KEY, encoded(as_of_ms=4_102_444_800_000), id="of 2100"),
    ],
)
def test_a_malformed_record_is_refused_with_its_reason(
    reason: str, key: bytes, value: bytes
) -> None:
    state = cluster_state()
    assert apply_record(state, key, value) is None
    assert state.reassignments.ongoing == {}
    assert state.refused.counts == {("reassignments", reason): 1}
    assert state.faults.newest() == []
    assert apply_record(state, KEY, encoded()).topic_partition == ORDERS
    assert list(state.reassignments.ongoing) == [ORDERS]


def test_the_beginning_that_a_record_tells_counts_where_it_was_not_seen() -> None:
    state = cluster_state()
    apply_record(state, KEY, encoded(schema=2, since_ms=300, original=[2, 1]))
    tracked = state.reassignments.ongoing[ORDERS]
    assert (tracked.since_ms, tracked.original) == (300, (2, 1))


def test_a_reassignment_that_is_not_listed_propagates_until_it_is_again() -> None:
    state = cluster_state()
    apply_record(state, KEY, encoded())
    apply_record(state, KEY, encoded(unlisted=True, as_of_ms=1_500))
    tracked = state.reassignments.ongoing[ORDERS]
    assert (tracked.unlisted_ms, tracked.phase(None)) == (1_500, "propagating")
    apply_record(state, KEY, encoded(as_of_ms=2_000))
    assert (tracked.unlisted_ms, tracked.phase(None)) == (None, "A")


def test_an_observation_from_long_before_the_last_one_says_nothing_of_now() -> None:
    state = cluster_state()
    now_ms = 100 * AHEAD_MS
    apply_record(state, KEY, encoded(as_of_ms=now_ms), now_ms)
    assert apply_record(state, KEY, encoded(as_of_ms=0, isr=[]), now_ms) is None
    tracked = state.reassignments.ongoing[ORDERS]
    assert (tracked.since_ms, tracked.isr) == (now_ms, (1, 2))
    # The clock was set back: this one was made just now.
    assert (
        apply_record(state, KEY, encoded(as_of_ms=AHEAD_MS), AHEAD_MS + 1).topic_partition == ORDERS
    )
    assert [observation.as_of_ms for observation in tracked.observations] == [AHEAD_MS]


def test_an_observation_at_the_cluster_is_taken_for_all_partitions() -> None:
    state = cluster_state()
    observation = ClusterRecord(
        2, 7, {1: BrokerRecord(fenced=True)}, missing=("sizes on broker 1: hm",)
    )
    apply_record(state, CLUSTER_KEY, msgspec.json.encode(observation))
    assert state.reassignments.cluster == observation
    assert state.reassignments.ongoing == {}


@pytest.mark.parametrize(
    ("reason", "value"),
    [
        ("bad_json", b""),
        ("bad_type", b"{}"),
        ("bad_type", b'{"schema": 2, "as_of_ms": 7, "brokers": 3}'),
        ("other_schema", b'{"schema": 3, "as_of_ms": 7}'),
        ("from_the_future", b'{"schema": 2, "as_of_ms": 4102444800000}'),
    ],
)
def test_a_malformed_observation_at_the_cluster_is_refused(reason: str, value: bytes) -> None:
    state = cluster_state()
    apply_record(state, CLUSTER_KEY, value)
    assert state.reassignments.cluster is None
    assert state.refused.counts == {("reassignments", reason): 1}


def test_beyond_the_most_no_partition_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reassignment_records, "MOST_ONGOING", 1)
    state = cluster_state()
    apply_record(state, KEY, encoded())
    assert apply_record(state, b"orders-1", encoded(partition=1)) is None
    assert state.refused.counts == {("reassignments", "too_many"): 1}
    assert apply_record(state, KEY, encoded(as_of_ms=1_001)).topic_partition == ORDERS


def test_what_ended_is_taken_up_again_only_if_nobody_told_what_followed() -> None:
    def known(
        records: list[tuple[bytes, bytes | None]], unfinished: list[TopicPartition]
    ) -> dict[TopicPartition, ReassignmentRecord]:
        moving: dict[TopicPartition, ReassignmentRecord] = {}
        for key, value in records:
            read_back(moving, key, value, 2_000, unfinished)
        return moving

    observations = [(KEY, encoded()), (KEY, encoded(as_of_ms=1_500))]
    over = [*observations, (KEY, ended((3, 1))), (KEY, None)]
    assert known(over, unfinished=[]) == {}
    (one,) = known(over, unfinished=[ORDERS]).values()
    assert (one.topic_partition, one.as_of_ms) == (ORDERS, 1_500)
    assert known(observations, unfinished=[]) == {ORDERS: one}
    assert known([*over, *observations[:1]], unfinished=[])[ORDERS].as_of_ms == 1_000

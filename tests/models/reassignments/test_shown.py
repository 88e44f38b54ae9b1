"""A reassignment as the page and ``caughtup reassignments`` show it."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from caughtup.models.ids import TopicPartition
from caughtup.models.reassignments.advice import in_words
from caughtup.models.state.cluster import ClusterState
from tests.support.reassignments.reassigning import (
    APART_MS,
    DEAD,
    FINE,
    NEW,
    SEEN_MS,
    cluster_observation,
    join,
    ongoing_observation,
    reassigning,
)

#: The contract's fields, and those that were added to them.
ALWAYS = [
    "topic",
    "partition",
    "phase",
    "replicas",
    "target",
    "adding",
    "removing",
    "isr",
    "verdict",
    "age_seconds",
    "original",
    "idle_seconds",
    "kind",
    "at_ms",
]
SOMETIMES = [
    "leader",
    "leader_epoch",
    "cause",
    "evidence",
    "advice",
    "bytes_remaining",
    "offsets_remaining",
    "rate_bytes_per_second",
    "eta_seconds",
    "rate_offsets_per_second",
    "never",
]


@pytest.fixture(scope="module")
def state() -> ClusterState:
    return reassigning()


def line(state: ClusterState, partition: TopicPartition, page: bool = False) -> dict[str, Any]:
    """Return a line as a reader of the JSON has it."""
    watch = state.reassignment_watch
    describe = watch.detailed if page else watch.row
    written = msgspec.json.encode(describe(state.reassignments, partition, SEEN_MS))
    read: dict[str, Any] = json.loads(written)
    return read


def test_every_line_has_the_contracts_fields_and_no_nulls(state: ClusterState) -> None:
    for partition in (FINE, DEAD, NEW):
        told = line(state, partition)
        assert set(ALWAYS) <= told.keys() <= set(ALWAYS + SOMETIMES)
        assert None not in told.values()


def test_a_move_that_fares_well_has_its_figures(state: ClusterState) -> None:
    told = line(state, FINE)
    assert told.pop("eta_seconds") == pytest.approx(305, rel=0.1)
    assert told.pop("evidence")["offsets_behind"] == 61_000
    assert told == {
        "kind": "partition",
        "at_ms": SEEN_MS,
        "topic": "fine",
        "partition": 0,
        "phase": "A",
        "replicas": [2, 1],
        "original": [1],
        "target": [2],
        "adding": [2],
        "removing": [1],
        "isr": [1],
        "leader": 1,
        "leader_epoch": 3,
        "verdict": "moving",
        "bytes_remaining": 6_100_000,
        "offsets_remaining": 61_000,
        "rate_bytes_per_second": 20_000.0,
        "rate_offsets_per_second": 200.0,
        "age_seconds": 195.0,
        "idle_seconds": 0.0,
    }


def test_a_move_that_cannot_end_has_its_cause_and_no_time_to_go(state: ClusterState) -> None:
    told = line(state, DEAD, page=True)
    assert (told["verdict"], told["cause"]) == ("dead target", "destination-broker-down")
    assert told["never"] is True
    assert not {"eta_seconds", "offsets_remaining", "rate_bytes_per_second"} & told.keys()
    assert told["why"] == "broker 5, away 3 min, doesn't answer, not registered"
    assert told["advice"].startswith("start broker 5")


def test_the_lines_have_the_worst_first_then_throttles_and_what_is_not_known() -> None:
    state = reassigning()
    state.reassignments.apply_cluster(cluster_observation(SEEN_MS, missing=("the quorum",)))
    lines = state.reassignment_watch.lines(state.reassignments, SEEN_MS)
    found = [json.loads(msgspec.json.encode(line)) for line in lines]
    assert [(one["kind"], one.get("topic") or one.get("name") or one["what"]) for one in found] == [
        ("partition", "dead"),
        ("partition", "new"),
        ("partition", "fine"),
        ("throttle", "6"),
        ("throttle", "left"),
        ("missing", "the quorum"),
    ]
    assert [one.get("never") for one in found[:3]] == [True, None, None]
    nothing = ClusterState("c", {})
    assert list(nothing.reassignment_watch.lines(nothing.reassignments, 1)) == []


def test_a_move_that_nobody_has_judged_yet_is_being_measured() -> None:
    state = reassigning()
    state.reassignments.apply(ongoing_observation(TopicPartition("newer", 1), 2, SEEN_MS, 0))
    assert line(state, TopicPartition("newer", 1))["verdict"] == "measuring"


def test_each_copy_says_how_much_of_the_log_it_has(state: ClusterState) -> None:
    added, removed = line(state, FINE, page=True)["copies"]
    assert added == {
        "broker": 2,
        "role": "added",
        "in_sync": False,
        "log_end": 39_000,
        "share": 0.39,
    }
    assert (removed["broker"], removed["role"], removed["in_sync"]) == (1, "removed", True)
    away, _ = line(state, DEAD, page=True)["copies"]
    assert away == {
        "broker": 5,
        "role": "added",
        "in_sync": False,
        "away": True,
        "unanswered": True,
    }


def test_without_sizes_a_copys_share_counts_from_where_it_was_first_seen() -> None:
    state = reassigning()
    for number, copied in enumerate((20_000, 60_000)):
        observation = ongoing_observation(
            TopicPartition("sizeless", 0), 2, SEEN_MS + number * APART_MS, copied
        )
        state.reassignments.apply(replace(observation, sizes={}))
    added, _ = line(state, TopicPartition("sizeless", 0), page=True)["copies"]
    assert added["share"] == 0.5


def test_a_copy_in_sync_has_all_of_it() -> None:
    state = reassigning()
    join(state)
    added, _ = line(state, FINE, page=True)["copies"]
    assert (added["in_sync"], added["share"]) == (True, 1)


def test_those_that_need_somebody_come_first(state: ClusterState) -> None:
    assert state.reassignment_watch.worst_first(state.reassignments) == [DEAD, NEW, FINE]


def test_an_end_says_from_where_to_where_and_where_it_is(state: ClusterState) -> None:
    lost = json.loads(msgspec.json.encode(state.reassignments.ended[-1]))
    assert lost == {
        "topic": "lost",
        "partition": 0,
        "outcome": "vanished",
        "at_ms": SEEN_MS,
        "original": [1],
        "target": [2],
        "seconds": 0,
    }


def test_evidence_is_written_as_a_person_reads_it() -> None:
    evidence = {
        "replica": 1234,
        "offsets_behind": 12_345,
        "stood_seconds": 64.0,
        "throttle_bytes_per_second": 200_000,
        "bytes_per_second": 1_500_000,
        "usable_bytes": 1_000,
        "bytes_behind": 2_400_000_000,
        "fenced": True,
        "registered": False,
        "answers": False,
        "waits_for": [4, 5],
        "throttled_as": "leader",
        "looks": 40,
        "eta_seconds": 5.0,
    }
    assert in_words(evidence) == (
        "broker 1234, 12,345 offsets behind, no progress for 64 s, throttle 200 kB/s, 1.5 MB/s, "
        "1.0 kB free on its disk, 2.4 GB behind, fenced, not registered, doesn't answer, waits for 4, 5, "
        "throttled as leader"
    )
    assert in_words({}) == ""

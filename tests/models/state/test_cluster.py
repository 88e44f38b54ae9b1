"""The cluster's state: what a poll changes in it, and what can be read from it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caughtup.models.ids import TopicPartition
from caughtup.models.lag.partition_lag import PartitionLag
from caughtup.models.offsets import EndOffsets
from caughtup.models.parameters import ApplicationParameters
from caughtup.models.polls.batch import Record
from caughtup.models.state.cluster import ClusterState
from tests.support import wire
from tests.support.groups.records import (
    GROUP,
    SOURCE,
    START_MS,
    commit,
    consumer_generation,
    group_tombstone,
)
from tests.support.groups.streams import WARMING, Member, generation
from tests.support.states import cluster_state, list_ends, publish, read, state_with_ends

ZERO, ONE = TopicPartition(SOURCE, 0), TopicPartition(SOURCE, 1)


def lags(state: ClusterState, group: str = GROUP) -> dict[str, PartitionLag | None]:
    return {str(row.partition): row.lag for row in state.partition_rows(group)}


def test_a_groups_rows_are_what_it_committed_or_was_assigned() -> None:
    state = cluster_state()
    list_ends(state, {0: 100, 1: 50}, at_ms=START_MS, topic=SOURCE)
    read(state, commit(0, 40), consumer_generation(1, {"c1": (ONE,), "c2": ()}))
    zero, one = state.partition_rows(GROUP)
    assert (zero.partition, zero.committed, zero.lag) == (ZERO, 40, PartitionLag(60, 60, True))
    assert zero.member is None
    assert (one.partition, one.committed, one.lag) == (ONE, None, PartitionLag(50, 50, False))
    assert one.member is not None
    assert one.member.client_id == "c1"


def test_lag_follows_the_end_offsets_and_the_commits() -> None:
    state = cluster_state()
    read(state, commit(0, 40))
    assert lags(state) == {"orders-in-0": None}
    state.apply_ends(ZERO, EndOffsets(20, 90, 100, START_MS))
    assert lags(state) == {"orders-in-0": PartitionLag(50, 60, True)}
    read(state, commit(0, 95))
    assert lags(state) == {"orders-in-0": PartitionLag(0, 5, True)}
    read(state, commit(0, 10))
    assert lags(state) == {"orders-in-0": PartitionLag(70, 80, True)}


@settings(print_blob=True, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 1 << 40)), max_size=30))
def test_lag_is_never_negative_whatever_comes_first(events: list[tuple[bool, int]]) -> None:
    """Commits and end offsets (which only grow) in any order."""
    state, end = cluster_state(), 0
    for moment, (is_commit, offset) in enumerate(events):
        if is_commit:
            read(state, commit(0, offset))
        else:
            end += offset
            list_ends(state, {0: end}, at_ms=moment, topic=SOURCE)
        for row in state.partition_rows(GROUP):
            assert row.lag is None or 0 <= row.lag.lag <= end


def test_the_commits_on_a_partition_are_those_of_every_group() -> None:
    state = cluster_state()
    read(state, commit(0, 40), commit(0, 90, group="beside"), commit(1, 7, group="beside"))
    assert sorted(state.commits.on(ZERO)) == [40, 90]
    assert list(state.commits.on(ONE)) == [7]
    commits = state.commits.on(ZERO)
    assert next(commits) == 40
    read(state, commit(0, None, group="beside"), commit(0, 50, group="new"))
    assert list(commits) == []  # the state may change under it


def test_lag_ends_at_the_last_readable_record_where_it_is_known() -> None:
    state = cluster_state()
    read(state, commit(0, 98))
    state.apply_ends(ZERO, EndOffsets(0, 100, 103, START_MS, readable_end_offset=98))
    assert lags(state) == {"orders-in-0": PartitionLag(0, 5, True)}


def test_a_tombstone_takes_a_commit_away_and_the_last_one_the_group() -> None:
    state = cluster_state()
    read(state, commit(0, 1), commit(1, 2))
    read(state, commit(0, None))
    assert list(lags(state)) == ["orders-in-1"]
    read(state, commit(1, None), commit(7, None), commit(0, None, group="unheard-of"))
    assert state.group_names() == []
    assert not list(state.partition_rows(GROUP))


def test_a_groups_tombstone_leaves_its_commits() -> None:
    state = cluster_state()
    read(state, commit(0, 1), generation(1, *WARMING))
    read(state, group_tombstone(), group_tombstone("unheard-of"))
    assert state.group_names() == [GROUP]
    assert state.group_type(GROUP) is None
    assert state.applications == {}
    assert next(state.partition_rows(GROUP)).member is None


@pytest.mark.parametrize(
    "next_record", [generation(2), consumer_generation(2, {}), consumer_generation(2, {"c": ()})]
)
def test_a_group_that_stops_being_streams_is_no_application_anymore(next_record: Record) -> None:
    state = state_with_ends(generation(1, *WARMING))
    assert len(publish(state, START_MS)) == 1
    read(state, next_record)
    assert state.applications == {}
    assert state.task_rows(GROUP) == []
    assert publish(state, START_MS) == []
    assert state.group_names() == [GROUP]


def test_a_group_is_streams_again_when_its_instances_come_back() -> None:
    state = state_with_ends()
    for number, record in enumerate((generation(1, *WARMING), generation(2))):
        read(state, record, seen_ms=START_MS + number)
    read(state, generation(3, *WARMING))
    assert [record["generation"] for record in publish(state, START_MS)] == [3]


def test_groups_are_named_in_order_with_the_kind_of_the_protocol_they_chose() -> None:
    state = cluster_state()
    read(state, consumer_generation(1, {"c": (ZERO,)}, group="plain"), generation(1, *WARMING))
    assert state.group_type("plain") == "classic"
    assert state.group_type(GROUP) == "streams"
    assert state.group_names() == [GROUP, "plain"]


def test_owners_are_those_of_the_last_generation() -> None:
    state = cluster_state()
    read(state, consumer_generation(1, {"c1": (ZERO, ONE)}))
    read(state, consumer_generation(2, {"c1": (ZERO,), "c2": (ONE,)}))
    owners = {
        row.partition: row.member.client_id for row in state.partition_rows(GROUP) if row.member
    }
    assert owners == {ZERO: "c1", ONE: "c2"}


def test_a_member_with_unreadable_user_data_is_named_and_the_others_are_decided() -> None:
    state = state_with_ends(
        generation(1, WARMING[0], Member("b", 2, user_data=b"?", standby=("0_1",)))
    )
    (record,) = publish(state, START_MS)
    (doubt,) = record["inputs"]["unknown"]
    assert doubt.startswith("member left out: b-StreamThread-1-consumer")
    assert len(record["process_ids"]) == 1


def test_damaged_records_are_counted_and_harm_no_other() -> None:
    state = cluster_state()
    key, _ = commit(0, 5)
    truncated = (wire.group_key("broken"), b"\x00\x03\x00")
    read(state, (key, b"\x00"), truncated, (wire.number("h", 15), b""), commit(1, 5))
    assert list(state.commits.of(GROUP)) == [ONE]
    assert state.counts.records == {1: 2, 2: 1, 15: 1}
    assert state.counts.skipped == {15: 1}
    assert {key_type for key_type, _ in state.counts.errors} == {1, 2}
    read(state, commit(1, 6))
    assert state.counts.records[1] == 3


def test_a_damaged_assignment_is_counted_and_the_group_stays() -> None:
    state = cluster_state()
    key, value = consumer_generation(1, {"c": (ZERO,)})
    assert value is not None
    damaged = value.replace(b"\x00\x09orders-in", b"\x7f\xff" + b"orders-in")
    assert damaged != value
    read(state, (key, damaged))
    assert sum(state.counts.errors.values()) == 1
    assert state.group_names() == [GROUP]
    assert not list(state.partition_rows(GROUP))


def test_groups_that_wait_for_a_decision_are_named_in_order() -> None:
    state = cluster_state()
    read(state, generation(1, *WARMING, group="b"), generation(1, *WARMING, group="a"))
    assert state.applications.awaited() == ["a", "b"]


def test_an_application_that_ends_while_others_are_decided_is_passed_over() -> None:
    """Whoever publishes the first record awaits, and meanwhile more is read."""
    state = ClusterState("cluster-1", {})
    for group in ("a", "b", "c"):
        member = Member(group, 1, active=("1_0",))
        read(state, generation(1, member, group=group, sources={"clicks": 1}))
    deciding = state.decide(START_MS)
    assert next(deciding).group == "a"
    read(state, group_tombstone("b"))
    assert [one.group for one in deciding] == ["c"]


def test_end_offsets_matter_of_what_was_committed_assigned_or_is_an_applications_own() -> None:
    state = cluster_state()
    assert not state.wanted_topics()(SOURCE)
    read(state, commit(0, 5, topic="committed"), consumer_generation(1, {"c": (ZERO,)}))
    read(state, generation(1, *WARMING, group="app"))
    wanted = {"committed", SOURCE, "app-counts-changelog", "app-"}
    unwanted = {"application-changelog", "other", ""}
    assert set(filter(state.wanted_topics(), wanted | unwanted)) == wanted


def test_end_offsets_matter_of_changelogs_that_were_told_under_whatever_name() -> None:
    state = cluster_state(ApplicationParameters(changelogs={0: ("prefixed-changelog",)}))
    assert not state.wanted_topics()("prefixed-changelog")
    read(state, generation(1, *WARMING))
    assert state.wanted_topics()("prefixed-changelog")


def test_the_test_for_wanted_topics_is_of_its_moment() -> None:
    """It is asked from another thread while the state changes."""
    state = cluster_state()
    read(state, commit(0, 5))
    wanted = state.wanted_topics()
    read(state, commit(0, None), commit(0, 5, topic="later"), generation(1, *WARMING, group="app"))
    assert [topic for topic in (SOURCE, "later", "app-x") if wanted(topic)] == [SOURCE]


def test_an_application_that_nothing_was_told_of_has_kafkas_defaults() -> None:
    state = ClusterState("cluster-1", {"told": ApplicationParameters({"max.warmup.replicas": 9})})
    assert state.applications.parameters("told").value("max.warmup.replicas") == 9
    assert state.applications.parameters("other") == ApplicationParameters()

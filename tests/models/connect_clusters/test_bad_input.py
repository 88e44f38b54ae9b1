"""What may be wrong with a Connect group or its topics: said, counted, and no other group touched."""

from __future__ import annotations

from dataclasses import replace

import pytest

from caughtup.models.connect.work import written
from caughtup.models.connect_clusters.topic_sets import TopicSet
from caughtup.models.records.connect import decode_config, decode_status
from caughtup.models.wire.group_metadata import GroupMember, GroupMetadata, decode_group_metadata
from tests.support import wire
from tests.support.connect.clusters import WorkerCluster, settled
from tests.support.connect.playing import GROUP, Group

NAMES = [
    "a",
    "a-0",
    "A b",
    "tasks-1-",
    "täsk",
    "x" * 249,
    "a/b:c",
    '"><script>',
    "-",
    "a--1",
    "日本-7",
]


def test_a_worker_of_another_protocol_version_leaves_its_generation_open_and_the_others_read():
    cluster = settled()
    metadata = decode_group_metadata(cluster.group.value)
    odd = GroupMember("w9", None, "w9", "/h", 1, 1, b"\x00\x09", b"\x00\x09")
    members = (*metadata.members, odd)
    cluster.read(wire.group_metadata(replace(metadata, generation=2, members=members), 3))
    cluster.decide()
    (about,) = cluster.lines("group")
    assert (about["generation"], about["result"]) == (2, "undetermined")
    assert "w9" in about["why"]
    assert "unknown_version" in about["why"]
    assert len(cluster.lines("worker")) == 3


@pytest.mark.parametrize("known", [True, False])
def test_a_config_topic_that_is_not_there_or_has_nothing_is_said(known: bool):
    group = Group({"A": 1})
    cluster = WorkerCluster(group)
    if not known:
        cluster.state.connect.read_topics([])
    group.join("W1")
    cluster.round()
    (about,) = cluster.lines("group")
    assert about["result"] == "match"  # what it runs stands for what is configured
    assert about["topics_unknown"] == (
        "no config topic contains the connectors that the group runs"
        if known
        else "caughtup found no topics of a worker cluster"
    )


def test_a_topic_that_cannot_be_read_is_said_with_why():
    cluster = settled(topics=TopicSet("elsewhere", "nowhere"))
    cluster.state.connect.read_topics([])
    cluster.state.connect.unreadable = {"connect-configs": "Topic authorization failed"}
    (about,) = cluster.lines("group")
    assert about["topics_unknown"] == (
        "caughtup found no topics of a worker cluster; "
        "connect-configs can't be read: Topic authorization failed"
    )


def test_two_clusters_with_the_same_topics_are_told_and_their_statuses_count_for_neither():
    cluster = settled()
    other = WorkerCluster(
        Group(dict(cluster.group.connectors)), cluster.state, "connect-other", cluster.topics
    )
    other.group.config_offset = cluster.group.config_offset
    other.group.join("W7")
    other.round()
    other.status("A", "FAILED", "W7")
    assert other.lines("group")[0]["shared_with"] == [GROUP]
    assert cluster.lines("group")[0]["shared_with"] == ["connect-other"]
    # Both run the same, so of each status only who wrote it last is left.
    for worker in cluster.group.members:
        for name in written(cluster.group.owned[worker]):
            other.status(name, "RUNNING", "W7")
    assert cluster.lines("group")[0]["shared_with"] == ["connect-other"]
    assert cluster.contradictions() == other.contradictions() == []


def test_a_group_that_stops_being_connects_is_forgotten_and_counted_and_an_empty_one_is_not():
    cluster, other = settled(), None
    other = settled(
        state=cluster.state, name="another", topics=TopicSet("other-configs", "other-status")
    )
    empty = GroupMetadata("connect", 9, None, None, cluster.group.now_ms, ())
    cluster.read(wire.group_metadata(empty, 3))
    (about,) = cluster.lines("group")
    assert about["empty_since_ms"] == cluster.group.now_ms
    assert cluster.lines("worker") == []
    assert len(cluster.lines("unassigned")) == 5
    member = GroupMember("c-1", None, "c", "/h", 1, 1, b"\x00\x00", b"")
    cluster.read(
        wire.group_metadata(GroupMetadata("consumer", 10, "range", "c-1", 1, (member,)), 3)
    )
    assert cluster.lines("group") == []
    assert cluster.state.connect.ceased == 1
    assert other.lines("group")[0]["result"] == "match"
    other.read(None)
    assert cluster.state.connect.groups == {}


@pytest.mark.parametrize("name", NAMES)
def test_a_connector_may_have_any_name(name: str):
    cluster = settled()
    cluster.configure(name, 1)
    cluster.round()
    (worker,) = [one for one in cluster.lines("worker") if f"{name}-0" in one["tasks"]]
    failed = {"state": "FAILED", "worker_id": worker["worker"], "generation": 2}
    cluster.raw(cluster.topics.status, f"status-task-{name}-0".encode(), failed)
    assert cluster.lines("group")[0]["result"] == "match"
    (one,) = cluster.lines("contradiction")
    assert (one["contradiction"], one["connector"], one["task"]) == ("failed", name, 0)
    assert cluster.state.refused.counts == {}


@pytest.mark.parametrize(
    ("topic", "key", "value", "reason"),
    [
        (0, b"connector-A", b"{", "bad_json"),
        (0, b"connector-A", b'{"properties": 3}', "bad_type"),
        (0, b"commit-A", b'{"tasks": 1000000000}', "bad_type"),
        (0, b"commit-A", b'{"tasks": -1}', "bad_type"),
        (0, b"task-A-x", b"{}", "bad_key"),
        (0, b"\xff", b"{}", "bad_key"),
        (0, None, b"{}", "bad_key"),
        (0, b"connector-A", b"[" * 64, "too_deep"),
        (0, b"connector-A", b" " * ((1 << 20) + 1), "too_large"),
        (0, b"target-state-A", b'{"state": "FLYING"}', "bad_type"),
        (1, b"something", b"{}", "bad_key"),
        (1, b"status-task-A-0", b'{"state": "FLYING", "worker_id": "w", "generation": 1}', "bad_type"),
        (1, b"status-task-A", b"{}", "bad_key"),
        (1, b"status-connector-A", b'{"state": 1}', "bad_type"),
        (2, b"not json", b"{}", "bad_key"),
        (2, b'[["A"]]', b"{}", "bad_key"),
        (2, None, b"{}", "bad_key"),
    ],
)  # fmt: skip
def test_a_record_that_is_not_connects_is_refused_and_counted_and_changes_nothing(
    topic: int, key: bytes | None, value: bytes, reason: str
):
    cluster = settled()
    before = cluster.lines("group"), cluster.lines("connector"), cluster.contradictions()
    cluster.raw(cluster.topics[topic], key, value, offset=1_000)
    name = ("connect config topic", "connect status topic", "connect offset topic")[topic]
    assert cluster.state.refused.counts == {(name, reason): 1}
    assert (
        cluster.lines("group"), cluster.lines("connector"), cluster.contradictions()
    ) == before  # fmt: skip
    assert cluster.state.faults.newest() == []


def test_what_is_not_about_connectors_is_passed_over():
    assert decode_config(b"session-key", b"not even JSON") is None
    assert decode_config(b"restart-connector-A", b"{}") is None
    assert decode_config(b"tasks-fencing-A", b"{}") is None
    assert decode_config(b"logger-cluster-org.apache", b"{}") is None
    assert decode_config(b"task-A-0", None) is None
    assert decode_status(b"status-topic-orders:connector-A", b"{}") is None


def test_a_config_topic_that_was_made_anew_is_read_as_a_new_one():
    cluster = settled()
    cluster.raw(cluster.topics.config, b"connector-Z", {"properties": {}}, 0)
    (topics,) = cluster.state.connect.topics.values()
    assert list(topics.configuration.configs) == ["Z"]

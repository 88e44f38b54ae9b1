"""What a follower on Faust decides as the group's leader, without any broker."""

from __future__ import annotations

import logging
from collections import Counter

import pytest
from aiokafka.coordinator.protocol import ConsumerProtocolMemberMetadata
from hypothesis import given, settings
from hypothesis import strategies as st

from caughtup.followers.faust import FollowingAssignor, following
from caughtup.followers.python.faust.worker import join_user_data
from caughtup.followers.python.settings import FollowerSettings
from caughtup.models.ids import ProcessId, TaskId, TopicPartition
from caughtup.models.wire.user_data import encode_subscription_info
from tests.support.followers.faust_workers import (
    ALONE,
    COUNTS,
    GLOBAL,
    SOURCES,
    TABLES,
    TASKS,
    URL,
    cluster,
    joined,
    make_assignor,
    read,
    through_the_wire,
)
from tests.support.sizes import daily

thorough = settings(print_blob=True, deadline=None, max_examples=daily(60, 150))
reported = st.dictionaries(
    st.sampled_from([*TASKS, TaskId(4, 9), TaskId(7, 0)]), st.sampled_from([-2, 0, 100, 2_000])
)


#: User data that no worker writes; the last two are a follower's, with something behind.
ODD = [
    None,
    b"\xff" * 9,
    join_user_data(b"", b"[1]"),
    join_user_data(encode_subscription_info(ProcessId(0, 77), {}, 0), b"[1]"),
    encode_subscription_info(ProcessId(0, 78), {TaskId(4, 0): -2}, 0) + b"\0\0\0\1faust",
]


@pytest.fixture(scope="module", params=[0, 1_000_000])
def leader(request: pytest.FixtureRequest) -> FollowingAssignor:
    """One that balances by itself, and one that keeps everything while it waits."""
    patience = FollowerSettings(follow_ups=request.param)
    return make_assignor(PartitionAssignor=following(settings=patience))


@thorough
@given(st.lists(st.tuples(reported, st.integers(0, 9)), min_size=1, max_size=6))
def test_no_partition_is_given_to_two_workers_and_all_to_one(
    leader: FollowingAssignor, workers: list[tuple[dict[TaskId, int], int]]
) -> None:
    members = {}
    for number, (sums, luck) in enumerate(workers):
        members[f"member-{number}"] = joined(number, sums)
        if luck == 0:
            odd = ConsumerProtocolMemberMetadata(0, sorted(COUNTS), ODD[number % len(ODD)])
            members[f"member-{number}"] = through_the_wire(odd)
    given = {one: read(has) for one, has in leader.assign(cluster(), members).items()}
    assert given.keys() == members.keys()
    partitions = Counter(one for has in given.values() for one in has[0])
    assert partitions == Counter(SOURCES)
    active: Counter[TopicPartition] = Counter()
    for sources, info, fausts in given.values():
        assert {TaskId(COUNTS[one.topic], one.partition) for one in sources} == set(info.active)
        runs = {TopicPartition(*one) for one in fausts.assignment.active_tps}
        follows = {TopicPartition(*one) for one in fausts.assignment.standby_tps}
        # Whoever runs a task writes to its changelogs, and nobody follows those that it writes.
        assert {one for one in runs if one.topic not in (*TABLES, GLOBAL)} == set(sources)
        ours = {one for one in runs if one.topic in TABLES}
        assert ours == {
            TopicPartition(topic, task.partition)
            for task in set(info.active)
            if task.subtopology == 4
            for topic in TABLES
        }
        copies = {one for one in follows if one.topic != GLOBAL}
        assert copies == {
            TopicPartition(topic, task.partition)
            for task in info.standby
            for topic in (TABLES if task.subtopology == 4 else (ALONE,))
        }
        assert not copies & runs
        # Global tables are restored by everybody.
        everywhere = {TopicPartition(GLOBAL, number) for number in range(3)}
        assert {one for one in runs if one.topic == GLOBAL} == everywhere
        active.update(ours)
        assert fausts.topic_groups == COUNTS
    assert set(active.values()) == {1}
    assert len(active) == 8


def test_what_workers_run_stays_theirs_and_everybody_learns_where_it_is() -> None:
    leader = make_assignor()
    halves = [
        {task: -2 for task in TASKS if task.partition % 2 == 0},
        {task: -2 for task in TASKS if task.partition % 2 == 1},
    ]
    members = {f"member-{number}": joined(number, sums) for number, sums in enumerate(halves)}
    given = {one: read(has) for one, has in leader.assign(cluster(), members).items()}
    for number, sums in enumerate(halves):
        _, info, fausts = given[f"member-{number}"]
        assert set(info.active) == sums.keys()
        assert fausts.url == URL.format(number)
        placed = {URL.format(one): [one, one + 2] for one in (0, 1)}
        distribution = fausts.external_topic_distribution
        assert {url: topics["placed"] for url, topics in distribution.items()} == placed
        changelogs = fausts.changelog_distribution
        assert {url: topics[TABLES[0]] for url, topics in changelogs.items()} == placed
        assert {url: topics[GLOBAL] for url, topics in changelogs.items()} == {
            URL.format(one): [0, 1, 2] for one in (0, 1)
        }


def test_topics_that_a_worker_does_not_know_wait_and_the_others_do_not() -> None:
    leader = make_assignor()
    old = [topic for topic in COUNTS if topic not in ("paid", "clicks", GLOBAL)]
    members = {"new": joined(0, {}), "old": joined(1, {}, old)}
    given = {one: read(has) for one, has in leader.assign(cluster(), members).items()}
    found = {one.topic for has in given.values() for one in has[0]}
    assert found == {"placed", ALONE, "orders-__assignor-__leader"}
    for _, _, fausts in given.values():
        assert {tp.topic for tp in fausts.assignment.active_tps} <= set(old)


def test_topics_that_are_not_there_give_nobody_anything() -> None:
    given = make_assignor().assign(cluster({}), {"m": joined(0, {})})
    assert read(given["m"])[0] == ()


def test_a_rebalance_that_cannot_be_decided_leaves_everything_in_place(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*given: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr("caughtup.followers.python.member.decide_rebalance", fails)
    leader = make_assignor()
    runs = {TaskId(4, 1): -2, TaskId(4, 3): -2, TaskId(1, 0): -2}
    members = {"one": joined(1, runs), "two": joined(2, {TaskId(2, 0): -2})}
    with caplog.at_level(logging.ERROR):
        given = {one: read(has) for one, has in leader.assign(cluster(), members).items()}
    assert "cannot decide a rebalance; every task stays where it is" in caplog.text
    assert runs.keys() <= set(given["one"][1].active)
    assert TaskId(2, 0) in given["two"][1].active
    assert Counter(one for has in given.values() for one in has[0]) == Counter(SOURCES)

"""What isn't watched is as if it weren't there, is counted, and no name is matched twice."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caughtup.models.ids import TopicPartition
from caughtup.models.offsets import EndOffsets
from caughtup.models.polls.batch import decode_batch
from caughtup.models.state.cluster import ClusterState
from caughtup.models.watching import SPARK_DRIVERS, Watching, WatchPatterns
from tests.support.groups.records import START_MS, commit, consumer_generation, group_tombstone
from tests.support.states import read

UUID = "1f0e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"


def committed(state: ClusterState) -> list[tuple[str, TopicPartition, int]]:
    return [(group, partition, found.committed) for group, partition, found in state.commits]


def watching(**patterns: tuple[str, ...]) -> ClusterState:
    return ClusterState("cluster-1", {}, Watching(WatchPatterns(**patterns)))


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        (f"spark-kafka-source-{UUID}-1234567-driver-0", "folded"),
        (f"spark-kafka-source-{UUID}--987-driver-12", "folded"),
        (f"spark-kafka-relation-{UUID}-driver-0", "folded"),
        (f"caughtup-history-{UUID}-42-driver-0", "folded"),
        (f"line\nbreak-{UUID}-42-driver-0", "folded"),
        ("spark-kafka-source-orders", None),
        (f"orders-{UUID}", None),
        ("driver-0", None),
    ],
)
def test_groups_of_sparks_drivers_are_folded_away_by_their_form(
    name: str, reason: str | None
) -> None:
    state = watching(folded=(SPARK_DRIVERS,))
    read(state, consumer_generation(1, {"c": ()}, group=name))
    assert state.group_names() == ([] if reason else [name])
    assert state.watching.counts() == {"ignored": 0, "folded": 1 if reason else 0}


def test_what_a_pattern_asks_for_is_not_folded_away() -> None:
    state = watching(groups=(".*",), folded=("caughtup",))
    read(state, commit(0, 1, group="caughtup"))
    assert state.group_names() == ["caughtup"]


def test_what_is_ignored_is_so_whatever_else_asks_for_it_but_a_name_on_the_command_line() -> None:
    patterns = WatchPatterns(groups=("orders.*", "clicks"), ignored_groups=("orders-test",))
    found = Watching(patterns, ["orders-test"])
    assert [
        name for name in ("orders", "orders-test", "clicks", "plain") if found.is_watched(name)
    ] == [
        "orders",
        "orders-test",
        "clicks",
    ]
    assert not Watching(patterns).is_watched("orders-test")


def test_a_pattern_is_for_the_whole_name() -> None:
    found = Watching(WatchPatterns(ignored_groups=("orders",), ignored_topics=("in|out",)))
    assert found.is_watched("orders-2")
    assert not found.is_watched("orders")
    assert [topic for topic in ("in", "out", "inner", "about") if found.topic(topic)] == [
        "inner",
        "about",
    ]


def test_a_group_that_is_left_out_leaves_nothing_behind() -> None:
    state, alone = watching(ignored_groups=("b.*",)), ClusterState("cluster-1", {})
    kept = [
        consumer_generation(1, {"c": (TopicPartition("t", 0),)}, group="a"),
        commit(0, 1, group="a", topic="t"),
    ]
    for past in (True, False):
        left_out = [
            consumer_generation(1, {"c": (TopicPartition("u", 0),)}, group="b"),
            commit(0, 1, group="b", topic="u"),
        ]
        state.apply_batch(decode_batch([*left_out, *kept]), START_MS, past=past)
        alone.apply_batch(decode_batch(kept), START_MS, past=past)
    assert state.group_names() == alone.group_names() == ["a"]
    assert state.commits.topics() == alone.commits.topics()
    assert committed(state) == committed(alone) == [("a", ("t", 0), 1)]
    assert not state.wanted_topics()("u")
    assert state.counts.records != alone.counts.records  # what was read is counted all the same
    assert state.watching.counts()["ignored"] == 1


def test_a_topic_that_is_left_out_is_in_no_groups_figures() -> None:
    state = watching(ignored_topics=("noise",))
    both = (TopicPartition("noise", 0), TopicPartition("t", 0))
    read(
        state,
        consumer_generation(1, {"c": both}, group="a"),
        commit(0, 1, group="a", topic="noise"),
        commit(0, 1, group="a", topic="t"),
    )
    for partition in both:
        state.apply_ends(partition, EndOffsets(0, 9, 9, START_MS))
    assert [row.partition for row in state.partition_rows("a")] == [both[1]]
    assert not state.wanted_topics()("noise")
    read(state, commit(0, 1, group="b", topic="noise"))
    assert state.group_names() == ["a"]
    assert sum(state.watching.counts().values()) == 0


def test_a_group_is_counted_until_it_is_gone_and_again_when_it_is_back() -> None:
    state = watching(ignored_groups=("b",))
    for count in (1, 1, 0, 1):
        record = consumer_generation(1, {}, group="b") if count else group_tombstone("b")
        read(state, record)
        assert state.watching.counts()["ignored"] == count
    read(state, group_tombstone("b"), commit(0, None, group="b"))
    assert state.watching.counts()["ignored"] == 0


def test_each_name_is_held_against_the_patterns_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: Counter[str] = Counter()

    compiled = re.compile

    class Counting:
        def __init__(self, pattern: str) -> None:
            self._pattern = compiled(pattern)

        def fullmatch(self, name: str) -> Any:
            looked[name] += 1
            return self._pattern.fullmatch(name)

    monkeypatch.setattr("caughtup.models.watching.re.compile", Counting)
    found = Watching(WatchPatterns(ignored_groups=("b.*",), ignored_topics=("u",)))
    monkeypatch.undo()
    state = ClusterState("cluster-1", {}, found)
    for offset in range(50):
        read(
            state,
            *(commit(n, offset, group=g, topic=t) for g in "ab" for t in "tu" for n in range(9)),
            consumer_generation(1, {"c": (TopicPartition("t", 0),)}, group="a"),
            consumer_generation(1, {"c": (TopicPartition("t", 0),)}, group="b"),
        )
    assert set(looked) == {"a", "b", "t", "u"}
    assert set(looked.values()) == {1}


names = st.text(max_size=6)


@given(st.lists(st.tuples(names, names, st.integers(0, 3), st.none() | st.integers(0, 9))))
def test_what_is_watched_is_what_is_there_without_the_rest(
    made: list[tuple[str, str, int, int | None]],
) -> None:
    """Held against commits that were chosen one by one."""
    patterns = WatchPatterns(ignored_groups=("[a-m].*",), topics=(".*[0-9].*", "t?"))
    state, alone = ClusterState("c", {}, Watching(patterns)), ClusterState("c", {})
    for group, topic, number, offset in made:
        record = commit(number, offset, group=group, topic=topic)
        read(state, record)
        of_topic = re.fullmatch(".*[0-9].*", topic) or re.fullmatch("t?", topic)
        if not re.fullmatch("[a-m].*", group) and of_topic:
            read(alone, record)
    assert committed(state) == committed(alone)

"""Which partitions are read to see whether only markers are left, however many groups there are."""

from __future__ import annotations

import pytest

from caughtup.agents.kafka import readable_ends
from caughtup.agents.kafka.readable_ends import TAIL_OFFSETS, ReadableEnds
from caughtup.agents.settings import Settings
from caughtup.models.ids import TopicPartition
from caughtup.models.offsets import EndOffsets
from caughtup.models.state.cluster import ClusterState
from tests.support.groups.records import SOURCE, START_MS, commit
from tests.support.states import cluster_state, read

ZERO, ONE = TopicPartition(SOURCE, 0), TopicPartition(SOURCE, 1)
END = 1_000
ROUNDS = 200
#: Groups that a round looks at, and that there are.
A_ROUND, GROUPS = 5, 100


def ends(last_stable: int = END, start: int = 0) -> EndOffsets:
    return EndOffsets(start, last_stable, last_stable, START_MS)


def many_readers(nearest: int) -> ClusterState:
    """Groups that stand at 0 on both partitions, but for the last one."""
    state = cluster_state()
    for number in range(GROUPS):
        group = f"group-{number:03d}"
        at = nearest if number == GROUPS - 1 else 0
        read(state, commit(0, at, group=group), commit(1, at, group=group))
    return state


@pytest.fixture
def slow_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock by which a round has time for so many groups."""
    clock = 0.0

    def monotonic() -> float:
        nonlocal clock
        clock += readable_ends._TURN_SECONDS / A_ROUND
        return clock

    monkeypatch.setattr(readable_ends.time, "monotonic", monotonic)


def test_a_partition_whose_reader_is_almost_there_is_read_from_its_commit() -> None:
    state = cluster_state()
    read(
        state,
        commit(0, END - 1, group="before"),
        commit(0, END - 5, group="behind"),
        commit(0, END, group="at the end"),
        commit(1, END - TAIL_OFFSETS - 1, group="far"),
    )
    found = {ZERO: ends(), ONE: ends()}
    readable = ReadableEnds(Settings(), state)
    assert readable.suspects(found, at_once=True) == {ZERO: END - 1}
    assert readable.suspects({ZERO: ends(start=END), ONE: ends()}, at_once=True) == {ZERO: END}


def test_a_log_that_grew_since_the_last_round_is_left_alone() -> None:
    state = cluster_state()
    read(state, commit(0, END - 1))
    readable = ReadableEnds(Settings(), state)
    assert readable.suspects({ZERO: ends()}) == {}
    assert readable.suspects({ZERO: ends()}) == {ZERO: END - 1}
    assert readable.suspects({ZERO: ends(END + 1)}) == {}


@pytest.mark.usefixtures("slow_clock")
def test_a_partition_with_many_groups_is_searched_in_more_than_one_round() -> None:
    state = many_readers(END - 1)
    readable = ReadableEnds(Settings(), state)
    found = {ZERO: ends(), ONE: ends()}
    assert readable.suspects(found) == {}
    rounds = [readable.suspects(found) for _ in range(ROUNDS)]
    assert rounds.index({ZERO: END - 1}) >= GROUPS // A_ROUND // 2
    assert {ONE: END - 1} in rounds
    assert readable.suspects(found, at_once=True) == {ZERO: END - 1, ONE: END - 1}


@pytest.mark.usefixtures("slow_clock")
def test_a_search_is_given_up_when_the_log_grows() -> None:
    readable = ReadableEnds(Settings(), many_readers(END - 1))
    readable.suspects({ZERO: ends()})
    for _ in range(GROUPS // A_ROUND // 2):
        assert readable.suspects({ZERO: ends()}) == {}
    # It rests again, but far from everybody.
    rounds = [readable.suspects({ZERO: ends(END + 2 * TAIL_OFFSETS)}) for _ in range(ROUNDS)]
    assert not any(rounds)


@pytest.mark.usefixtures("slow_clock")
def test_a_partition_that_is_gone_is_searched_no_longer() -> None:
    readable = ReadableEnds(Settings(), many_readers(END - 1))
    found = {ZERO: ends(), ONE: ends()}
    readable.suspects(found)
    assert readable.suspects(found) == {}
    rounds = [readable.suspects({ONE: ends()}) for _ in range(ROUNDS)]
    assert {ONE: END - 1} in rounds
    assert all(suspects.keys() <= {ONE} for suspects in rounds)

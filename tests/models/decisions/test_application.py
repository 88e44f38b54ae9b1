"""An application from generation to generation: decided in order, once, and not again."""

from __future__ import annotations

from caughtup.models.decisions.application import GENERATIONS_KEPT
from caughtup.models.decisions.life import END_OFFSETS_WAIT_MS
from tests.support.groups.records import GROUP, START_MS, group_tombstone
from tests.support.groups.streams import HANDED_OVER, HANDING_OVER, WARMING, Member, generation
from tests.support.states import (
    application,
    cluster_state,
    known_ends,
    list_ends,
    publish,
    read,
    state_with_ends,
)

LATER_MS = START_MS + 30_000


def test_generations_that_come_quickly_are_each_decided_in_their_order() -> None:
    state = cluster_state()
    read(state, generation(1, *WARMING))
    read(state, generation(2, *HANDING_OVER, at_ms=START_MS + 10), seen_ms=START_MS + 11)
    read(state, generation(3, *HANDED_OVER, at_ms=START_MS + 20), seen_ms=START_MS + 21)
    assert publish(state) == []
    assert state.applications.awaited() == [GROUP]
    known_ends(state)
    assert [record["generation"] for record in publish(state)] == [1, 2, 3]
    assert state.applications.awaited() == []
    assert application(state).exact_counts == {"match": 3}
    assert [past.generation for past in application(state).history] == [1, 2, 3]
    assert application(state).rebalances == 3
    assert application(state).published == 0  # none of them is on the topic yet
    state.applications.count_published(GROUP)
    assert application(state).published == 1


def test_a_decision_waits_for_end_offsets_listed_after_the_rebalance() -> None:
    state = cluster_state()
    list_ends(state, at_ms=START_MS - 1)
    read(state, generation(1, *WARMING))
    assert publish(state, START_MS + END_OFFSETS_WAIT_MS - 1) == []
    list_ends(state, at_ms=START_MS)
    (record,) = publish(state, START_MS + END_OFFSETS_WAIT_MS - 1)
    assert record["inputs"]["end_offset_sums"] == {"0_0": [0, 50_000], "0_1": [0, 50_000]}


def test_a_decision_without_end_offsets_is_made_when_patience_ends() -> None:
    state = cluster_state()
    read(state, generation(1, *HANDING_OVER))
    assert publish(state, START_MS + END_OFFSETS_WAIT_MS - 1) == []
    (record,) = publish(state, START_MS + END_OFFSETS_WAIT_MS)
    assert record["inputs"]["end_offsets"] == "unknown"
    assert record["inputs"]["unknown"] == [
        f"task {task}: its changelogs' end offsets around the rebalance" for task in ("0_0", "0_1")
    ]


def test_an_application_without_state_is_decided_at_once() -> None:
    state = cluster_state()
    read(state, generation(1, Member("a", 1, active=("1_0",)), sources={"clicks": 1}))
    (record,) = publish(state)
    assert record["leader"]["result"] == "match"


def test_a_generation_is_published_once() -> None:
    state = state_with_ends()
    record = generation(1, *WARMING)
    read(state, record)
    assert len(publish(state)) == 1
    read(state, record)
    assert publish(state, LATER_MS) == []


def test_an_application_that_comes_back_is_decided_anew() -> None:
    state = state_with_ends(generation(1, *WARMING))
    assert len(publish(state)) == 1
    read(state, group_tombstone())
    read(state, generation(1, *WARMING, at_ms=START_MS + 50))
    assert len(publish(state)) == 1


def test_history_is_bounded() -> None:
    state = state_with_ends()
    for number in range(GENERATIONS_KEPT + 5):
        read(state, generation(number, *HANDED_OVER))
        assert len(publish(state)) == 1
    numbers = [past.generation for past in application(state).history]
    assert numbers == list(range(5, GENERATIONS_KEPT + 5))


def test_movements_are_counted_by_kind() -> None:
    state = state_with_ends(generation(1, *WARMING))
    publish(state)
    assert application(state).movement_counts == {"warmup": 1}

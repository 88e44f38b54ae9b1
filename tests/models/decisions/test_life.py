"""A generation's states: which may follow each other, and how long each waits, and for what."""

from __future__ import annotations

from itertools import product

import pytest

from caughtup.models.decisions.life import (
    END_OFFSETS_WAIT_MS,
    LEADER_STATE_WAIT_MS,
    TRANSITIONS,
    WAIT_MS,
    GenerationLife,
    State,
)
from caughtup.models.histories.end_offset_table import EndOffsetTable
from caughtup.models.ids import TopicPartition
from caughtup.models.offsets import EndOffsets
from tests.support.decisions import decided_generation, decided_state, recommended_record
from tests.support.decisions import recommendation_of as published
from tests.support.groups.records import START_MS
from tests.support.groups.streams import WARMING
from tests.support.own_topics.application_states import read_state_record, state_record

GENERATION = decided_generation(decided_state(*WARMING)).generation
CHANGELOG = TopicPartition("orders-counts-changelog", 0)
READ = GenerationLife(GENERATION, START_MS)
NOTHING = EndOffsetTable()


def awaits_ends(*ends: TopicPartition, is_open: bool = False) -> GenerationLife:
    return READ.to(State.AWAITS_ENDS, ends=ends, is_open=is_open)


def listed(at_ms: int) -> EndOffsetTable:
    table = EndOffsetTable()
    table.apply(CHANGELOG, EndOffsets(0, 5, 5, at_ms))
    return table


@pytest.mark.parametrize(("before", "after"), [*product(State, State)])
def test_only_what_the_table_has_may_follow(before: State, after: State) -> None:
    life = GenerationLife(GENERATION, START_MS, before)
    if after in TRANSITIONS[before]:
        assert life.to(after).state is after
    else:
        with pytest.raises(ValueError, match=f"a generation that is {before} cannot be {after}"):
            life.to(after)


def test_every_state_can_be_reached_and_none_that_is_decided_goes_back() -> None:
    assert {State.READ}.union(*TRANSITIONS.values()) == set(State) == TRANSITIONS.keys()
    decided = {State.DECIDED, State.PUBLISHED, State.REVISED}
    for state in decided:
        assert TRANSITIONS[state] <= decided - {State.DECIDED, State.PUBLISHED}


def test_one_that_was_read_waits_for_nothing() -> None:
    assert not READ.waits(NOTHING, (), START_MS)


@pytest.mark.parametrize(
    ("state", "wait_ms"),
    [(State.AWAITS_LEADER, LEADER_STATE_WAIT_MS), (State.AWAITS_ENDS, END_OFFSETS_WAIT_MS)],
)
def test_it_waits_until_its_time_is_over_or_the_clock_is_set_back(
    state: State, wait_ms: int
) -> None:
    assert WAIT_MS[state] == wait_ms
    life = READ.to(state, ends=(CHANGELOG,))
    assert life.waits(NOTHING, (), START_MS)
    assert life.waits(NOTHING, (), START_MS + wait_ms - 1)
    assert not life.waits(NOTHING, (), START_MS + wait_ms)
    assert not life.waits(NOTHING, (), START_MS - 1)


def test_it_waits_for_end_offsets_that_were_listed_since_it_was_read() -> None:
    life = awaits_ends(CHANGELOG)
    assert life.waits(listed(START_MS - 1), (), START_MS)
    assert not life.waits(listed(START_MS), (), START_MS)


def test_where_it_is_not_known_what_is_missing_it_is_looked_at_each_time() -> None:
    assert not awaits_ends(is_open=True).waits(NOTHING, (), START_MS)


def test_what_a_leader_publishes_ends_the_wait_and_what_it_had_published_does_not() -> None:
    state = read_state_record(state_record(*WARMING, given={1: ([], []), 2: ([], [])}), START_MS)
    assert not awaits_ends(CHANGELOG).waits(NOTHING, (state,), START_MS)
    known = READ.to(State.AWAITS_LEADER, leader_state=state)
    assert known.waits(NOTHING, (state,), START_MS)


def test_a_recommendation_from_before_a_restart_ends_the_wait() -> None:
    life = GenerationLife(
        GENERATION,
        START_MS,
        State.AWAITS_LEADER,
        published=published(recommended_record(*WARMING)),
    )
    assert not life.waits(NOTHING, (), START_MS)

"""What is told of groups that there aren't is forgotten, after a while."""

from __future__ import annotations

import json
from typing import Any

import pytest

from caughtup.agents.topics.reports import catch_up_rates, task_positions
from caughtup.models.ids import CopyKey, TaskId
from caughtup.models.records.keys import encode_copy
from caughtup.models.records.movements import PartitionMovementRecord
from caughtup.models.state.cluster import ClusterState
from caughtup.models.state.forgetting import GRACE_MS, Absences, Forgetting, drop_groups
from caughtup.models.tasks.positions import TaskPosition
from tests.support.decisions import recommendation_of, recommended_record
from tests.support.groups.records import GROUP, START_MS, commit, group_tombstone
from tests.support.groups.streams import WARMING, generation
from tests.support.own_topics.application_states import state_record, tell
from tests.support.own_topics.records import SERVICE_RECORDS
from tests.support.states import cluster_state, read, state_with_ends

COPY = CopyKey("p", TaskId(0, 1))
LATER_MS = START_MS + 60_000 + GRACE_MS
(RATES,) = (own.value for own in SERVICE_RECORDS if own.name == "catch-up rates")


def told_of(group: str = GROUP) -> ClusterState:
    """A state in which everything is told of a group, and the log of groups has nothing of it."""
    state = state_with_ends()
    record = recommended_record(*WARMING)
    state.applications.apply_published(group, recommendation_of({**record, "group": group}))
    state.positions.apply(group, COPY, TaskPosition("standby", 4, {}, START_MS))
    rates = {**RATES, "group": group, "process": "p", "task": "0_1"}
    catch_up_rates.apply_record(state, encode_copy(group, "p", "0_1"), json.dumps(rates).encode())
    tell(state, state_record(*WARMING, given={1: (["0_0", "0_1"], []), 2: ([], ["0_1"])}))
    state.set_aside.add("caughtup-movements", group.encode(), "too_large", "", START_MS)
    assert names(state) == {GROUP, group}
    return state


def names(state: ClusterState) -> set[str]:
    told = state.applications.groups_with_records()
    aside = {one.key for one in state.set_aside.newest()}
    return {*told, *state.positions.groups(), *state.rates.groups(), *aside}


def test_a_group_that_never_was_is_forgotten_and_its_recommendation_withdrawn() -> None:
    state = told_of()
    forgetting = Forgetting(state)
    assert forgetting.forget(START_MS) == []
    assert forgetting.forget(START_MS + GRACE_MS - 1) == []
    assert names(state) == {GROUP}
    assert forgetting.forget(START_MS + GRACE_MS) == [GROUP]
    assert names(state) == set()
    assert forgetting.forget(START_MS + 2 * GRACE_MS) == []


@pytest.mark.parametrize("record", [generation(7, *WARMING), commit(0, 5)])
def test_a_group_with_members_or_commits_is_there(record: Any) -> None:
    state = told_of()
    read(state, record)
    forgetting = Forgetting(state)
    for at_ms in (START_MS, LATER_MS):
        assert forgetting.forget(at_ms) == []
    assert names(state) == {GROUP}


def test_a_group_that_is_deleted_goes_after_the_grace_and_is_new_if_it_comes_back() -> None:
    state = told_of()
    read(state, generation(7, *WARMING))
    forgetting = Forgetting(state)
    assert forgetting.forget(START_MS) == []
    read(state, group_tombstone())
    assert forgetting.forget(LATER_MS) == []
    read(state, generation(1, *WARMING, at_ms=LATER_MS))
    assert forgetting.forget(LATER_MS + GRACE_MS) == []
    read(state, group_tombstone())
    assert forgetting.forget(LATER_MS + GRACE_MS) == []
    assert forgetting.forget(LATER_MS + 2 * GRACE_MS) == [GROUP]


def test_a_clock_that_is_set_back_keeps_nothing_for_ever() -> None:
    absences: Absences[str] = Absences()
    assert absences.gone({"a"}, (), 9 * GRACE_MS) == []
    assert absences.gone({"a"}, (), 0) == []
    assert absences.gone({"a"}, (), GRACE_MS) == ["a"]


def test_a_hundred_thousand_positions_of_groups_that_there_are_not_are_forgotten() -> None:
    state = cluster_state()
    read(state, generation(7, *WARMING))
    value = b'{"schema":1,"role":"standby","lag":4,"lags":{"a-changelog":4}}'
    for number in range(100_000):
        task_positions.apply_record(
            state, encode_copy(f"forged-{number}", "p", "0_1"), value, START_MS
        )
    task_positions.apply_record(state, encode_copy(GROUP, "p", "0_1"), value, START_MS)
    assert len(state.positions.groups()) == 100_001
    forgetting = Forgetting(state)
    forgetting.forget(START_MS)
    forgetting.forget(START_MS + GRACE_MS)
    assert state.positions.groups() == {GROUP}
    assert state.faults.newest() == []


def test_a_movement_of_a_partition_that_does_not_move_is_forgotten() -> None:
    state = cluster_state()
    event = PartitionMovementRecord(1, "planned", "partition", "t", 3, 5, (2,), (1,))
    state.reassignment_events.restore(event)
    forgetting = Forgetting(state)
    forgetting.forget(START_MS)
    assert len(state.reassignment_events.on_their_way()) == 1
    forgetting.forget(START_MS + GRACE_MS)
    assert state.reassignment_events.on_their_way() == []


def test_groups_that_another_instance_has_are_dropped_with_all_that_was_told_of_them() -> None:
    state = told_of("other")
    read(state, generation(7, *WARMING), commit(0, 5))
    assert GROUP in state.applications
    for _ in drop_groups(state, lambda group: group == GROUP):
        pass
    assert names(state) == {"other"}
    assert state.group_names() == []
    assert GROUP not in state.applications
    assert list(state.applications.movement_events(START_MS)) == [], "nothing is called dropped"
    for _ in drop_groups(state, lambda _: True):
        pass
    assert len(state.commits) == 0
    assert names(state) == set()


def test_what_is_told_of_a_group_of_another_instance_is_left_out() -> None:
    state = state_with_ends()
    state.held.numbers = frozenset()
    rates = {**RATES, "group": GROUP, "process": "p", "task": "0_1"}
    catch_up_rates.apply_record(state, encode_copy(GROUP, "p", "0_1"), json.dumps(rates).encode())
    assert names(state) == set()

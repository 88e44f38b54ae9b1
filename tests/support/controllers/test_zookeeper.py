"""The ZooKeeper controllers' reassignment: the six rows of its walk, epochs, changes of target."""

from __future__ import annotations

from dataclasses import replace

import pytest

from caughtup.models.reassignments.controllers import (
    missing_from_isr,
    phase,
    reverted,
    target,
    zookeeper_step,
)
from caughtup.models.records.fields import changed
from caughtup.models.records.reassignments import ClusterRecord
from tests.support.controllers.partition_state import PartitionState
from tests.support.controllers.zookeeper import Step, proceeded, updated
from tests.support.reassignments.observations import observed

ZOOKEEPER = ClusterRecord(2, 0, zookeeper=True)
ALIVE = range(1, 10)
#: As the document's own run had it: three replicas, at leader epoch 5.
BEFORE = PartitionState((1, 2, 3), (1, 2, 3), 1, 5)
TARGET = (4, 5, 6)


def columns(step: Step) -> tuple[object, ...]:
    """Row, RS, AR, RR, leader, ISR, step, leader epoch."""
    state = step.state
    sets = (state.replicas, state.adding, state.removing, state.leader, state.isr)
    return (step.row, *sets, step.name, state.leader_epoch)


def test_three_replicas_go_over_to_three_others_in_six_rows() -> None:
    """ORS = {1, 2, 3}, TRS = {4, 5, 6}: every column of the document's table, and the epochs."""
    asked = updated(BEFORE, TARGET)
    (copying,) = proceeded(asked, ALIVE)
    in_sync = replace(copying.state, isr=(1, 2, 3, 4, 5, 6))
    steps = [Step("", 1, BEFORE), copying, *proceeded(in_sync, ALIVE)]
    every, first, last = (4, 5, 6, 1, 2, 3), (1, 2, 3), (4, 5, 6)
    everyone = (1, 2, 3, 4, 5, 6)
    assert [columns(step) for step in steps] == [
        # row, RS,  AR,   RR,    leader, ISR,   step, leader epoch
        (1, first, (), (), 1, first, "", 5),
        (2, every, last, first, 1, first, "A2", 6),
        (3, every, last, first, 1, everyone, "B2", 6),
        (4, every, last, first, 4, everyone, "B3", 7),
        (5, every, last, first, 4, last, "B4", 10),
        (6, last, (), (), 4, last, "B6", 10),
    ]


def test_an_observation_tells_the_row_the_phase_and_the_sets_back() -> None:
    (copying,) = proceeded(updated(BEFORE, TARGET), ALIVE)
    halfway = replace(copying.state, isr=(1, 2, 3, 5))
    in_sync = replace(copying.state, isr=(5, 1, 2, 3, 4, 6))
    waits = [(copying.state, 2, "A", (4, 5, 6)), (halfway, 2, "A", (4, 6))]
    walked = [(step.state, step.row, "B", ()) for step in proceeded(in_sync, ALIVE)][:-1]
    assert [number for _, number, _, _ in walked] == [3, 4, 5]
    for state, number, name, missing in waits + walked:
        seen = observed(state, state)
        assert (
            zookeeper_step(seen),
            phase(seen, ZOOKEEPER),
            missing_from_isr(seen, ZOOKEEPER),
        ) == (
            number,
            name,
            missing,
        )
        assert (target(seen), reverted(seen)) == (TARGET, (1, 2, 3))


def test_the_metadata_is_older_than_the_list_while_it_shows_what_was_dropped() -> None:
    """Phase U: another target was asked for, and the brokers still see the first one."""
    (copying,) = proceeded(updated(BEFORE, TARGET), ALIVE)
    in_part = replace(copying.state, isr=(1, 2, 3, 4))
    asked = updated(in_part, (7, 8, 9))
    assert phase(changed(observed(asked, asked), isr=in_part.isr), ZOOKEEPER) == "U"
    assert phase(observed(asked, asked), ZOOKEEPER) == "A"


def rises(before: PartitionState, wanted: tuple[int, ...], *entries: tuple[int, ...]) -> int:
    """Count by how much the epoch rises, with phase A gone through at each ISR given."""
    state = updated(before, wanted)
    for isr in (before.isr, *entries):
        state = [*proceeded(replace(state, isr=isr), ALIVE)][-1].state
    return state.leader_epoch - before.leader_epoch


ONE = PartitionState((1,), (1,), 1, 0)


@pytest.mark.parametrize(
    ("before", "wanted", "entries", "rise"),
    [
        pytest.param(BEFORE, TARGET, [(1, 2, 3, 4, 5, 6)], 5, id="three to three others"),
        pytest.param(ONE, (2,), [(1, 2)], 3, id="one to another"),
        pytest.param(ONE, (2,), [(1,), (1, 2)], 4, id="the target restarted on the way"),
        pytest.param(ONE, (2,), [], 1, id="it never gets in sync"),
        pytest.param(BEFORE, (3, 1, 2), [], 1, id="only another order"),
        pytest.param(BEFORE, (1, 2), [], 2, id="one fewer"),
    ],
)
def test_the_epoch_rises_at_each_entry_of_phase_a_at_b3_and_for_each_replica_that_goes(
    before: PartitionState, wanted: tuple[int, ...], entries: list[tuple[int, ...]], rise: int
) -> None:
    assert rises(before, wanted, *entries) == rise


FIRST = ((4, 5, 6, 1, 2, 3), (4, 5, 6), (1, 2, 3))
SECOND = ((7, 8, 9, 1, 2, 3), (7, 8, 9), (1, 2, 3))


@pytest.mark.parametrize(
    ("requests", "shape"),
    [
        pytest.param([TARGET], FIRST, id="first"),
        pytest.param([TARGET, TARGET], FIRST, id="the same again"),
        pytest.param([(7, 8, 9)], SECOND, id="another first"),
        pytest.param([TARGET, (7, 8, 9)], SECOND, id="another target counts from the original"),
        pytest.param([TARGET, (1, 2, 3)], ((1, 2, 3), (), ()), id="cancelled"),
        pytest.param([(4, 2, 3)], ((4, 2, 3, 1), (4,), (1,)), id="some stay"),
        pytest.param([(3, 4, 2), (3, 2, 1)], ((3, 2, 1), (), ()), id="cancelled in another order"),
    ],
)
def test_a_request_counts_from_the_original_replicas(
    requests: list[tuple[int, ...]], shape: tuple[tuple[int, ...], ...]
) -> None:
    state = BEFORE
    for wanted in requests:
        state = updated(state, wanted)
    assert (state.replicas, state.adding, state.removing) == shape


def test_brokers_that_are_no_longer_wanted_leave_the_isr_at_once() -> None:
    in_part = replace(updated(BEFORE, TARGET), isr=(1, 2, 3, 4, 5))
    asked = updated(in_part, (4, 7))
    assert (asked.replicas, asked.isr, asked.leader_epoch) == ((4, 7, 1, 2, 3), (1, 2, 3, 4), 6)


def test_cancelling_completes_at_once_where_the_original_replicas_are_in_sync() -> None:
    cancelled = updated(replace(updated(BEFORE, TARGET), isr=(1, 2, 3, 4)), (1, 2, 3))
    assert [step.name for step in proceeded(cancelled, ALIVE)] == ["B2", "B3", "B4", "B6"]
    one_behind = replace(cancelled, isr=(1, 3))
    assert [step.name for step in proceeded(one_behind, ALIVE)] == ["A2"]


def test_the_leader_stays_if_it_can_and_else_the_first_of_the_target_that_lives_leads() -> None:
    in_sync = replace(updated(BEFORE, (2, 4, 5)), isr=(1, 2, 3, 4, 5))
    led = {step.name: step.state.leader for step in proceeded(replace(in_sync, leader=4), ALIVE)}
    assert led["B3"] == 4
    led = {step.name: step.state.leader for step in proceeded(in_sync, (1, 3, 5))}
    assert led["B3"] == 5
    led = {step.name: step.state.leader for step in proceeded(in_sync, (1, 3))}
    assert (led["B3"], led["B6"]) == (1, None)


@pytest.mark.parametrize("stopped", ["A2", "B2", "B3", "B4"])
def test_a_controller_that_takes_over_at_any_row_ends_where_the_first_one_would(
    stopped: str,
) -> None:
    """What is durable tells all: ZooKeeper's replicas change last, at B6."""
    asked = updated(BEFORE, TARGET)
    (copying,) = proceeded(asked, ALIVE)
    in_sync = replace(copying.state, isr=(1, 2, 3, 4, 5, 6))
    walk = {step.name: step.state for step in (copying, *proceeded(in_sync, ALIVE))}
    left = walk[stopped] if stopped != "A2" else in_sync
    end = [*proceeded(left, ALIVE)][-1]
    assert (end.row, end.state.replicas, end.state.isr, end.state.leader) == (6, TARGET, TARGET, 4)

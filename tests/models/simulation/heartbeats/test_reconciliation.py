"""What a heartbeat makes of a member: what it lets go of first, and what it is given."""

from __future__ import annotations

from dataclasses import replace

from caughtup.models.ids import TaskId
from caughtup.models.simulation.heartbeats import (
    NONE,
    MemberState,
    Owners,
    Reconciled,
    Tasks,
    reconcile,
)


def tasks(*active: int, standby: tuple[int, ...] = ()) -> Tasks:
    return Tasks(
        frozenset(TaskId(0, one) for one in active), frozenset(TaskId(0, one) for one in standby)
    )


A = Reconciled("process a", 1, assigned=tasks(0, 1, 2))
B = Reconciled("process b", 1)


def test_a_member_lets_go_before_it_has_the_new_epoch() -> None:
    owners = Owners.of([A, B])
    asked = reconcile(A, 2, tasks(0, 1), tasks(0, 1, 2), owners)
    assert (asked.state, asked.epoch) == (MemberState.UNREVOKED, 1)
    assert (asked.assigned, asked.revoking) == (tasks(0, 1), tasks(2))
    assert reconcile(asked, 2, tasks(0, 1), tasks(0, 1, 2), owners) == asked
    done = reconcile(asked, 2, tasks(0, 1), tasks(0, 1), owners)
    assert (done.state, done.epoch, done.revoking) == (MemberState.STABLE, 2, NONE)


def test_nobody_is_given_what_another_one_has_or_still_lets_go_of() -> None:
    waiting = reconcile(B, 2, tasks(2), NONE, Owners.of([A, B]))
    assert (waiting.state, waiting.epoch, waiting.assigned) == (MemberState.UNRELEASED, 2, NONE)
    lets_go = replace(A, state=MemberState.UNREVOKED, assigned=tasks(0, 1), revoking=tasks(2))
    assert reconcile(waiting, 2, tasks(2), NONE, Owners.of([lets_go, waiting])) == waiting
    let_go = replace(A, epoch=2, assigned=tasks(0, 1))
    given = reconcile(waiting, 2, tasks(2), NONE, Owners.of([let_go, waiting]))
    assert (given.state, given.assigned) == (MemberState.STABLE, tasks(2))


def test_a_process_has_one_copy_of_a_task() -> None:
    """A standby of one thread goes before its process's other one is given the active."""
    one = Reconciled("process a", 1, assigned=tasks(standby=(0,)))
    other = Reconciled("process a", 1)
    waiting = reconcile(other, 2, tasks(0), NONE, Owners.of([one, other]))
    assert waiting.state is MemberState.UNRELEASED
    elsewhere = replace(one, process="process b")
    given = reconcile(other, 2, tasks(0), NONE, Owners.of([elsewhere, other]))
    assert given.assigned == tasks(0)


def test_what_is_free_is_given_while_the_rest_is_waited_for() -> None:
    waiting = reconcile(B, 2, tasks(2, 3), NONE, Owners.of([A, B]))
    assert (waiting.state, waiting.assigned) == (MemberState.UNRELEASED, tasks(3))

"""A group that the state can't work with costs itself one turn, and nobody else anything."""

from __future__ import annotations

import math
from typing import Any

import pytest

from caughtup.models.commits import applying
from caughtup.models.commits.table import CommitTable
from caughtup.models.copies.watch import CopyWatch
from caughtup.models.decisions.applications import Applications
from caughtup.models.decisions.movements import MovementLog
from caughtup.models.groups.table import GroupTable
from caughtup.models.histories.commits import CommitHistory
from caughtup.models.ids import TopicPartition
from caughtup.models.lag.assessment import Assessments
from caughtup.models.lag.verdict import GroupVerdict
from caughtup.models.polls import batch as batch_module
from caughtup.models.polls.batch import decode_batch
from caughtup.models.reassignments import watch as reassignment_watch
from caughtup.models.reassignments.tracker import TrackedReassignment
from caughtup.models.state import cluster as state_module
from caughtup.models.state.cluster import ClusterState
from tests.support import wire
from tests.support.groups.records import SOURCE, START_MS, commit, group_tombstone
from tests.support.groups.streams import HANDING_OVER, generation
from tests.support.isolation import BAD, GOOD, NOW_MS, BreaksError, breaks_for_bad, two_applications
from tests.support.reassignments.reassigning import DEAD, SEEN_MS, reassigning
from tests.support.reassignments.reassigning import assess as assess_movements
from tests.support.states import assess, cluster_state, publish, read


def faults(state: ClusterState) -> dict[tuple[str, str], str]:
    return {(fault.part, fault.subject): fault.cause for fault in state.faults.newest()}


def test_commits_that_cannot_be_taken_are_forgotten_and_the_rest_of_the_poll_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    state = cluster_state()
    read(state, commit(0, 1, group=BAD), commit(1, 1, group=BAD), commit(0, 1, group=GOOD))
    works = CommitHistory.add

    def breaks(self: CommitHistory, offset: int, *more: Any) -> None:
        if offset == 13:
            raise BreaksError
        works(self, offset, *more)

    monkeypatch.setattr(CommitHistory, "add", breaks)
    read(
        state,
        commit(0, 13, group=BAD, at_ms=5),
        commit(1, 2, group=BAD, at_ms=5),
        commit(0, 2, group=GOOD, at_ms=5),
    )
    assert {str(row.partition): row.committed for row in state.partition_rows(BAD)} == {
        f"{SOURCE}-1": 2
    }
    assert [row.committed for row in state.partition_rows(GOOD)] == [2]
    assert sorted(state.commits.on(TopicPartition(SOURCE, 0))) == [2]
    assert faults(state) == {("commits", BAD): "BreaksError"}
    read(state, commit(0, 14, group=BAD), commit(0, None, group=GOOD), commit(1, None, group=BAD))
    assert sorted(state.commits.on(TopicPartition(SOURCE, 0))) == [14]
    read(state, commit(0, None, group=BAD))
    assert state.group_names() == []
    assert not state.wanted_topics()(SOURCE)


def test_the_first_commit_of_a_group_that_cannot_be_taken_leaves_nothing_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    state = cluster_state()
    monkeypatch.setattr(applying, "apply_first", lambda *_: 1 // 0)
    monkeypatch.setattr(CommitTable, "keep", lambda *_: 1 // 0)
    read(state, commit(0, 13, group=BAD))
    assert state.group_names() == []
    assert faults(state) == {("commits", BAD): "ZeroDivisionError"}


def test_commits_that_cannot_be_taken_at_once_are_taken_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    state = cluster_state()
    for name in ("apply_first", "apply_advances"):
        monkeypatch.setattr(applying, name, lambda *_: 1 // 0)
    for offset in (13, 14):
        read(state, commit(0, offset, group=GOOD), commit(1, offset, group=BAD))
    rows = [row for group in (GOOD, BAD) for row in state.partition_rows(group)]
    assert [row.committed for row in rows] == [14, 14]
    assert faults(state) == {}


def test_a_group_whose_record_cannot_be_taken_has_no_members_until_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    state = two_applications()
    with monkeypatch.context() as patch:
        breaks_for_bad(patch, GroupTable, "apply_classic")
        poll = [generation(2, *HANDING_OVER, group=g, at_ms=START_MS + 1) for g in (BAD, GOOD)]
        read(state, *poll)
    assert state.group_type(BAD) is None
    assert BAD not in state.applications
    assert [row.committed for row in state.partition_rows(BAD)] == [40]
    assert state.applications[GOOD].newest.generation == 2
    assert faults(state) == {("group records", BAD): "BreaksError"}
    read(state, generation(3, *HANDING_OVER, group=BAD, at_ms=START_MS + 2))
    assert state.applications[BAD].newest.generation == 3


def test_a_record_whose_decoder_breaks_costs_itself_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    works = batch_module.decode_group_metadata

    def breaks(value: bytes) -> object:
        if value == b"broken":
            raise RecursionError("too deep")
        return works(value)

    monkeypatch.setattr(batch_module, "decode_group_metadata", breaks)
    batch = decode_batch([(wire.group_key(BAD), b"broken"), generation(1, group=GOOD)])
    assert list(batch.groups) == [GOOD]
    assert batch.errors == {(2, "RecursionError"): 1}


def test_a_group_that_cannot_be_assessed_is_unknown_until_it_can(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    state = two_applications()
    assess(state, NOW_MS)
    partition = TopicPartition(SOURCE, 0)
    before = state.assessments.find(GOOD, partition)
    assert before is not None
    assert state.assessments.find(BAD, partition) == before
    with monkeypatch.context() as patch:
        breaks_for_bad(patch, CommitTable, "find")
        state.commits.note_all()  # else nothing has to be assessed again
        assess(state, NOW_MS)
    why = "the service could not compute it: BreaksError"
    assert state.assessments.verdicts[BAD] == GroupVerdict("unknown", None, why)
    assert state.assessments.find(BAD, partition) is None
    assert all(map(math.isnan, state.assessments.column("eta_seconds", BAD, [partition])))
    assert state.assessments.find(GOOD, partition) == before
    assert state.assessments.verdicts[GOOD].partition == partition
    assert faults(state) == {("assessment", BAD): "BreaksError"}
    steps = state.assess(BAD, NOW_MS)
    next(steps)
    assert state.assessments.find(BAD, partition) is None  # not before all of it is there again
    assess(state, NOW_MS)
    assert state.assessments.find(BAD, partition) == before


def test_a_group_that_was_never_assessed_but_failed_is_forgotten_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    state = two_applications()
    with monkeypatch.context() as patch:
        breaks_for_bad(patch, Assessments, "assess")
        assess(state, NOW_MS)
    assert state.assessments.verdicts[BAD].verdict == "unknown"
    read(state, group_tombstone(BAD), commit(0, None, group=BAD))
    state.forget_gone()
    assert list(state.assessments.verdicts) == [GOOD]


def test_copies_that_cannot_be_judged_are_not_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    state = two_applications()
    assert len(publish(state, START_MS + 1_000)) == 2
    assess(state, NOW_MS)
    assert sorted(state.watches) == [BAD, GOOD]
    with monkeypatch.context() as patch:
        breaks_for_bad(patch, CopyWatch, "watch_generation")
        assess(state, NOW_MS)
    assert sorted(state.watches) == [GOOD]
    assert state.watches[GOOD].copies
    assert faults(state) == {("copies", BAD): "BreaksError"}
    assess(state, NOW_MS)
    assert sorted(state.watches) == [BAD, GOOD]


@pytest.mark.parametrize(
    ("owner", "name"), [(Applications, "_undecided"), (state_module, "decide_if_due")]
)
def test_a_decision_that_fails_is_gone_without_and_the_next_generation_is_decided(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str
) -> None:
    state = two_applications()
    with monkeypatch.context() as patch:
        breaks_for_bad(patch, owner, name)
        assert [record["group"] for record in publish(state, START_MS + 1_000)] == [GOOD]
        assert publish(state, START_MS + 1_000) == []
    bad = state.applications[BAD]
    assert (bad.decided, list(bad.pending), bad.rebalances) == (None, [], 1)
    assert bad.exact_counts == {"undetermined": 1}
    assert state.task_rows(BAD) == []
    assert state.task_rows(GOOD) != []
    assert faults(state) == {("decision", BAD): "BreaksError"}
    read(state, generation(2, *HANDING_OVER, group=BAD, at_ms=START_MS + 1))
    assert [r["generation"] for r in publish(state, START_MS + 20_000) if r["group"] == BAD] == [2]
    assert state.applications[BAD].decided is not None


def test_a_decision_that_fails_takes_the_one_before_it_down(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    state = two_applications()
    publish(state, START_MS + 1_000)
    assert state.applications[BAD].decided is not None
    assess(state, NOW_MS)
    assert sorted(state.watches) == [BAD, GOOD]
    for group in (BAD, GOOD):
        read(state, generation(2, *HANDING_OVER, group=group, at_ms=START_MS + 1))
    with monkeypatch.context() as patch:
        breaks_for_bad(patch, state_module, "decide_if_due")
        publish(state, START_MS + 20_000)
    assert state.applications[BAD].decided is None
    assert state.applications[GOOD].decided is not None
    assert state.applications[GOOD].decided.generation.generation == 2
    assess(state, NOW_MS)
    assert sorted(state.watches) == [GOOD]


def test_movements_that_cannot_be_told_cost_their_own_group_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    state = two_applications()
    publish(state, START_MS + 1_000)
    with monkeypatch.context() as patch:
        breaks_for_bad(patch, MovementLog, "advance")
        events = list(state.applications.movement_events(NOW_MS))
    assert events
    assert {event.group for event in events} == {GOOD}
    assert faults(state) == {("movements", BAD): "BreaksError"}
    assert list(state.applications.movement_events(NOW_MS)) == []


def test_a_movement_that_cannot_be_assessed_has_no_verdict_and_the_others_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    state = reassigning()
    tracker, watch = state.reassignments, state.reassignment_watch
    works = reassignment_watch.assess

    def breaks(tracked: TrackedReassignment, *more: Any) -> Any:
        if tracked.latest.topic_partition == DEAD:
            raise BreaksError
        return works(tracked, *more)

    assert watch.find(DEAD, tracker.ongoing[DEAD]) is not None
    monkeypatch.setattr(reassignment_watch, "assess", breaks)
    assess_movements(state, SEEN_MS)
    without = [p for p, tracked in tracker.ongoing.items() if watch.find(p, tracked) is None]
    assert without == [DEAD]
    assert faults(state) == {("reassignments", str(DEAD)): "BreaksError"}


def test_throttles_that_cannot_be_shared_out_cost_no_movement_its_verdict(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def breaks(*_: Any) -> Any:
        raise BreaksError

    monkeypatch.setattr(reassignment_watch, "throttle_shares", breaks)
    state = reassigning()
    moving = state.reassignments.ongoing
    assert all(state.reassignment_watch.find(p, tracked) for p, tracked in moving.items())
    assert faults(state) == {("reassignments", "throttles"): "BreaksError"}

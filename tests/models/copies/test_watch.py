"""The copies of an application as the service watches them: how they fare, when probing is due."""

from __future__ import annotations

from dataclasses import replace

from caughtup.models.copies.watch import CopyWatch
from caughtup.models.ids import CopyKey, TaskId, TopicPartition
from caughtup.models.parameters import ApplicationParameters
from caughtup.models.state.cluster import ClusterState
from caughtup.models.tasks.positions import TaskPosition
from caughtup.models.wire.streams_group_assignments import (
    StreamsGroupCurrentMemberAssignment,
    TaskIds,
)
from tests.support.decisions import decided_state
from tests.support.groups.new_groups import streams_member
from tests.support.groups.records import GROUP, START_MS, group_tombstone
from tests.support.groups.streams import (
    HANDED_OVER,
    HANDING_OVER,
    RUNNING,
    WARMING,
    Member,
    generation,
    process,
)
from tests.support.own_topics.application_states import state_record, tell
from tests.support.states import (
    cluster_state,
    known_ends,
    list_ends,
    open_transaction,
    publish,
    read,
)

OWNER = Member("a", 1, ("0_0",), {"0_0": RUNNING}, ("0_0",))
COPY = CopyKey(str(process(2)), TaskId(0, 1))


def warming() -> ClusterState:
    return decided_state(*WARMING, now_ms=START_MS + 1_000)


def watched(state: ClusterState, now_ms: int) -> CopyWatch:
    for _ in state.watch_copies(GROUP, now_ms):
        pass
    return state.watches[GROUP]


def report(state: ClusterState, lag: int, at_ms: int) -> None:
    state.positions.apply(GROUP, COPY, TaskPosition("standby", lag, {}, at_ms))


def restoring(state: ClusterState, seconds: int) -> CopyWatch:
    """Restore a thousand offsets a second, reported every five seconds."""
    watch = watched(state, START_MS + 1_000)
    for second in range(5, seconds + 1, 5):
        at_ms = START_MS + second * 1_000
        list_ends(state, at_ms=at_ms)
        report(state, 50_000 - 1_000 * second, at_ms)
        watch = watched(state, at_ms)
    return watch


def test_a_warm_up_that_just_began_has_no_pace_yet() -> None:
    watch = watched(warming(), START_MS + 1_000)
    assert list(watch.copies) == [COPY]
    assert watch.copies[COPY].verdict == "unknown"
    assert watch.future_worthwhile_ms(START_MS + 1_000) is None


def test_a_warm_up_that_restores_has_an_eta_and_a_time_at_which_probing_is_worth_it() -> None:
    state = warming()
    watch = restoring(state, 30)
    now_ms = START_MS + 30_000
    warm_up = watch.copies[COPY]
    assert warm_up.verdict == "warming"
    assert warm_up.figures.eta is not None
    assert 8 <= warm_up.figures.eta.seconds <= 12  # 10,000 offsets above what is accepted
    at_ms = watch.future_worthwhile_ms(now_ms)
    assert at_ms is not None
    assert now_ms + 8_000 <= at_ms <= now_ms + 12_000
    assert watch.probing is not None
    assert not watch.probing.worthwhile_now


def test_a_stalled_copy_whose_changelog_is_held_back_has_the_holder_in_its_reason() -> None:
    state = warming()
    watch = restoring(state, 30)
    changelog = TopicPartition(f"{GROUP}-counts-changelog", 1)
    assert state.ends.latest(changelog) is not None
    state.transactions.apply([open_transaction("shop", [changelog])], START_MS)
    for second in range(35, 300, 5):
        list_ends(state, at_ms=START_MS + second * 1_000)
        report(state, 20_000, START_MS + second * 1_000)
        watch = watched(state, START_MS + second * 1_000)
    stalled = watch.copies[COPY]
    assert (stalled.verdict, stalled.reason.rpartition("; ")[2]) == (
        "stalled",
        (
            f"read_committed consumers of {changelog} read nothing beyond offset 90: "
            "it is held back by an open transaction of shop"
        ),
    )
    state.transactions.apply([], START_MS)
    assert "held back" not in watched(state, START_MS + 296_000).copies[COPY].reason


def test_when_it_is_caught_up_probing_is_worth_it_now() -> None:
    watch = restoring(warming(), 45)
    assert watch.copies[COPY].verdict in ("caught_up", "stranded")
    assert watch.probing is not None
    assert watch.probing.worthwhile_now
    assert watch.future_worthwhile_ms(START_MS + 45_000) is None


def test_the_next_recommendation_says_when_a_rebalance_is_worth_it() -> None:
    state = warming()
    restoring(state, 30)
    later = START_MS + 31_000
    again = Member("b", 2, sums={"0_1": 30_000}, standby=("0_1",))
    list_ends(state, at_ms=later + 1)
    read(state, generation(2, WARMING[0], again, at_ms=later), seen_ms=later)
    (record,) = publish(state, later + 1)
    worthwhile = record["probing_rebalance"]["worthwhile_at_ms"]
    assert later < worthwhile < later + 20_000


def test_a_copy_that_runs_is_watched_no_more() -> None:
    state = warming()
    watched(state, START_MS + 1_000)
    for number, members in ((2, HANDING_OVER), (3, HANDED_OVER)):
        read(state, generation(number, *members, at_ms=START_MS + number))
    publish(state, START_MS + 20_000)
    copies = watched(state, START_MS + 20_000).copies
    assert [(copy, one.role) for copy, one in copies.items()] == [(COPY, "restoring")]


def test_a_group_that_is_gone_is_watched_no_more() -> None:
    state = warming()
    watched(state, START_MS + 1_000)
    read(state, group_tombstone())
    assert list(state.watch_copies(GROUP, START_MS + 2_000)) == []
    state.forget_gone()
    assert state.watches == {}


def test_what_looks_like_a_standby_is_one_unless_the_operator_says_there_are_none() -> None:
    """Where nobody told the configs, Kafka's default of no standbys is only assumed."""
    state = cluster_state(ApplicationParameters())
    known_ends(state)
    unasked = (replace(WARMING[0], probe_at_ms=None), WARMING[1])
    read(state, generation(1, *unasked))
    publish(state, START_MS + 1_000)
    assert not watched(state, START_MS + 1_000).copies[COPY].is_warmup


def test_copies_are_watched_on_after_clocks_were_set_back() -> None:
    """Nothing that is seen would count beside what was seen while they were an hour ahead."""
    state = warming()
    restoring(state, 30)
    late_ms = START_MS + 3_600_000
    report(state, 15_000, late_ms)
    watched(state, late_ms)
    for second in range(35, 60, 5):
        at_ms = START_MS + second * 1_000
        state.positions.apply(GROUP, COPY, None)
        report(state, 50_000 - 900 * second, at_ms)
        list_ends(state, at_ms=at_ms)
        watch = watched(state, at_ms)
    figures = watch.copies[COPY].figures
    assert figures.lag is not None
    assert figures.lag.at_ms == at_ms


def test_a_group_that_was_left_on_both_protocols_is_watched_as_its_tasks_are_shown() -> None:
    state = warming()
    assert list(watched(state, START_MS + 1_000).copies) == [COPY]
    held = StreamsGroupCurrentMemberAssignment(1, 1, 1, (), (TaskIds("0", (0,)),), (), (), (), ())
    read(state, *streams_member(GROUP, held, str(process(9))))
    assert list(watched(state, START_MS + 2_000).copies) == [CopyKey(str(process(9)), TaskId(0, 0))]


def test_a_copy_of_a_task_that_the_leader_did_not_tell_of_costs_the_others_nothing() -> None:
    state = cluster_state()
    members = (OWNER, Member("b", 2, standby=("0_0", "0_9")))
    tell(state, state_record(*members, given={1: (["0_0"], []), 2: ([], ["0_0", "0_9"])}))
    read(state, generation(1, *members))
    publish(state, START_MS + 1_000)
    watch = watched(state, START_MS + 1_000)
    assert {copy.task for copy in watch.copies} == {TaskId(0, 0), TaskId(0, 9)}
    assert state.faults.newest() == []

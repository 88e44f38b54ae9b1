"""Every group's last assessment: what is kept of it, and for how long."""

from __future__ import annotations

import math
from typing import get_args

from caughtup.models.ids import TopicPartition
from caughtup.models.lag.assessed import AT_THE_END, Measure
from caughtup.models.lag.unread import UNREAD_ALLOWED_MS, UNREAD_MOMENTS_MS
from caughtup.models.state.cluster import ClusterState
from tests.support.groups.records import (
    SOURCE,
    START_MS,
    commit,
    consumer_generation,
    group_tombstone,
)
from tests.support.states import cluster_state, list_ends, read

GROUP = "readers"
ZERO, ONE = TopicPartition(SOURCE, 0), TopicPartition(SOURCE, 1)
MINUTE_MS = 60_000


def assess(
    state: ClusterState, now_ms: int, group: str = GROUP, read_ms: int | None = None
) -> None:
    for _ in state.assess(group, now_ms, read_ms):
        pass


def test_a_partition_at_its_end_lags_by_no_second_and_nothing_is_kept_of_it() -> None:
    state = cluster_state()
    list_ends(state, {0: 100}, at_ms=START_MS, topic=SOURCE)
    read(state, commit(0, 100, group=GROUP, at_ms=START_MS))
    assert state.assessments.find(GROUP, ZERO) is None
    assess(state, START_MS)
    assert state.assessments.find(GROUP, ZERO) == AT_THE_END
    assert list(state.assessments.behind(GROUP)) == []
    assert state.assessments.verdicts[GROUP].verdict == "ok"


def test_a_group_that_stopped_is_judged_by_its_worst_partition() -> None:
    state = cluster_state()
    for minute in range(60):
        now_ms = START_MS + minute * MINUTE_MS
        list_ends(state, {0: 100 * minute, 1: 100 * minute}, at_ms=now_ms, topic=SOURCE)
        commits = [commit(0, 100 * minute, group=GROUP, at_ms=now_ms)]
        if minute < 10:
            commits.append(commit(1, 100 * minute, group=GROUP, at_ms=now_ms))
        read(state, *commits)
    assess(state, START_MS + 59 * MINUTE_MS)
    verdict = state.assessments.verdicts[GROUP]
    assert (verdict.verdict, verdict.partition) == ("stopped", ONE)
    found = state.assessments.find(GROUP, ONE)
    assert found is not None
    assert found.lag_seconds is not None
    assert abs(found.lag_seconds - 50 * 60) <= 60
    assert found.eta_seconds == math.inf
    assert state.assessments.find(GROUP, ZERO) == AT_THE_END


def test_nobody_is_said_not_to_commit_while_commits_cannot_be_read() -> None:
    state = cluster_state()
    for minute in range(60):
        now_ms = START_MS + minute * MINUTE_MS
        list_ends(state, {0: 100 * minute, 1: 100 * minute}, at_ms=now_ms, topic=SOURCE)
        if minute < 50:
            # To the end of partition 0, which stands still from then on, and not of partition 1.
            read(state, *(commit(p, 100 * minute, group=GROUP, at_ms=now_ms) for p in (0, 1)))
    end = 100 * 59
    read(state, commit(0, end, group=GROUP, at_ms=START_MS + 50 * MINUTE_MS))
    now_ms = START_MS + 59 * MINUTE_MS
    for unread_ms, verdict in ((0, "stopped"), (UNREAD_ALLOWED_MS, "stopped")):
        assess(state, now_ms, read_ms=now_ms - unread_ms)
        assert state.assessments.verdicts[GROUP].verdict == verdict
    assess(state, now_ms, read_ms=now_ms - UNREAD_ALLOWED_MS - 1)
    judged = state.assessments.verdicts[GROUP]
    assert (judged.verdict, judged.partition) == ("unknown", ONE)
    assert "the service has read no commits for 30 s" in judged.reason
    assert "no commit for 10 min" in judged.reason
    assert state.assessments.find(GROUP, ZERO) == AT_THE_END
    found = state.assessments.find(GROUP, ONE)
    assert found is not None
    assert found.verdict == "unknown"
    assert found.lag_seconds is not None
    assess(state, now_ms)
    assert state.assessments.verdicts[GROUP].verdict == "stopped"


def test_a_group_that_had_stopped_before_commits_could_not_be_read_is_said_so_for_a_while() -> None:
    # It takes a step a second and may take three: it stopped six seconds ago, or four.
    def verdict(stopped_ago_ms: int, unread_ms: int) -> str:
        state = cluster_state()
        now_ms = START_MS + MINUTE_MS
        for second in range(61):
            at_ms = START_MS + 1_000 * second
            list_ends(state, {0: 10 * second}, at_ms=at_ms, topic=SOURCE)
            if at_ms <= now_ms - stopped_ago_ms:
                read(state, commit(0, 10 * second, group=GROUP, at_ms=at_ms))
        assess(state, now_ms, read_ms=now_ms - unread_ms)
        return state.assessments.verdicts[GROUP].verdict

    assert verdict(6_000, 0) == "stopped"
    assert verdict(6_000, UNREAD_MOMENTS_MS) == "stopped"
    assert verdict(8_000, UNREAD_MOMENTS_MS + 500) == "stopped"
    assert verdict(5_000, UNREAD_MOMENTS_MS + 500) == "unknown"
    assert verdict(30_000, UNREAD_ALLOWED_MS) == "unknown"


def test_a_log_that_was_recreated_is_told_of_even_while_commits_cannot_be_read() -> None:
    state = cluster_state()
    read(state, commit(0, 50, group=GROUP, at_ms=START_MS))
    now_ms = START_MS + MINUTE_MS
    list_ends(state, {0: 10}, at_ms=now_ms, topic=SOURCE)
    assess(state, now_ms, read_ms=START_MS)
    assert state.assessments.verdicts[GROUP].verdict == "rewound"


def test_many_partitions_are_told_of_at_once() -> None:
    state = cluster_state()
    list_ends(state, {0: 100, 1: 100}, at_ms=START_MS, topic=SOURCE)
    read(state, commit(0, 100, group=GROUP), commit(1, 50, group=GROUP))
    assert all(map(math.isnan, state.assessments.column("eta_seconds", GROUP, [ZERO, ONE])))
    assess(state, START_MS)
    behind = state.assessments.find(GROUP, ONE)
    assert behind is not None
    for measure in get_args(Measure):
        found = state.assessments.column(measure, GROUP, [ONE, ZERO])
        known = [None if math.isnan(number) else number for number in found]
        assert known == [getattr(behind, measure), getattr(AT_THE_END, measure)]


def test_a_partition_that_was_never_committed_is_assessed_too() -> None:
    state = cluster_state()
    list_ends(state, {0: 100}, at_ms=START_MS, topic=SOURCE)
    list_ends(state, {0: 100}, at_ms=START_MS + MINUTE_MS, topic=SOURCE)
    read(state, consumer_generation(1, {"c1": (ZERO,)}, group=GROUP))
    assess(state, START_MS + MINUTE_MS)
    assert state.assessments.verdicts[GROUP].verdict == "unknown"
    assert list(state.assessments.behind(GROUP)) == [ZERO]


def test_a_group_that_is_new_is_not_blamed_for_records_that_were_there_before_it() -> None:
    state = cluster_state()
    for second in range(0, 300, 10):
        ends = {0: second, 1: second}
        list_ends(state, ends, at_ms=START_MS + 1_000 * second, topic=SOURCE)
    came_ms = START_MS + 290_000
    read(state, consumer_generation(1, {"c1": (ZERO, ONE)}, group=GROUP))
    for step in range(20):  # it commits each 100 ms, on one of its two partitions
        read(state, commit(1, step, group=GROUP, at_ms=came_ms + 100 * step))

    def verdict(now_ms: int) -> str:
        ends = {0: 400, 1: 400}
        list_ends(state, ends, at_ms=now_ms, topic=SOURCE)
        assess(state, now_ms)
        found = state.assessments.find(GROUP, ZERO)
        assert found is not None
        return found.verdict

    assert verdict(came_ms + 2_000) == "unknown"
    assert verdict(came_ms + 4_000) == "unknown"
    assert verdict(came_ms + 120_000) == "stopped"


def test_a_group_half_of_which_was_assessed_has_no_figures_yet() -> None:
    state = cluster_state()
    list_ends(state, {0: 100, 1: 100}, at_ms=START_MS, topic=SOURCE)
    read(state, commit(0, 50, group=GROUP), commit(1, 50, group=GROUP))
    steps = 0
    for _ in state.assess(GROUP, START_MS):
        steps += 1
        assert state.assessments.find(GROUP, ZERO) is None
        assert all(map(math.isnan, state.assessments.column("lag_seconds", GROUP, [ZERO, ONE])))
    assert steps > 2
    assert state.assessments.find(GROUP, ZERO) not in (None, AT_THE_END)


def test_partitions_that_are_read_or_gone_are_behind_no_longer() -> None:
    state = cluster_state()
    two = TopicPartition(SOURCE, 2)
    list_ends(state, {0: 100, 1: 100, 2: 100}, at_ms=START_MS, topic=SOURCE)
    read(state, *(commit(number, 50, group=GROUP) for number in range(3)))
    assess(state, START_MS)
    assert set(state.assessments.behind(GROUP)) == {ZERO, ONE, two}
    read(state, commit(0, 100, group=GROUP), commit(1, None, group=GROUP))
    state.apply_ends(two, None)
    assess(state, START_MS)
    assert list(state.assessments.behind(GROUP)) == []


def test_a_group_that_is_gone_is_forgotten() -> None:
    state = cluster_state()
    list_ends(state, {0: 100}, at_ms=START_MS, topic=SOURCE)
    read(state, commit(0, 50, group=GROUP))
    assess(state, START_MS)
    read(state, commit(0, None, group=GROUP), group_tombstone(GROUP))
    state.assessments.keep_only(set(state.group_names()))
    assert state.assessments.verdicts == {}
    assert state.assessments.find(GROUP, ZERO) is None

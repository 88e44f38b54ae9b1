"""The lag table: every copy of every task, its role, its lag, and how that is known."""

from __future__ import annotations

from dataclasses import replace

from caughtup.models.decisions.task_table import TaskCopy
from caughtup.models.ids import CopyKey, ProcessId, TaskId
from caughtup.models.state.cluster import ClusterState
from caughtup.models.tasks.positions import TaskPosition
from tests.support.decisions import decided_generation, decided_state
from tests.support.groups.records import GROUP, START_MS, commit
from tests.support.groups.streams import (
    CHANGELOG,
    HANDED_OVER,
    HANDING_OVER,
    RUNNING,
    WARMING,
    Member,
    generation,
    process,
)
from tests.support.states import ENDS, TOLD, cluster_state, known_ends, list_ends, read


def rows(state: ClusterState) -> dict[tuple[str, int], TaskCopy]:
    """Return the table by task and process number."""
    return {
        (str(copy.task), ProcessId.parse(copy.process).least): copy
        for copy in state.task_rows(GROUP)
    }


def test_a_running_active_has_no_lag_and_a_warm_up_the_whole_log_before_it() -> None:
    table = rows(decided_state(*WARMING, number=1))
    assert list(table) == [("0_0", 1), ("0_1", 1), ("0_1", 2)]
    assert table["0_1", 1] == TaskCopy(
        1, TaskId(0, 1), str(process(1)), "a", "active", None, "running", None, None, START_MS
    )
    assert table["0_1", 2] == TaskCopy(
        1, TaskId(0, 1), str(process(2)), "b", "warmup", 50_000, "reported", 0, 50_000, START_MS
    )


def test_a_copy_reports_how_far_it_was_when_its_client_joined() -> None:
    copy = rows(decided_state(*HANDING_OVER))["0_1", 2]
    assert (copy.role, copy.lag, copy.provenance) == ("standby", 5_000, "reported")
    assert (copy.offset_sum, copy.end_offset_sum) == (45_000, 50_000)


def test_state_on_disk_that_nobody_asked_for_is_a_copy_of_no_role() -> None:
    copy = rows(decided_state(*HANDED_OVER))["0_1", 1]
    assert (copy.role, copy.lag) == ("none", 0)


def test_an_active_that_was_not_running_is_restoring_until_its_input_is_committed() -> None:
    state = decided_state(*HANDED_OVER)
    restoring = rows(state)["0_1", 2]
    assert (restoring.role, restoring.lag, restoring.provenance) == ("restoring", 1_000, "reported")
    read(state, commit(1, 7, at_ms=START_MS))
    assert rows(state)["0_1", 2].role == "restoring"
    read(state, commit(0, 7, at_ms=START_MS + 1))
    assert rows(state)["0_1", 2].role == "restoring"
    read(state, commit(1, 8, at_ms=START_MS + 1))
    running = rows(state)["0_1", 2]
    assert (running.role, running.lag, running.provenance) == ("active", None, "running")


def test_an_active_that_had_all_of_its_state_has_nothing_to_restore() -> None:
    taken_over = Member("b", 2, sums={"0_1": 50_000}, active=("0_1",))
    assert rows(decided_state(HANDED_OVER[0], taken_over))["0_1", 2].role == "active"


def test_a_task_without_state_is_active_at_once() -> None:
    state = cluster_state()
    read(state, generation(1, Member("a", 1, active=("1_0",)), sources={"clicks": 1}))
    assert len(list(state.decide(START_MS))) == 1
    assert rows(state)["1_0", 1].role == "active"


def test_warm_ups_are_told_from_standbys_only_if_the_decision_is_the_leaders() -> None:
    state = decided_state(replace(WARMING[0], probe_at_ms=None), WARMING[1])
    application = decided_generation(state)
    assert application.exact.leader.result == "mismatch"
    assert rows(state)["0_1", 2].role == "standby"


def test_a_lag_against_an_end_that_is_only_bounded_is_an_estimate_from_above() -> None:
    state = cluster_state()
    list_ends(state, at_ms=START_MS - 60_000)
    list_ends(state, dict.fromkeys(ENDS, 50_400), at_ms=START_MS + 1)
    read(state, generation(1, *HANDING_OVER))
    list(state.decide(START_MS + 1))
    copy = rows(state)["0_1", 2]
    assert (copy.lag, copy.end_offset_sum, copy.provenance) == (5_400, 50_400, "estimated")


def test_without_end_offsets_a_lag_is_unknown() -> None:
    copy = rows(decided_state(*HANDING_OVER, ends=False))["0_1", 2]
    assert (copy.lag, copy.end_offset_sum, copy.provenance) == (None, None, "unknown")
    assert copy.offset_sum == 45_000


def test_a_copy_of_unknown_offsets_has_an_unknown_lag() -> None:
    state = decided_state(WARMING[0], replace(WARMING[1], sums={"0_1": -3}))
    copy = rows(state)["0_1", 2]
    assert (copy.lag, copy.offset_sum, copy.provenance) == (None, None, "unknown")


def test_a_task_that_was_running_elsewhere_until_now_has_an_unknown_lag() -> None:
    taken = Member("a", 1, ("0_0",), {"0_0": RUNNING}, standby=("0_0",))
    copy = rows(decided_state(taken, Member("b", 2, active=("0_1",))))["0_0", 1]
    assert (copy.role, copy.lag, copy.provenance) == ("standby", None, "unknown")


def test_a_recreated_changelog_is_all_lag() -> None:
    state = decided_state(*HANDED_OVER)
    list_ends(state, {0: 50_000, 1: 300}, at_ms=START_MS + 90_000)
    read(state, generation(2, *HANDED_OVER, at_ms=START_MS + 90_000), seen_ms=START_MS + 90_000)
    list(state.decide(START_MS + 90_000))
    assert rows(state)["0_1", 2].lag == 300


def test_there_is_no_table_before_the_first_decision_nor_of_other_groups() -> None:
    state = cluster_state()
    read(state, generation(1, *WARMING))
    assert state.task_rows(GROUP) == []
    assert state.task_rows("unheard-of") == []


def reported(state: ClusterState, number: int, task: str, position: TaskPosition | None) -> None:
    state.positions.apply(GROUP, CopyKey(str(process(number)), TaskId.parse(task)), position)


def test_what_the_application_reports_since_the_rebalance_is_measured() -> None:
    state = decided_state(*WARMING)
    later = START_MS + 5_000
    reported(state, 2, "0_1", TaskPosition("standby", 30_000, {CHANGELOG: 30_000}, later))
    copy = rows(state)["0_1", 2]
    assert (copy.role, copy.lag, copy.provenance) == ("warmup", 30_000, "measured")
    assert (copy.as_of_ms, copy.changelogs) == (later, {CHANGELOG: 30_000})
    assert (copy.offset_sum, copy.end_offset_sum) == (None, None)


def test_a_report_from_before_the_rebalance_is_passed_over() -> None:
    state = decided_state(*WARMING)
    reported(state, 2, "0_1", TaskPosition("standby", 1, {}, START_MS - 1))
    assert rows(state)["0_1", 2].lag == 50_000


def test_a_report_of_another_role_is_of_another_time() -> None:
    state = decided_state(*WARMING)
    reported(state, 2, "0_1", TaskPosition("active", None, {}, START_MS + 1))
    reported(state, 1, "0_1", TaskPosition("standby", 7, {}, START_MS + 1))
    table = rows(state)
    assert (table["0_1", 2].role, table["0_1", 2].lag) == ("warmup", 50_000)
    assert table["0_1", 1].role == "active"


def test_a_report_without_the_lag_leaves_what_was_known() -> None:
    state = decided_state(*WARMING)
    reported(state, 2, "0_1", TaskPosition("standby", None, {}, START_MS + 1))
    assert rows(state)["0_1", 2].provenance == "reported"


def test_a_restoring_active_says_itself_when_it_runs() -> None:
    state = decided_state(*HANDED_OVER)
    reported(state, 2, "0_1", TaskPosition("restoring", 400, {}, START_MS + 1))
    restoring = rows(state)["0_1", 2]
    assert (restoring.role, restoring.lag, restoring.provenance) == ("restoring", 400, "measured")
    reported(state, 2, "0_1", TaskPosition("active", None, {}, START_MS + 2))
    running = rows(state)["0_1", 2]
    assert (running.role, running.lag, running.provenance) == ("active", None, "running")


def test_a_withdrawn_report_counts_no_more() -> None:
    state = decided_state(*WARMING)
    reported(state, 2, "0_1", TaskPosition("standby", 3, {}, START_MS + 1))
    reported(state, 2, "0_1", None)
    assert rows(state)["0_1", 2].provenance == "reported"
    assert state.positions.of(GROUP) == {}


def test_the_lag_of_several_stores_is_one_sum() -> None:
    stores = (CHANGELOG, "orders-seen-changelog")
    state = cluster_state(replace(TOLD, changelogs={0: stores}))
    known_ends(state)
    for at_ms in (START_MS - 60_000, START_MS + 60_000):
        list_ends(state, {0: 300, 1: 300}, at_ms=at_ms, topic=stores[1])
    read(state, generation(1, *HANDING_OVER))
    list(state.decide(START_MS + 20_000))
    copy = rows(state)["0_1", 2]
    assert (copy.lag, copy.end_offset_sum, copy.provenance) == (5_300, 50_300, "reported")

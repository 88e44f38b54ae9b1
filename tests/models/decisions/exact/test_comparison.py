"""Exact mode: what the leader decided, decided again, and where the two differ."""

from __future__ import annotations

from dataclasses import replace

import pytest

from caughtup.models.decisions.exact.comparison import ASSIGNOR, ExactResult, compared
from caughtup.models.decisions.life import LEADER_STATE_WAIT_MS
from caughtup.models.parameters import DEFAULTS, ApplicationParameters
from tests.support.decisions import decided_generation, decided_state
from tests.support.groups.records import GROUP, START_MS
from tests.support.groups.streams import (
    CHANGELOG,
    HANDED_OVER,
    HANDING_OVER,
    RUNNING,
    WARMING,
    Member,
    generation,
)
from tests.support.states import TOLD, cluster_state, list_ends, read, state_with_ends

NOTHING = "no configs of Kafka's assignors explain it: "

#: Two threads each: the leader's second thread has to wait for its first one, and b warms up.
BETWEEN_THREADS = (
    replace(WARMING[0], active=("0_0",)),
    Member("a", 1, thread=2, probe_at_ms=0),
    Member("b", 2, standby=("0_1",)),
    Member("b", 2, thread=2),
)


def verdict(*members: Member, parameters: ApplicationParameters = TOLD) -> ExactResult:
    """Decide one generation, with end offsets that are known exactly."""
    return decided_generation(decided_state(*members, parameters=parameters)).exact


def differences(exact: ExactResult) -> list[str]:
    """Return where the leader's decision differs from what the settings tell."""
    _, _, texts = exact.leader.why.rpartition("decides otherwise: ")
    return texts.removeprefix(NOTHING).split("; ")


def test_it_names_kafkas_default_assignor() -> None:
    assert ASSIGNOR == "HighAvailabilityTaskAssignor"


def test_a_warm_up_that_the_leader_placed_is_a_match() -> None:
    exact = verdict(*WARMING)
    assert (exact.leader.result, exact.leader.why) == ("match", "")
    assert exact.decision is not None
    assert exact.decision.probing_rebalance_needed


def test_a_task_held_back_until_its_owner_lets_go_is_a_match() -> None:
    exact = verdict(*HANDING_OVER)
    assert (exact.leader.result, exact.leader.why) == ("match", "")


def test_a_task_held_back_stays_a_standby_where_it_was_one() -> None:
    a, b = HANDING_OVER
    exact = verdict(a, replace(b, standby=()))
    assert exact.leader.result == "mismatch"
    assert exact.leader.why == f"{NOTHING}b-StreamThread-1-consumer should have 0_1 as standby"


def test_a_member_with_a_task_held_back_asks_for_a_rebalance_at_once() -> None:
    a, b = HANDING_OVER
    exact = verdict(replace(a, probe_at_ms=0), replace(b, probe_at_ms=None))
    assert exact.leader.result == "mismatch"
    assert differences(exact) == [
        "a-StreamThread-1-consumer should ask for no rebalance, but asks for a rebalance at once",
        "b-StreamThread-1-consumer should ask for a rebalance at once, but asks for no rebalance",
    ]


def test_a_temporary_standby_where_there_was_none_is_given_by_releases_before_3_5_2() -> None:
    """Later, the new client without state of its own gets nothing until the owner lets go."""
    ran = Member("a", 1, ("0_0", "0_1"), {"0_0": 100, "0_1": 100}, ("0_0",))
    exact = verdict(ran, Member("b", 2, sums={"0_1": RUNNING}, standby=("0_1",), probe_at_ms=0))
    assert (exact.leader.result, exact.leader.why) == ("match", "")
    late = verdict(ran, Member("b", 2, sums={"0_1": RUNNING}, probe_at_ms=0))
    assert (late.leader.result, late.leader.why) == ("match", "")


def test_a_task_that_arrived_is_a_match_without_a_probe() -> None:
    exact = verdict(*HANDED_OVER)
    assert (exact.leader.result, exact.leader.why) == ("match", "")
    assert exact.decision is not None
    assert not exact.decision.probing_rebalance_needed


def test_a_leader_that_decides_otherwise_is_a_mismatch_with_every_difference_named() -> None:
    a, b = HANDED_OVER
    exact = verdict(replace(a, active=("0_1",)), replace(b, active=("0_0",)))
    assert exact.leader.result == "mismatch"
    assert differences(exact) == [
        "a-StreamThread-1-consumer should have 0_0 as active",
        "a-StreamThread-1-consumer should not have 0_1 as active",
        "b-StreamThread-1-consumer should have 0_1 as active",
        "b-StreamThread-1-consumer should not have 0_0 as active",
    ]


def test_a_task_taken_from_the_client_that_should_keep_it_is_a_mismatch() -> None:
    """Nobody may be given it yet, but its only owner would have been told to keep it."""
    exact = verdict(replace(WARMING[0], active=("0_0",)), WARMING[1])
    assert exact.leader.result == "mismatch"
    assert differences(exact) == ["a-StreamThread-1-consumer should have 0_1 as active"]


def test_a_task_held_back_between_two_threads_of_its_client_is_a_match() -> None:
    exact = verdict(*BETWEEN_THREADS)
    assert (exact.leader.result, exact.leader.why) == ("match", "")


def test_a_copy_on_another_thread_than_kafka_deals_it_to_is_a_mismatch() -> None:
    first, second = BETWEEN_THREADS[2:]
    exact = verdict(
        *BETWEEN_THREADS[:2], replace(first, standby=()), replace(second, standby=("0_1",))
    )
    assert exact.leader.result == "mismatch"
    assert differences(exact) == [
        "b-StreamThread-1-consumer should have 0_1 as standby",
        "b-StreamThread-2-consumer should not have 0_1 as standby",
    ]


def test_a_probe_on_another_thread_than_the_leaders_first_one_is_a_mismatch() -> None:
    a, b = WARMING
    exact = verdict(replace(a, probe_at_ms=None), replace(b, probe_at_ms=START_MS))
    assert exact.leader.result == "mismatch"
    assert differences(exact) == [
        "a-StreamThread-1-consumer should ask for a probing rebalance, but asks for no rebalance",
        "b-StreamThread-1-consumer should ask for no rebalance, but asks for a probing rebalance",
    ]


def of_two_threads(
    first: Member, second: Member, ends: dict[int, int], *others: Member
) -> ExactResult:
    """Decide for a process, after whose rebalance the changelog's partitions ended at ``ends``."""
    state = cluster_state()
    list_ends(state, {0: 50_000, 1: 50_000}, at_ms=START_MS - 60_000)
    list_ends(state, ends, at_ms=START_MS + 1)
    read(state, generation(7, first, second, *others))
    list(state.decide(START_MS + LEADER_STATE_WAIT_MS))
    decided = decided_generation(state)
    return decided.exact


#: One thread reports both tasks of its process; it can keep only one of them.
CROWDED = Member("a", 1, sums={"0_0": 49_000, "0_1": 49_500})
IDLE = Member("a", 1, thread=2)
EXACTLY = {0: 50_000, 1: 50_000}
#: Beyond the ends before: which of the two tasks lagged more isn't known.
LATER = {0: 50_000, 1: 50_600}


def test_a_crowded_thread_keeps_what_lags_least() -> None:
    kept = replace(CROWDED, active=("0_1",)), replace(IDLE, active=("0_0",))
    assert of_two_threads(*kept, EXACTLY).leader.result == "match"
    other = replace(CROWDED, active=("0_0",)), replace(IDLE, active=("0_1",))
    exact = of_two_threads(*other, EXACTLY)
    assert exact.leader.result == "mismatch"
    assert differences(exact)[0] == "a-StreamThread-1-consumer should have 0_1 as active"


def test_which_task_a_crowded_thread_keeps_is_consistent_where_the_lags_may_tie() -> None:
    kept = replace(CROWDED, active=("0_1",)), replace(IDLE, active=("0_0",))
    leader = of_two_threads(*kept, LATER).leader
    assert (leader.result, leader.identical) == ("consistent", "unknown")
    assert leader.witness
    assert leader.witness.end_offset_sums["0_1"] - 49_500 <= 1_000


def test_lags_that_are_known_to_be_equal_leave_nothing_undetermined() -> None:
    equal = replace(CROWDED, sums={"0_0": 49_000, "0_1": 49_000})
    swapped = replace(equal, active=("0_1",)), replace(IDLE, active=("0_0",))
    assert of_two_threads(*swapped, EXACTLY).leader.result == "mismatch"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(
            replace(CROWDED, active=("0_1",)),
            replace(IDLE, active=("0_0",), standby=("0_1",)),
            id="a standby too many",
        ),
        pytest.param(
            replace(CROWDED, active=("0_0",)),
            replace(IDLE, standby=("0_1",)),
            id="an active that nobody has and nobody had",
        ),
    ],
)
def test_what_a_process_has_otherwise_is_a_mismatch_however_its_threads_lag(
    first: Member, second: Member
) -> None:
    assert of_two_threads(first, second, LATER).leader.result == "mismatch"


def test_an_active_that_belongs_to_another_process_is_a_mismatch_however_the_threads_lag() -> None:
    crowded = replace(CROWDED, sums={"0_0": 49_000, "0_2": 49_500}, active=("0_0",))
    owner = Member("b", 2, ("0_1",), {"0_1": RUNNING}, ("0_1",))
    ends = {0: 50_000, 1: 10, 2: 50_600}
    right = of_two_threads(crowded, replace(IDLE, active=("0_2",)), ends, owner)
    assert right.leader.result == "match"
    wrong = of_two_threads(crowded, replace(IDLE, active=("0_1", "0_2")), ends, owner)
    assert wrong.leader.result == "mismatch"


def test_the_leader_may_be_any_of_the_members() -> None:
    a, b = WARMING
    exact = verdict(replace(b, probe_at_ms=START_MS), replace(a, probe_at_ms=None))
    assert (exact.leader.result, exact.leader.why) == ("match", "")


def test_a_probe_that_the_leader_did_not_schedule_is_a_mismatch() -> None:
    exact = verdict(replace(WARMING[0], probe_at_ms=None), WARMING[1])
    assert exact.leader.result == "mismatch"
    assert differences(exact) == [
        "a-StreamThread-1-consumer should ask for a probing rebalance, but asks for no rebalance"
    ]


def test_a_probe_that_nothing_calls_for_is_one_of_a_leader_without_end_offsets() -> None:
    exact = verdict(replace(HANDED_OVER[0], probe_at_ms=START_MS), HANDED_OVER[1])
    assert exact.leader.result == "undetermined"
    assert exact.leader.why.startswith("its leader may have decided without end offsets")


def test_what_nobody_told_is_learned_from_the_decision_itself() -> None:
    decided = decided_generation(decided_state(*WARMING, parameters=ApplicationParameters()))
    assert (decided.exact.leader.result, decided.exact.leader.why) == ("match", "")
    known = {one.name: (one.values, one.provenance) for one in decided.inputs.configs}
    assert known["num.standby.replicas"] == ("0", "learned")
    assert known["acceptable.recovery.lag"] == ("0 to 49999", "learned")
    assert known["max.warmup.replicas"] == ("1 or more", "assumed")
    assert known["rack.aware.assignment.tags"] == ("none", "read")
    assert known["assignor"] == ("high_availability", "learned")


def test_what_is_open_is_named_with_what_would_tell_beside_the_witness() -> None:
    state = cluster_state(ApplicationParameters(changelogs={0: (CHANGELOG,)}))
    list_ends(state, at_ms=START_MS - 60_000)
    list_ends(state, {0: 50_000, 1: 56_000}, at_ms=START_MS + 1)
    read(state, generation(7, *HANDING_OVER))
    list(state.decide(START_MS + LEADER_STATE_WAIT_MS))
    exact = decided_generation(state).exact
    assert exact.leader.result == "consistent"
    assert exact.leader.why.startswith("it decides this with num.standby.replicas 0, ")
    assert "its end offset sum when the leader decided, between 50000 and 56000" in exact.leader.why
    assert (
        "acceptable.recovery.lag is not known (5000 or more; what would narrow it down: a copy "
        "whose lag is between these values when a leader decides)"
    ) in exact.leader.why


ZONES = (
    Member("a", 1, ("0_0",), {"0_0": RUNNING}, ("0_0",), tags={"zone": "x"}),
    Member("b", 2, sums={"0_0": 50_000}, standby=("0_0",), tags={"zone": "x"}),
    Member("c", 3, sums={"0_0": 50_000}, tags={"zone": "y"}),
)
SPREAD = (ZONES[0], replace(ZONES[1], standby=()), replace(ZONES[2], standby=("0_0",)))
A_STANDBY = {**DEFAULTS, "num.standby.replicas": 1}


def test_standbys_are_spread_over_the_client_tags_that_the_settings_name() -> None:
    told = ApplicationParameters(A_STANDBY, {0: (CHANGELOG,)}, tags=("zone",))
    assert verdict(*SPREAD, parameters=told).leader.result == "match"
    exact = verdict(*ZONES, parameters=told)
    assert exact.leader.result == "mismatch"
    assert differences(exact) == [
        "b-StreamThread-1-consumer should not have 0_0 as standby",
        "c-StreamThread-1-consumer should have 0_0 as standby",
    ]


@pytest.mark.parametrize(("members", "tags"), [(ZONES, "none"), (SPREAD, "zone")])
def test_client_tags_of_which_the_settings_say_nothing_are_learned(
    members: tuple[Member, ...], tags: str
) -> None:
    silent = ApplicationParameters(A_STANDBY, {0: (CHANGELOG,)})
    decided = decided_generation(decided_state(*members, parameters=silent))
    assert decided.exact.leader.result == "match"
    known = {one.name: (one.values, one.provenance) for one in decided.inputs.configs}
    assert known["rack.aware.assignment.tags"] == (tags, "learned")


def test_inferred_changelogs_make_a_difference_undetermined_and_are_named() -> None:
    inferred = ApplicationParameters(config=dict(DEFAULTS))
    exact = verdict(replace(WARMING[0], probe_at_ms=None), WARMING[1], parameters=inferred)
    assert exact.leader.result == "undetermined"
    assert exact.leader.why.startswith(f"inferred: {CHANGELOG} belongs to subtopology 0")


def test_other_configs_lead_to_another_decision() -> None:
    strict = ApplicationParameters(
        config={**DEFAULTS, "acceptable.recovery.lag": 4_999}, changelogs={0: (CHANGELOG,)}
    )
    assert verdict(*HANDING_OVER, parameters=strict).leader.result == "mismatch"


def test_an_assignment_with_an_error_code_is_undetermined() -> None:
    exact = verdict(WARMING[0], replace(WARMING[1], error_code=3))
    assert exact.leader.result == "undetermined"
    assert exact.leader.why == (
        "the leader sent b-StreamThread-1-consumer an error instead of an assignment"
    )
    assert exact.decision is None


def test_a_lag_somewhere_between_caught_up_and_not_is_consistent_with_either() -> None:
    state = cluster_state()
    list_ends(state, at_ms=START_MS - 60_000)
    list_ends(state, {0: 50_000, 1: 56_000}, at_ms=START_MS + 1)
    read(state, generation(7, *HANDING_OVER))
    list(state.decide(START_MS + LEADER_STATE_WAIT_MS))
    decided = decided_generation(state)
    leader = decided.exact.leader
    assert leader.result == "consistent"
    assert leader.why.startswith(
        "it decides this with num.standby.replicas 0, max.warmup.replicas 2, "
        "acceptable.recovery.lag 10000 and some end offsets within their bounds; 1 task depends "
        "on them, with 2 possible sets of caught-up copies; "
    )
    assert leader.witness
    assert 50_000 <= leader.witness.end_offset_sums["0_1"] <= 55_000


def test_a_group_of_which_no_member_can_be_read_is_undetermined() -> None:
    state = cluster_state()
    read(state, generation(7, Member("a", 1, user_data=b"?")))
    assert list(state.decide(START_MS)) == []
    decided = decided_generation(state)
    assert decided.exact == ExactResult(
        compared("undetermined", "no member's subscription could be read"), None
    )


def test_a_member_with_a_task_that_nobody_can_name_is_left_out_by_name() -> None:
    state = state_with_ends()
    strange = Member("a", 1, sums={"0_0": 5}, active=("0_0",))
    key, value = generation(7, strange)
    assert value is not None
    renamed = value.replace(b"\x00\x00\x00\x00" + (5).to_bytes(8), b"\xff\xff\xff\xff" + bytes(8))
    read(state, (key, renamed))
    list(state.decide(START_MS + 20_000))
    decided = decided_generation(state)
    assert decided.exact.leader.result == "undetermined"
    skipped = f"{strange.client_id}: out_of_range: task 0_-1"
    assert state.applications[GROUP].newest.skipped == (skipped,)

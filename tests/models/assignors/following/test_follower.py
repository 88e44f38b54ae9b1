"""A follower follows what holds, and otherwise leaves everything where it is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from caughtup.models.assignment.scenario import Scenario, parse_scenario
from caughtup.models.assignors.following.follower import (
    FOLLOWED,
    GIVEN_UP,
    FollowerDecision,
    Patience,
    follow,
)
from caughtup.models.assignors.following.recommendation import (
    FollowedRecommendation,
    Objection,
    read_followed,
)
from caughtup.models.errors import CaughtupError
from tests.models.assignors.building import client, described, scenario
from tests.support.groups.streams import process

TASKS = ("0_0", "0_1")
NONE = Objection("no_recommendation", "there is none")
PATIENCE = Patience(follow_up_ms=1_000, max_age_ms=60_000, follow_ups=3)
Given = dict[int, tuple[tuple[str, ...], tuple[str, ...]]]


def record(found: dict[str, Any], given: Given, **fields: Any) -> dict[str, Any]:
    """Recommend to each client, by number, its actives and its standbys."""
    return {
        "schema": 1,
        "decision_id": "d1",
        "group": "orders",
        "decided_at_ms": 100_000,
        "process_ids": [str(process(number)) for number in given],
        "assignment": {
            str(process(number)): {"active": list(active), "standby": list(standby)}
            for number, (active, standby) in given.items()
        },
        "probing_rebalance": {"needed": False},
        "inputs": {"scenario": found},
        **fields,
    }


def recommended(found: dict[str, Any], given: Given, **fields: Any) -> FollowedRecommendation:
    return read_followed(record(found, given, **fields), "orders")


def decide(
    now: Scenario | dict[str, Any], newest: FollowedRecommendation | Objection, **rest: Any
) -> FollowerDecision:
    known = parse_scenario(now) if isinstance(now, dict) else now
    return follow(known, newest, patience=rest.pop("patience", PATIENCE), **rest)


def given(decision: FollowerDecision) -> Given:
    return {
        number: (
            tuple(map(str, decision.active[process(number)])),
            tuple(map(str, decision.standby[process(number)])),
        )
        for number in range(1, len(decision.active) + 1)
    }


def one_runs_all(lag: int = 100_000, **rest: Any) -> dict[str, Any]:
    """The first client runs both tasks, the second lags."""
    return described(client(active=TASKS), client({"0_0": lag, "0_1": lag}), stateful=TASKS, **rest)


def test_what_holds_is_followed() -> None:
    found = one_runs_all(lag=7)
    decision = decide(found, recommended(found, {1: (("0_0",), ()), 2: (("0_1",), ())}))
    assert (decision.reason, decision.decision_id) == (FOLLOWED, "d1")
    assert given(decision) == {1: (("0_0",), ()), 2: (("0_1",), ())}
    assert decision.follow_up_ms is None


def test_a_warm_up_is_a_standby_and_another_rebalance() -> None:
    found = one_runs_all()
    newest = recommended(
        found,
        {1: (TASKS, ()), 2: ((), ("0_1",))},
        probing_rebalance={"needed": True, "worthwhile_at_ms": 109_000},
    )
    decision = decide(found, newest)
    assert decision.reason == FOLLOWED
    assert given(decision) == {1: (TASKS, ()), 2: ((), ("0_1",))}
    assert decision.follow_up_ms == 9_000


@pytest.mark.parametrize(
    ("worthwhile_after_ms", "repeated", "follow_up_ms"),
    [
        (None, 0, 2_000),
        (9_000, 0, 9_000),
        (10, 0, 1_000),
        (-5_000, 0, 1_000),
        (10**9, 0, 600_000),
        (9_000, 1, 18_000),
        (9_000, 3, 72_000),
        (9_000, 1_000, 600_000),
        (10, 2, 4_000),
    ],
)
def test_the_next_rebalance_is_when_it_is_worthwhile_within_bounds_and_ever_later(
    worthwhile_after_ms: int | None, repeated: int, follow_up_ms: int
) -> None:
    found = one_runs_all()
    probing: dict[str, Any] = {"needed": True}
    if worthwhile_after_ms is not None:
        probing["worthwhile_at_ms"] = 100_000 + worthwhile_after_ms
    newest = recommended(found, {1: (TASKS, ()), 2: ((), ("0_1",))}, probing_rebalance=probing)
    assert decide(found, newest, repeated=repeated).follow_up_ms == follow_up_ms


def test_the_same_is_followed_while_its_tasks_are_in_transit() -> None:
    found = one_runs_all(lag=7)
    newest = recommended(found, {1: (("0_0",), ()), 2: (("0_1",), ())})
    revoked = scenario(
        client({"0_1": 0}, active=("0_0",)), client({"0_0": 7, "0_1": 7}), stateful=TASKS
    )
    assert decide(revoked, newest).reason == FOLLOWED
    done = scenario(client({"0_1": 0}, active=("0_0",)), client(active=("0_1",)), stateful=TASKS)
    assert decide(done, newest).reason == FOLLOWED


def objection(now: Scenario | dict[str, Any], newest: FollowedRecommendation, **rest: Any) -> str:
    decision = decide(now, newest, **rest)
    assert decision.decision_id is None
    return decision.reason


def test_it_holds_for_exactly_the_processes_it_names() -> None:
    found = one_runs_all(lag=0)
    three = described(client(active=TASKS), client(), client(), stateful=TASKS)
    assert objection(three, recommended(found, {1: (TASKS, ()), 2: ((), ())})) == "other_processes"
    assert (
        objection(found, recommended(found, {1: (TASKS, ()), 2: ((), ()), 3: ((), ())}))
        == "other_processes"
    )


def test_it_holds_for_exactly_the_tasks_there_are() -> None:
    found = one_runs_all(lag=0)
    both = recommended(found, {1: (("0_0",), ()), 2: (("0_1",), ())})
    more = described(client(active=TASKS), client({}), stateful=(*TASKS, "0_2"))
    assert objection(more, both) == "missing_task"
    fewer = described(client(active=("0_0",)), client({"0_0": 0}), stateful=("0_0",))
    assert objection(fewer, both) == "unknown_task"
    stateless = described(client(active=TASKS), client(), stateless=TASKS)
    standby = recommended(found, {1: (TASKS, ()), 2: ((), ("0_1",))})
    assert objection(stateless, standby) == "stateless_standby"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num.standby.replicas", 1),
        ("max.warmup.replicas", 3),
        ("acceptable.recovery.lag", 99),
        ("acceptable.recovery.lag", 100.0),
        ("rack.aware.assignment.tags", ["zone"]),
        ("rack.aware.assignment.strategy", "min_traffic"),
        ("rack.aware.assignment.traffic_cost", 1),
        ("rack.aware.assignment.non_overlap_cost", 1),
    ],
)
def test_it_was_decided_with_the_application_s_configs(name: str, value: Any) -> None:
    found = one_runs_all(lag=0)
    other = one_runs_all(lag=0)
    other["config"][name] = value
    newest = recommended(other, {1: (("0_0",), ()), 2: (("0_1",), ())})
    assert objection(found, newest) == "other_configs"


def test_it_has_no_more_extra_copies_than_there_may_be_warm_ups() -> None:
    found = one_runs_all(warmups=1)
    both_warm = {1: (TASKS, ()), 2: ((), TASKS)}
    assert objection(found, recommended(found, both_warm)) == "too_many_copies"
    standbys = one_runs_all(warmups=1, standbys=1)
    assert decide(standbys, recommended(standbys, both_warm)).reason == FOLLOWED


def test_a_task_that_moved_since_is_left_alone() -> None:
    found = one_runs_all(lag=0)
    newest = recommended(found, {1: (TASKS, ()), 2: ((), ())})
    now = described(client({"0_1": 0}, active=("0_0",)), client(active=("0_1",)), stateful=TASKS)
    assert objection(now, newest) == "moved_since"


def test_nothing_goes_cold_to_where_it_is_not_caught_up_by_now() -> None:
    found = one_runs_all(lag=100)
    newest = recommended(found, {1: (("0_0",), ()), 2: (("0_1",), ())})
    assert decide(found, newest).reason == FOLLOWED
    assert objection(one_runs_all(lag=101), newest) == "not_caught_up"
    assert objection(one_runs_all(lag=-3), newest) == "not_caught_up"


def test_where_nobody_is_caught_up_a_task_goes_to_who_lags_least() -> None:
    found = described(
        client({"0_0": 5_000, "0_1": 5_000}), client({"0_0": 4_000, "0_1": 6_000}), stateful=TASKS
    )
    assert decide(found, recommended(found, {1: (("0_1",), ()), 2: (("0_0",), ())})).reason == (
        FOLLOWED
    )
    newest = recommended(found, {1: (("0_0",), ()), 2: (("0_1",), ())})
    assert objection(found, newest) == "not_caught_up"


def test_an_old_one_is_good_for_what_is_there_and_for_nothing_new() -> None:
    found = one_runs_all(lag=0)
    old = {"age_ms": PATIENCE.max_age_ms + 1}
    same = recommended(found, {1: (TASKS, ()), 2: ((), ())})
    assert decide(found, same, **old).reason == FOLLOWED
    moves = recommended(found, {1: (("0_0",), ()), 2: (("0_1",), ())})
    assert decide(found, moves, age_ms=PATIENCE.max_age_ms).reason == FOLLOWED
    assert objection(found, moves, **old) == "too_old"
    builds = recommended(found, {1: (TASKS, ()), 2: ((), ("0_1",))})
    assert objection(found, builds, **old) == "too_old"
    waits = replace(same, probing_needed=True)
    assert objection(found, waits, **old) == "too_old"


def test_while_it_waits_everything_stays_and_another_rebalance_comes_soon() -> None:
    decision = decide(one_runs_all(lag=0), NONE)
    assert decision.reason == "no_recommendation"
    assert given(decision) == {1: (TASKS, ()), 2: ((), ())}
    assert decision.follow_up_ms == PATIENCE.follow_up_ms


def test_while_it_waits_a_task_that_is_nowhere_goes_to_the_least_loaded_that_is_caught_up() -> None:
    tasks = ("0_0", "0_1", "0_2")
    now = described(
        client({"0_2": 0}, active=("0_0", "0_1")),
        client({"0_2": 100}),
        client({"0_2": 101}),
        stateful=tasks,
    )
    assert given(decide(now, NONE)) == {1: (("0_0", "0_1"), ()), 2: (("0_2",), ()), 3: ((), ())}


def test_while_it_waits_a_task_that_nobody_is_caught_up_with_goes_to_who_lags_least() -> None:
    now = described(client({"0_0": 300}), client({"0_0": 200}), stateful=("0_0",))
    assert given(decide(now, NONE)) == {1: ((), ()), 2: (("0_0",), ())}


def test_while_it_waits_standbys_and_warm_ups_stay_and_no_copy_is_built() -> None:
    now = described(
        client(active=TASKS),
        client({"0_0": 5, "0_1": 900}, standby=TASKS),
        client({"0_0": 800, "0_1": 700}, standby=TASKS),
        client(),
        stateful=TASKS,
        standbys=1,
        warmups=1,
    )
    assert given(decide(now, NONE)) == {
        1: (TASKS, ()),
        2: ((), ("0_0",)),
        # A standby of 0_1, and the warm-up of 0_0, which is nearer than the second client's.
        3: ((), ("0_0", "0_1")),
        4: ((), ()),
    }


def test_two_that_say_they_run_a_task_are_settled_for_the_one_that_is_further() -> None:
    now = described(client({"0_0": 40}), client(active=("0_0",)), stateful=("0_0",))
    now["clients"][str(process(1))]["previous_active"] = ["0_0"]
    assert given(decide(now, NONE)) == {1: ((), ()), 2: (("0_0",), ())}


def test_after_its_follow_ups_it_goes_on_without_one() -> None:
    now = one_runs_all(lag=0)
    assert decide(now, NONE, waited=2).reason == "no_recommendation"
    decision = decide(now, NONE, waited=3)
    assert decision.reason == GIVEN_UP
    assert given(decision) == {1: (("0_1",), ()), 2: (("0_0",), ())}
    assert decision.follow_up_ms is None


def test_after_its_follow_ups_one_that_holds_is_followed_all_the_same() -> None:
    found = one_runs_all(lag=0)
    newest = recommended(found, {1: (TASKS, ()), 2: ((), ())})
    assert decide(found, newest, waited=99).reason == FOLLOWED


def test_a_record_for_another_group_is_malformed() -> None:
    with pytest.raises(CaughtupError, match="group is not the expected one"):
        read_followed(record(one_runs_all(), {1: (TASKS, ()), 2: ((), ())}), "payments")

"""The record that is published: complete, made of JSON, and readable back."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import pytest

from caughtup.models.assignment.compact import read_compact
from caughtup.models.assignment.scenario import parse_scenario
from caughtup.models.assignors.registry import decide
from caughtup.models.decisions.deciding import read_back
from caughtup.models.decisions.exact.comparison import ExactResult, compared
from caughtup.models.decisions.life import LEADER_STATE_WAIT_MS
from caughtup.models.decisions.recommendation import (
    decision_id,
    digest,
    encode_recommendation,
    recommendation,
    recorded_inputs,
)
from caughtup.models.ids import TaskId
from caughtup.models.learning.known_inputs import with_known_configs
from caughtup.models.parameters import ApplicationParameters
from caughtup.models.records.decoding import BAD_TYPE, RefusedError
from tests.models.learning.applications import Application
from tests.models.learning.playing import steps
from tests.support.decisions import (
    DECIDED_MS,
    decided_generation,
    recommendation_of,
    recommended_record,
    undecided_state,
)
from tests.support.groups.records import GROUP, START_MS
from tests.support.groups.streams import (
    HANDED_OVER,
    HANDING_OVER,
    WARMING,
    Member,
    generation,
    process,
)
from tests.support.own_topics.application_states import state_record, tell
from tests.support.sizes import daily
from tests.support.states import TOLD, cluster_state, list_ends, publish, read, state_with_ends

A, B = str(process(1)), str(process(2))


def test_it_says_for_whom_it_holds_and_when_it_was_made() -> None:
    record = recommended_record(*WARMING)
    assert {name: record[name] for name in ("schema", "cluster", "group", "generation")} == {
        "schema": 1,
        "cluster": "cluster-1",
        "group": GROUP,
        "generation": 7,
    }
    assert record["process_ids"] == [A, B]
    assert record["as_of_ms"] == START_MS
    assert record["decided_at_ms"] == START_MS + 20_000
    assert record["assignor"] == "minimal_movement"


def test_a_warm_up_is_in_the_assignment_and_among_the_movements_with_its_reason() -> None:
    record = recommended_record(*WARMING)
    assert record["assignment"] == {
        A: {"active": ["0_0", "0_1"], "standby": [], "warmup": []},
        B: {"active": [], "standby": ["0_0"], "warmup": ["0_0"]},
    }
    (movement,) = record["movements"]
    reason = movement.pop("reason")
    assert movement == {"task": "0_0", "from": A, "to": B, "kind": "warmup", "lag": 50_000}
    assert "50,000 offsets" in reason
    assert record["cost"] == {
        "copies": 1,
        "offsets": 50_000,
        "rebalances": 1,
        "seconds": 600.0,
        "estimated": False,
    }
    assert record["probing_rebalance"] == {
        "needed": True,
        "reason": "1 warm-up has to be checked again",
        "due_ms": START_MS,
    }


def test_a_hand_over_to_a_copy_that_is_caught_up_builds_nothing() -> None:
    record = recommended_record(*HANDING_OVER)
    assert [m["kind"] for m in record["movements"]] == ["active"]
    assert record["cost"]["copies"] == record["cost"]["rebalances"] == 0
    assert record["probing_rebalance"]["needed"] is False


def test_what_is_beyond_the_warm_up_budget_waits_and_is_said_to() -> None:
    tasks = tuple(f"0_{number}" for number in range(8))
    parameters = replace(TOLD, config={**TOLD.config, "max.warmup.replicas": 1})
    state = cluster_state(parameters)
    for at_ms in (START_MS - 60_000, START_MS):
        list_ends(state, dict.fromkeys(range(8), 90_000), at_ms=at_ms)
    alone = Member("a", 1, tasks, dict.fromkeys(tasks, -2), tasks)
    read(state, generation(1, alone, Member("b", 2)))
    (record,) = publish(state, START_MS + LEADER_STATE_WAIT_MS)
    assert [m["kind"] for m in record["movements"]] == ["warmup", "waiting", "waiting", "waiting"]
    assert (record["cost"]["copies"], record["cost"]["rebalances"]) == (4, 4)
    assert record["probing_rebalance"]["reason"] == (
        "1 warm-up has to be checked again and 3 movements wait for max.warmup.replicas"
    )


def test_a_follower_goes_on_with_what_it_began_though_less_of_another_task_is_to_restore() -> None:
    a, b = WARMING
    told = state_record(a, b, given={1: (["0_0", "0_1"], []), 2: ([], ["0_1"])})
    told["greatest_lags"]["0_0"] = 49_000
    state = cluster_state()
    tell(state, told)
    read(state, generation(7, a, b))
    (record,) = publish(state)
    assert record["assignment"][B] == {"active": [], "standby": ["0_1"], "warmup": ["0_1"]}
    assert record["inputs"]["projected"] is True
    assert record["inputs"]["scenario"]["clients"][B]["previous_standby"] == ["0_1"]
    assert record["cost"]["copies"] == 0


def test_a_follower_whose_leader_says_nothing_of_a_rebalance_still_follows() -> None:
    """What it began in it isn't given up for want of what its leader saw."""
    a, b = WARMING
    state = state_with_ends()
    given = {1: (["0_0", "0_1"], []), 2: ([], ["0_1"]), 3: ([], [])}
    tell(state, state_record(a, b, Member("c", 3), given=given))
    read(state, generation(7, a, b))
    assert publish(state, START_MS) == []
    (record,) = publish(state, START_MS + LEADER_STATE_WAIT_MS)
    assert record["inputs"]["projected"] is True
    assert record["inputs"]["scenario"]["clients"][B]["previous_standby"] == ["0_1"]


def test_where_nobody_follows_the_leader_s_own_inputs_are_decided_from() -> None:
    record = recommended_record(*WARMING)
    assert record["inputs"]["projected"] is False
    assert record["inputs"]["scenario"]["clients"][B]["previous_standby"] == []


def test_a_lag_that_is_not_a_number_of_offsets_is_absent() -> None:
    unknown = Member("b", 2, sums={"0_1": -3})
    (movement,) = recommended_record(WARMING[0], unknown)["movements"]
    assert "lag" not in movement


@pytest.mark.parametrize(
    ("members", "identical"),
    [(WARMING, True), ((replace(WARMING[0], probe_at_ms=None), WARMING[1]), False)],
)
def test_it_says_whether_the_leader_decided_the_same(
    members: tuple[Member, ...], identical: bool
) -> None:
    leader = recommended_record(*members)["leader"]
    assert leader["identical"] is identical
    assert leader["result"] == ("match" if identical else "mismatch")
    assert bool(leader["why"]) is not identical


def test_where_the_leaders_inputs_are_not_known_neither_is_whether_it_decided_the_same() -> None:
    leader = recommended_record(replace(WARMING[0], probe_at_ms=None), WARMING[1], ends=False)[
        "leader"
    ]
    assert (leader["identical"], leader["result"]) == ("unknown", "undetermined")


def test_every_input_says_where_it_came_from() -> None:
    inputs = recommended_record(*WARMING)["inputs"]
    assert inputs["end_offset_sums"] == {"0_0": [50_000, 50_000], "0_1": [50_000, 50_000]}
    assert (inputs["end_offsets"], inputs["changelogs"]) == ("measured", "settings")
    nothing_told = recommended_record(*WARMING, parameters=ApplicationParameters())["inputs"]
    assert nothing_told["changelogs"] == "inferred"
    assert len(nothing_told["inferred"]) == 1
    assert nothing_told["assumed"] == ["max.warmup.replicas", "probing.rebalance.interval.ms"]
    (lag,) = [one for one in nothing_told["configs"] if one["name"] == "acceptable.recovery.lag"]
    assert lag == {
        "name": "acceptable.recovery.lag",
        "values": "0 to 49999",
        "value": 10_000,
        "provenance": "learned",
        "generations": 1,
        "would_tell": "a copy whose lag is between these values when a leader decides",
        "as_if_default": True,
    }
    no_ends = recommended_record(*WARMING, ends=False)["inputs"]
    assert no_ends["end_offset_sums"] == {"0_0": None, "0_1": None}
    assert no_ends["end_offsets"] == "unknown"


def test_ends_that_lie_within_bounds_are_said_to() -> None:
    state = cluster_state()
    list_ends(state, at_ms=START_MS + 1)
    read(state, generation(7, *WARMING))
    (record,) = publish(state, START_MS + 1)
    assert record["inputs"]["end_offsets"] == "bounded"


def test_the_decision_can_be_made_again_from_the_record_alone() -> None:
    record = json.loads(json.dumps(recommended_record(*WARMING)))
    decision = decide(parse_scenario(record["inputs"]["scenario"]))
    assert decision.to_dict()["clients"] == record["assignment"]


@pytest.mark.parametrize("members", [WARMING, HANDING_OVER, HANDED_OVER])
@pytest.mark.parametrize("ends", [True, False])
def test_a_record_reads_back_as_what_it_was_made_of(
    members: tuple[Member, ...], ends: bool
) -> None:
    state = undecided_state(*members, ends=ends)
    (record,) = publish(state, DECIDED_MS)
    decided = decided_generation(state)
    found = recommendation_of(record)
    assert found == decided.recommendation
    assert recorded_inputs(found.inputs) == decided.inputs
    assert found.leader == decided.exact.leader
    assert decided.learned is not None
    assert read_back(decided.generation, found) == replace(decided, learned=None)


def test_the_same_inputs_have_the_same_id_whatever_the_moment_and_the_order() -> None:
    record = recommended_record(*WARMING)
    assert record["decision_id"] == recommended_record(*reversed(WARMING))["decision_id"]
    shuffled = json.loads(json.dumps(record["inputs"]["scenario"], sort_keys=True))
    assert decision_id("cluster-1", read_compact(shuffled)) == record["decision_id"]
    assert len(record["decision_id"]) == 32


def test_other_inputs_have_other_ids() -> None:
    strict = replace(TOLD, config={**TOLD.config, "acceptable.recovery.lag": 5})
    ids = [
        recommended_record(*WARMING)["decision_id"],
        recommended_record(*WARMING, number=8)["decision_id"],
        recommended_record(*WARMING, parameters=strict)["decision_id"],
        recommended_record(*HANDED_OVER)["decision_id"],
        decision_id("cluster-2", read_compact(recommended_record(*WARMING)["inputs"]["scenario"])),
    ]
    assert len(set(ids)) == len(ids)


def test_an_id_does_not_change_between_versions_of_the_service() -> None:
    """A digest of the inputs as JSON with sorted keys and no spaces."""
    text = b'["c",{"a":"\\u00e9","b":1}]'
    assert digest(["c", {"b": 1, "a": "é"}]) == hashlib.sha256(text).hexdigest()[:32]


@pytest.mark.parametrize(
    ("members", "ends", "digest"),
    [
        (WARMING, True, "8ef0d5a0166e7afb"),
        (WARMING, False, "df82aeb01fb17e64"),
        (HANDING_OVER, True, "df2c611ea2461a1d"),
        (HANDING_OVER, False, "657d8acf853f56f4"),
        (HANDED_OVER, True, "5934749c5ec3d0b1"),
        (HANDED_OVER, False, "ff60c762aab1a1c2"),
    ],
)
def test_what_is_published_stays_what_it_is_byte_for_byte(
    members: tuple[Member, ...], ends: bool, digest: str
) -> None:
    """What changes a digest on purpose changes the record, and says so in the changelog."""
    parameters = TOLD if ends else ApplicationParameters(tags=("zone",))
    record = recommended_record(*members, parameters=parameters, ends=ends)
    assert (
        hashlib.sha256(encode_recommendation(recommendation_of(record))).hexdigest()[:16] == digest
    )


def test_a_record_without_what_we_write_is_refused_in_one_line() -> None:
    with pytest.raises(RefusedError) as failure:
        recommendation_of({"schema": 1, "inputs": {}})
    assert failure.value.code == BAD_TYPE
    assert "\n" not in failure.value.message


@pytest.mark.parametrize("seed", range(daily(6, 60)))
def test_nothing_goes_to_an_instance_that_may_not_be_caught_up(seed: int) -> None:
    print(f"seed {seed}")
    app = Application(f"bounds {seed}", doubts=1.0, failures=0.0, missing=0.0)
    app.growth = 3_000
    for step in steps(app, generations=10):
        played = step.played
        inputs = with_known_configs(played.inputs, played.generation, step.after)
        exact = ExactResult(compared("undetermined", ""), None)
        found = recommendation("cluster-1", played.generation, inputs, exact, played.seen_ms)
        assert found is not None
        limit = inputs.scenario.acceptable_recovery_lag
        clients = {str(process): one for process, one in played.generation.clients.items()}
        for one in found.movements:
            task = TaskId.parse(one.task)
            bound = inputs.ends.get(task)
            if bound is None:
                continue
            low, high = bound.lags(clients[one.to].offset_sums.get(task, 0))
            if one.kind == "active":
                assert high <= limit, (one, bound, low, high, limit)
            elif low >= 0:
                assert (one.may_be_caught_up is True) == (low <= limit < high)

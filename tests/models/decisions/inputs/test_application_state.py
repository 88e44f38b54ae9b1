"""What an application's leader tells of a rebalance: read, matched, decided from, and checked."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from caughtup.models.decisions.life import LEADER_STATE_WAIT_MS, DecidedGeneration
from caughtup.models.errors import CaughtupError
from caughtup.models.histories.offset_sums import EndOffsetSum
from caughtup.models.ids import TaskId
from caughtup.models.parameters import ApplicationParameters
from caughtup.models.records.fields import json_values
from caughtup.models.state.cluster import ClusterState
from tests.support.decisions import decided_generation, recommendation_of
from tests.support.groups.records import GROUP, START_MS
from tests.support.groups.streams import RUNNING, Member, generation, process
from tests.support.own_topics.application_states import END, read_state_record, state_record, tell
from tests.support.states import cluster_state, publish, read, state_with_ends

A, B = str(process(1)), str(process(2))
BOTH = ("0_0", "0_1")
#: A second instance joins, and the follower leaves everything where it is.
OWNER = Member("a", 1, BOTH, dict.fromkeys(BOTH, RUNNING), BOTH, (), START_MS + 5_000)
JOINING = (OWNER, Member("b", 2))
IN_PLACE = {1: (list(BOTH), []), 2: ([], [])}
#: The next one, in which it is followed that the second instance warms one up.
FOLLOWING = (OWNER, Member("b", 2, standby=("0_0",)))
WARM = {1: (list(BOTH), []), 2: ([], ["0_0"])}


def decided(state: ClusterState, number: int, *members: Member, at_ms: int) -> DecidedGeneration:
    read(state, generation(number, *members, at_ms=at_ms), seen_ms=at_ms)
    publish(state, at_ms)
    known = decided_generation(state)
    assert known.generation.generation == number
    return known


def service() -> ClusterState:
    """Nothing is known of the application but what it tells."""
    return cluster_state(ApplicationParameters())


def test_a_client_lags_as_much_as_anybody_where_it_does_not_say() -> None:
    told = read_state_record(state_record(*JOINING, given=IN_PLACE), 7)
    lags = {str(c.process_id): dict(c.lags) for c in told.scenario.expanded().clients}
    assert lags[B] == {TaskId(0, 0): END, TaskId(0, 1): END}
    assert lags[A] == {TaskId(0, 0): RUNNING, TaskId(0, 1): RUNNING}
    assert (told.at_ms, told.state_id, told.left_out) == (7, "s1", ())


def test_racks_that_are_not_told_are_left_out_and_named() -> None:
    record = state_record(*JOINING, given=IN_PLACE)
    record["config"]["rack.aware.assignment.strategy"] = "min_traffic"
    told = read_state_record(record, 0)
    assert told.scenario.expanded().configs.rack_aware_assignment_strategy == "none"
    assert told.left_out == (
        "rack.aware.assignment.strategy is 'min_traffic', and the follower does not report the racks of replicas",
    )


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda r: r.pop("clients"), id="no clients"),
        pytest.param(lambda r: r.update(tasks=[]), id="tasks that are no object"),
        pytest.param(lambda r: r["clients"].update({"b": {}}), id="a process that is no id"),
        pytest.param(lambda r: r.update(greatest_lags={"0_0": "all"}), id="a lag in words"),
        pytest.param(lambda r: r.update(greatest_lags={}), id="lags that are missing"),
        pytest.param(lambda r: r["config"].update(unheard=1), id="an unknown config"),
        pytest.param(lambda r: r["outcome"].pop("reason"), id="an outcome without a reason"),
        pytest.param(lambda r: r["outcome"].update(follow_up_ms=-1), id="a follow-up in the past"),
        pytest.param(
            lambda r: r["outcome"]["assignment"].update({A: {"active": ["x"]}}), id="no task id"
        ),
        pytest.param(lambda r: r.update(state_id=5), id="a state id that is no text"),
    ],
)
def test_what_is_malformed_is_refused_by_its_place(spoil: Callable[[Any], Any]) -> None:
    record = json.loads(json.dumps(state_record(*JOINING, given=IN_PLACE)))
    spoil(record)
    with pytest.raises(CaughtupError):
        read_state_record(record, 0)


def test_what_the_leader_tells_leaves_nothing_to_be_inferred() -> None:
    state = service()
    tell(state, state_record(*JOINING, given=IN_PLACE))
    known = decided(state, 1, *JOINING, at_ms=START_MS)
    assert known.inputs.changelogs_from == "application"
    assert known.inputs.inferred == known.inputs.assumed == known.inputs.unknown == ()
    assert known.inputs.ends == dict.fromkeys((TaskId(0, 0), TaskId(0, 1)), EndOffsetSum(END, END))
    assert known.recommendation is not None
    record = json_values(known.recommendation)
    assert record["leader"] == {
        "assignor": "FollowingTaskAssignor",
        "identical": True,
        "result": "match",
        "why": "",
        "told": "no_recommendation: no recommendation",
    }
    assert recommendation_of(record).leader.told == known.exact.leader.told
    assert [(m.task, m.kind) for m in known.movements] == [("0_0", "warmup")]


def test_configs_that_contradict_the_settings_are_marked_and_the_application_s_count() -> None:
    settings = {"max.warmup.replicas": 7, "num.standby.replicas": 0}
    state = cluster_state(ApplicationParameters(config=settings))
    record = state_record(*JOINING, given=IN_PLACE)
    runs = record["config"]["max.warmup.replicas"]
    assert runs != 7
    tell(state, record)
    known = decided(state, 1, *JOINING, at_ms=START_MS)
    said = [f"max.warmup.replicas: 7 in the settings, {runs} in the application"]
    assert known.inputs.contradicted == tuple(said)
    assert known.inputs.scenario.config["max.warmup.replicas"] == runs
    assert known.exact.leader.result == "match"
    assert known.recommendation is not None
    record = json_values(known.recommendation)
    assert recommendation_of(record).inputs.contradicted == said


def test_a_recommendation_that_is_followed_matches_and_tells_its_warm_ups() -> None:
    state = service()
    tell(state, state_record(*JOINING, given=IN_PLACE))
    first = decided(state, 1, *JOINING, at_ms=START_MS)
    assert first.recommendation is not None
    told = state_record(
        *FOLLOWING, given=WARM, reason="followed", followed=first.recommendation.decision_id
    )
    tell(state, told, START_MS + 5_000)
    second = decided(state, 2, *FOLLOWING, at_ms=START_MS + 5_000)
    assert (second.exact.leader.result, second.exact.leader.why) == ("match", "")
    roles = {(str(c.task), c.process): c.role for c in state.task_rows(GROUP)}
    assert roles["0_0", B] == "warmup"


def test_a_recommendation_that_is_not_known_here_leaves_it_undetermined() -> None:
    state = service()
    tell(state, state_record(*FOLLOWING, given=WARM, reason="followed", followed="elsewhere"))
    exact = decided(state, 1, *FOLLOWING, at_ms=START_MS).exact
    assert exact.leader.result == "undetermined"
    assert "elsewhere" in exact.leader.why


def test_a_follower_that_breaks_its_rules_is_a_mismatch() -> None:
    state = service()
    tell(state, state_record(*FOLLOWING, given=WARM))
    exact = decided(state, 1, *FOLLOWING, at_ms=START_MS).exact
    assert exact.leader.result == "mismatch"
    assert f"process {B} should have other tasks as standby: 0_0" in exact.leader.why


def test_members_that_are_given_something_else_are_a_mismatch() -> None:
    state = service()
    tell(state, state_record(*JOINING, given=IN_PLACE))
    exact = decided(state, 1, *FOLLOWING, at_ms=START_MS).exact
    assert exact.leader.result == "mismatch"
    assert "should not have 0_0 as standby" in exact.leader.why


def test_a_decision_waits_for_what_the_leader_has_told_before() -> None:
    state = service()
    tell(state, state_record(*JOINING, given=IN_PLACE))
    decided(state, 1, *JOINING, at_ms=START_MS)
    later = START_MS + 5_000
    read(state, generation(2, *FOLLOWING, at_ms=later), seen_ms=later)
    assert publish(state, later + LEADER_STATE_WAIT_MS - 1) == []
    tell(state, state_record(*FOLLOWING, given=WARM), later)
    assert len(publish(state, later + LEADER_STATE_WAIT_MS - 1)) == 1


def test_a_leader_that_decided_otherwise_may_yet_tell_by_which_rules() -> None:
    """Nobody knows of a follower before its first rebalance."""
    state = state_with_ends()
    read(state, generation(1, *JOINING), seen_ms=START_MS)
    assert publish(state, START_MS + LEADER_STATE_WAIT_MS - 1) == []
    tell(state, state_record(*JOINING, given=IN_PLACE))
    (record,) = publish(state, START_MS + LEADER_STATE_WAIT_MS - 1)
    assert record["leader"]["assignor"] == "FollowingTaskAssignor"
    assert state.applications[GROUP].exact_counts == {"match": 1}


def test_a_leader_that_decided_otherwise_and_does_not_tell_may_have_had_no_end_offsets() -> None:
    state = state_with_ends()
    read(state, generation(1, *JOINING), seen_ms=START_MS)
    (record,) = publish(state, START_MS + LEADER_STATE_WAIT_MS)
    assert record["leader"]["assignor"] == "HighAvailabilityTaskAssignor"
    assert "have decided without end offsets" in record["leader"]["why"]
    assert state.applications[GROUP].exact_counts == {"undetermined": 1}


def test_of_states_that_look_alike_the_first_since_the_members_joined_counts() -> None:
    state = service()
    for at_ms, lag in ((START_MS, 40_000), (START_MS + 5_000, 30_000)):
        again = replace(FOLLOWING[1], sums={"0_0": END - lag})
        tell(state, state_record(OWNER, again, given=WARM), at_ms)
    member = replace(FOLLOWING[1], sums={"0_0": END - 30_000})
    known = decided(state, 2, OWNER, member, at_ms=START_MS + 5_000)
    assert known.inputs.scenario.lag_of(process(2), TaskId(0, 0)) == 30_000


def basis(**changes: Any) -> dict[str, Any]:
    return {
        "newest": None,
        "age_ms": 10,
        "waited": 0,
        "repeated": 0,
        "follow_up_ms": 5_000,
        "max_age_ms": 900_000,
        "follow_ups": 3,
        **changes,
    }


@pytest.mark.parametrize(
    ("told", "why"),
    [
        pytest.param({}, "", id="as it should be"),
        pytest.param({"waited": 3}, "its rules lead to given_up", id="waited enough"),
        pytest.param({"follow_up_ms": 7_000}, "a rebalance in 7000 ms", id="sooner than it should"),
    ],
)
def test_what_a_follower_depends_on_besides_is_held_against_what_it_did(
    told: dict[str, Any], why: str
) -> None:
    state = service()
    tell(state, state_record(*JOINING, given=IN_PLACE) | {"follower": basis(**told)})
    exact = decided(state, 1, *JOINING, at_ms=START_MS).exact
    assert exact.leader.result == ("mismatch" if why else "match")
    assert why in exact.leader.why


def test_a_recommendation_that_held_and_was_not_followed_is_a_mismatch() -> None:
    state = service()
    tell(state, state_record(*JOINING, given=IN_PLACE))
    first = decided(state, 1, *JOINING, at_ms=START_MS)
    assert first.recommendation is not None
    later = START_MS + 5_000
    told = state_record(*JOINING, given=IN_PLACE, reason="moved_since")
    tell(state, told | {"follower": basis(newest=first.recommendation.decision_id)}, later)
    exact = decided(state, 2, *JOINING, at_ms=later).exact
    assert exact.leader.result == "mismatch"
    assert exact.leader.why == "its rules lead to followed, but it decided moved_since"

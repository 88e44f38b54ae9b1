"""What a generation was decided from, and which of it is not certain enough to matter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from caughtup.models.assignment.compact import scenario_record
from caughtup.models.assignors.registry import decide
from caughtup.models.decisions.inputs.gathering import (
    CLOCK_ALLOWANCE_MS,
    GenerationInputs,
    gather_inputs,
)
from caughtup.models.histories.offset_sums import EndOffsetSum
from caughtup.models.histories.rebalance_ends import ListedBounds
from caughtup.models.ids import TaskId, TopicPartition
from caughtup.models.parameters import DEFAULTS, ApplicationParameters
from caughtup.models.records.fields import json_values
from caughtup.models.state.cluster import ClusterState
from tests.support.groups.records import GROUP, SOURCE, START_MS, commit
from tests.support.groups.streams import (
    CHANGELOG,
    HANDING_OVER,
    RUNNING,
    WARMING,
    Member,
    generation,
    process,
)
from tests.support.states import TOLD, cluster_state, list_ends, read, state_with_ends

UNKNOWN = -3


def gather(
    state: ClusterState, *members: Member, parameters: ApplicationParameters = TOLD
) -> GenerationInputs:
    """Gather the inputs of a generation that is read in the moment in which it began."""
    read(state, generation(7, *members))
    newest = state.applications[GROUP].newest
    return gather_inputs(newest, parameters, state.ends, state.commits.of(GROUP), START_MS)


def between(
    low: int, high: int, sums: Mapping[int, int], limit: int = 100, owner: int = RUNNING
) -> GenerationInputs:
    """Inputs of one task whose end lay between two offsets.

    ``sums``: process → offset sum; ``owner``: that of the client that has the task.
    """
    state = cluster_state()
    list_ends(state, {0: low}, at_ms=START_MS - CLOCK_ALLOWANCE_MS)
    list_ends(state, {0: high}, at_ms=START_MS + 1)
    parameters = replace(TOLD, config={**DEFAULTS, "acceptable.recovery.lag": limit})
    members = (
        Member(f"c{number}", number, sums={"0_0": reported} if reported else {})
        for number, reported in sums.items()
    )
    first = Member("owner", 9, ("0_0",), {"0_0": owner}, ("0_0",))
    return gather(state, first, *members, parameters=parameters)


def test_the_scenario_says_what_the_wire_says() -> None:
    state = state_with_ends()
    inputs = gather(state, *HANDING_OVER)
    assert (inputs.unknown, inputs.inferred, inputs.assumed) == ((), (), ())
    assert inputs.changelogs_from == "settings"
    scenario = json_values(scenario_record(inputs.scenario))
    assert scenario["name"] == "orders/7"
    assert scenario["config"] == DEFAULTS
    assert scenario["tasks"]["0_1"] == {
        "stateful": True,
        "source_partitions": [["orders-in", 1]],
        "changelog_partitions": [[CHANGELOG, 1]],
    }
    assert scenario["greatest_lags"] == {"0_0": 50_000, "0_1": 50_000}
    assert scenario["clients"][str(process(2))] == {
        "capacity": 1,
        "tags": {},
        "previous_active": [],
        "previous_standby": ["0_1"],
        "lags": {"0_1": 5_000},
    }
    assert scenario["clients"][str(process(1))]["lags"] == {"0_0": RUNNING, "0_1": RUNNING}


def test_threads_of_one_process_are_one_client() -> None:
    state = state_with_ends()
    inputs = gather(
        state,
        Member("a", 1, ("0_0",), {"0_0": RUNNING}, ("0_0",), tags={"zone": "x"}),
        Member("a", 1, ("0_1",), {"0_1": 7}, ("0_1",), thread=2, tags={"zone": "x"}),
    )
    (client,) = json_values(scenario_record(inputs.scenario))["clients"].values()
    assert client["capacity"] == 2
    assert client["tags"] == {"zone": "x"}
    assert client["previous_active"] == ["0_0", "0_1"]
    assert client["lags"] == {"0_0": RUNNING, "0_1": 49_993}


def test_of_threads_that_report_the_same_task_the_one_counts_that_the_leader_reads_last() -> None:
    """The leader reads members as its HashMap has them: here, the second thread first."""
    state = state_with_ends()
    first = Member("a", 1, sums={"0_0": 7}, active=("0_0",))
    inputs = gather(state, first, Member("a", 1, sums={"0_0": 9}, thread=2))
    (client,) = json_values(scenario_record(inputs.scenario))["clients"].values()
    assert client["lags"] == {"0_0": 49_993}


def test_a_restoring_active_was_no_standby() -> None:
    state = state_with_ends()
    inputs = gather(state, Member("a", 1, ("0_1",), {"0_0": 5, "0_1": 7}, ("0_1",)))
    (client,) = json_values(scenario_record(inputs.scenario))["clients"].values()
    assert (client["previous_active"], client["previous_standby"]) == (["0_1"], ["0_0"])


def test_a_source_that_serves_as_changelog_ends_where_the_application_has_committed() -> None:
    """KAFKA-10085: the log's end would tell of lag that no store has."""
    state = cluster_state()
    list_ends(state, {0: 50_000, 1: 50_000}, at_ms=START_MS + 60_000, topic=SOURCE)
    read(state, commit(0, 700, at_ms=START_MS - 60_000), commit(1, 40, at_ms=START_MS))
    inputs = gather(
        state,
        Member("a", 1, ("0_0", "0_1"), {"0_0": RUNNING, "0_1": 30}, ("0_0", "0_1")),
        parameters=replace(TOLD, changelogs={0: (SOURCE,)}),
    )
    assert list(inputs.ends.values()) == [EndOffsetSum(700, 700), EndOffsetSum(30, 40)]
    (client,) = json_values(scenario_record(inputs.scenario))["clients"].values()
    assert client["lags"] == {"0_0": RUNNING, "0_1": 10}
    assert inputs.unknown == ()


@pytest.mark.parametrize(
    ("low", "high", "sums", "settled"),
    [
        pytest.param(1_000, 1_000, {1: 900, 2: 899}, True, id="the end is known exactly"),
        pytest.param(1_000, 1_050, {1: 500, 2: 0}, True, id="nobody near the threshold"),
        pytest.param(1_000, 1_050, {1: 1_000, 2: 0}, True, id="caught up whatever the end"),
        pytest.param(1_000, 1_050, {1: 950}, True, id="at the threshold, still caught up"),
        pytest.param(1_000, 1_051, {1: 950}, False, id="crosses the threshold by one"),
        pytest.param(1_000, 1_050, {1: 900}, False, id="crosses it from the first offset"),
        pytest.param(1_000, 1_050, {1: 899}, True, id="behind it already"),
        pytest.param(50, 150, {1: 0}, False, id="an empty copy, of a short log"),
        pytest.param(1_000, 1_050, {1: UNKNOWN}, True, id="an unknown copy is never caught up"),
    ],
)
def test_an_end_matters_only_where_it_decides_who_is_caught_up(
    low: int, high: int, sums: dict[int, int], settled: bool
) -> None:
    inputs = between(low, high, sums)
    assert list(inputs.ends.values()) == [EndOffsetSum(low, high)]
    doubt = f"task 0_0: its end offset sum when the leader decided, between {low} and {high}"
    assert inputs.unknown == (() if settled else (doubt,))


def test_where_all_clients_stand_alike_the_end_decides_nothing() -> None:
    state = cluster_state()
    list_ends(state, {0: 50}, at_ms=START_MS - CLOCK_ALLOWANCE_MS)
    list_ends(state, {0: 50_000}, at_ms=START_MS + 1)
    inputs = gather(state, Member("a", 1, active=("0_0",)), Member("b", 2))
    assert inputs.ends[next(iter(inputs.ends))] == EndOffsetSum(50, 50_000)
    assert inputs.unknown == ()


def test_a_copy_of_a_recreated_changelog_leaves_the_end_in_doubt() -> None:
    """Its lag is all that the new log holds, which lies on either side of the threshold."""
    assert len(between(50, 150, {1: 9_000}).unknown) == 1
    assert len(between(300, 900, {1: 9_000, 2: 500}).unknown) == 1
    assert between(300, 900, {1: 9_000}).unknown == ()


def test_an_accepted_lag_without_bound_makes_every_end_alike() -> None:
    assert between(0, 1 << 40, {1: 5}, limit=(1 << 63) - 1).unknown == ()


sums = st.sampled_from([RUNNING, UNKNOWN, 0]) | st.integers(0, 700)


@settings(print_blob=True, deadline=None)
@given(
    st.dictionaries(st.integers(1, 4), sums, min_size=1, max_size=4),
    sums,
    st.integers(0, 300),
    st.integers(0, 100),
)
@example({1: 200, 2: 150}, RUNNING, 100, 100)
@example({1: 9_000, 2: 150}, 0, 100, 100)
def test_a_settled_end_leads_to_one_decision_wherever_it_lay(
    reported: dict[int, int], owner: int, low: int, growth: int
) -> None:
    inputs = between(low, low + growth, reported, owner=owner)
    if inputs.unknown:
        return
    decisions = []
    bound = next(iter(inputs.ends.values()))
    assert bound is not None
    for end in range(bound.low, bound.high + 1):
        decided = decide(between(end, end, reported, owner=owner).scenario.expanded())
        decisions.append(decided.to_dict())
    assert decisions[1:] == decisions[:-1]


def test_a_brokers_clock_a_little_ahead_of_ours_is_allowed_for() -> None:
    state = cluster_state()
    list_ends(state, {0: 10}, at_ms=START_MS - CLOCK_ALLOWANCE_MS - 1)
    list_ends(state, {0: 20}, at_ms=START_MS - 1)
    list_ends(state, {0: 30}, at_ms=START_MS)
    inputs = gather(state, Member("a", 1, active=("0_0",)))
    assert list(inputs.ends.values()) == [EndOffsetSum(10, 30)]


def test_what_was_told_by_nobody_is_named_as_assumed_and_inferred() -> None:
    state = state_with_ends()
    inputs = gather(state, *WARMING, parameters=ApplicationParameters())
    assert inputs.assumed == tuple(sorted(DEFAULTS))
    assert inputs.inferred == (f"{CHANGELOG} belongs to subtopology 0: only it has 2 partitions",)
    assert inputs.changelogs_from == "inferred"


def test_state_without_a_known_changelog_is_in_doubt() -> None:
    parameters = replace(TOLD, changelogs={})
    inputs = gather(cluster_state(), *HANDING_OVER, parameters=parameters)
    assert inputs.unknown == tuple(
        f"task {task}: it has state, but no changelog is known" for task in ("0_0", "0_1")
    )
    assert all(not task.stateful for task in inputs.scenario.tasks.values())


def test_a_changelog_that_fits_nowhere_is_in_doubt() -> None:
    state = cluster_state()
    list_ends(state, {0: 5}, at_ms=START_MS)
    inputs = gather(
        state, Member("a", 1, active=("0_0",)), parameters=replace(TOLD, changelogs=None)
    )
    assert inputs.unknown == (f"changelog {CHANGELOG}: the subtopology that it belongs to",)


def test_a_member_that_cannot_be_read_is_in_doubt() -> None:
    state = state_with_ends()
    inputs = gather(state, WARMING[0], Member("b", 2, user_data=b"\x00\x00\x00\x63"))
    (doubt,) = inputs.unknown
    assert doubt.startswith("member left out: b-StreamThread-1-consumer: unknown_version")
    assert list(inputs.scenario.clients) == [process(1)]


@pytest.mark.parametrize("ahead_ms", [-600_000, -5_000, 0, 900, 3_000, 600_000])
def test_the_clock_of_the_coordinator_may_be_minutes_off(ahead_ms: int) -> None:
    """The leader listed 40 offsets, half a second before its record was read."""
    state = cluster_state()
    for second in range(-40, 2):
        at_ms = START_MS + 1_000 * second
        list_ends(state, {0: 41 + second}, at_ms=at_ms)
    read(state, generation(7, Member("a", 1, ("0_0",), {"0_0": RUNNING}, ("0_0",))))
    newest = state.applications[GROUP].newest
    stated = replace(newest, as_of_ms=START_MS - 800 + ahead_ms)
    inputs = gather_inputs(stated, TOLD, state.ends, {}, START_MS)
    bound = inputs.ends[TaskId(0, 0)]
    assert bound is not None
    assert bound.low <= 40 <= bound.high
    assert bound.high == 41


def test_what_was_listed_while_the_group_rebalanced_narrows_the_bounds() -> None:
    state = cluster_state()
    list_ends(state, {0: 10, 1: 10}, at_ms=START_MS - 5_000)
    list_ends(state, {0: 90, 1: 90}, at_ms=START_MS + 1)
    read(state, generation(7, *WARMING))
    newest = state.applications[GROUP].newest
    first = TopicPartition(CHANGELOG, 0)
    for listed, expected in (
        (ListedBounds(40, 45), EndOffsetSum(40, 45)),
        (ListedBounds(None, 45), EndOffsetSum(10, 45)),
        (ListedBounds(40, None), EndOffsetSum(40, 90)),
        (ListedBounds(95, 99), EndOffsetSum(10, 90)),  # from before the topic was recreated
    ):
        given = {first: listed}
        no_state = replace(
            newest,
            clients={
                process: replace(
                    one, members=tuple(replace(m, offset_sums={}) for m in one.members)
                )
                for process, one in newest.clients.items()
            },
        )
        inputs = gather_inputs(no_state, TOLD, state.ends, {}, START_MS, listed=given)
        assert inputs.ends == {TaskId(0, 0): expected, TaskId(0, 1): EndOffsetSum(10, 90)}

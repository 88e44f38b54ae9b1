"""A streams group of two instances, played from how its coordinator has it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from caughtup.models.errors import ScenarioError
from caughtup.models.groups.streams import StreamsGroup
from caughtup.models.ids import TaskId
from caughtup.models.simulation.streams.plan import PlannedActions
from caughtup.models.simulation.streams.topology import AssignmentProtocol
from caughtup.models.state.cluster import ClusterState
from caughtup.models.what_if.question import ask
from caughtup.models.what_if.safety import safe_to_stop
from caughtup.models.what_if.setting import AS_IT_IS, WhatIfSetting
from caughtup.models.what_if.streams_group import BrokerAssignedGroup, streams_group_of
from tests.support.groups.broker_assigned import (
    NOW_MS,
    PROCESSES,
    TOPOLOGY,
    state_of,
    streams_group,
)


def read(group: StreamsGroup, partitions: int = 4) -> BrokerAssignedGroup | None:
    rates = (1_000.0, 1_000.0)
    return streams_group_of(state_of(group, partitions), "orders", NOW_MS, rates)


def playable(standbys: int = 1) -> BrokerAssignedGroup:
    found = read(streams_group(standbys))
    assert found is not None
    return found


def test_it_begins_as_it_is() -> None:
    group = playable()
    a, b = group.running(group.application(AS_IT_IS, 1_000.0))
    assert (a.name, b.name) == ("a", "b")
    assert str(a.process) == PROCESSES["a"]
    assert a.threads[0].active == (TaskId(0, 0), TaskId(0, 1))
    assert b.threads[0].standby == (TaskId(0, 0), TaskId(0, 1))
    assert a.offset_sums == {TaskId(0, 2): 9_000, TaskId(0, 3): 9_000}


def test_nothing_happens_to_it_of_its_own_accord() -> None:
    answer = ask(playable(), PlannedActions(), AS_IT_IS)
    assert answer.slow.figures.copies_built == answer.slow.figures.rebalances == 0


@pytest.mark.parametrize(("standbys", "copies"), [(1, 0), (0, 2)])
def test_what_one_that_leaves_ran_goes_to_its_standbys_or_is_restored(
    standbys: int, copies: int
) -> None:
    answer = ask(playable(standbys), PlannedActions(stop=("b",), leave_group=True), AS_IT_IS)
    assert answer.slow.figures.copies_built == copies
    assert (answer.slow.figures.longest_still_ms >= 18_000) == bool(copies)


@pytest.mark.parametrize(("standbys", "safe"), [(1, True), (0, False)])
def test_whether_an_instance_can_go_depends_on_its_standbys(standbys: int, safe: bool) -> None:
    found = safe_to_stop(
        playable(standbys),
        "b",
        within_ms=15_000,
        setting=AS_IT_IS,
        etas_ms={},
        leave_group=True,
    )
    assert (found.safe, found.known) == (safe, True)
    lacking = "0_2's only caught-up copy is here, and no other one is being built"
    assert safe or found.reason == lacking


@pytest.mark.parametrize(
    ("etas_ms", "reason", "safe_in_ms"),
    [
        ({}, "0_2's only caught-up copy is here; its standby is behind, and it is not known", None),
        ({2: 5_000, 3: 7_000}, "0_3's only caught-up copy is here; its standby is caught", 7_000),
    ],
)
def test_a_standby_that_is_behind_is_being_built(
    etas_ms: dict[int, int], reason: str, safe_in_ms: int | None
) -> None:
    group = playable()
    rows = [replace(row, offset_sum=0) if row.role == "standby" else row for row in group.rows]
    found = safe_to_stop(
        replace(group, rows=tuple(rows), changelogs=dict.fromkeys(group.changelogs, 90_000)),
        "b",
        within_ms=1_000,
        setting=AS_IT_IS,
        etas_ms={(PROCESSES["a"], TaskId(0, task)): eta for task, eta in etas_ms.items()},
        leave_group=True,
    )
    assert found.reason.startswith(reason)
    assert (found.safe, found.safe_in_ms) == (False, safe_in_ms)


def test_its_configs_can_be_changed_and_its_protocol_not() -> None:
    more = playable(0).application(WhatIfSetting(config=(("num.standby.replicas", 1),)), 1_000.0)
    assert (more.configs.num_standby_replicas, more.protocol) == (1, AssignmentProtocol.STREAMS)
    for setting in (
        WhatIfSetting(protocol=AssignmentProtocol.CLASSIC),
        WhatIfSetting(eager=True),
        WhatIfSetting(assignor="sticky"),
        WhatIfSetting(static_members=True),
    ):
        with pytest.raises(ScenarioError):
            playable().application(setting, 1_000.0)


def test_a_group_whose_topics_are_not_known_or_without_members_is_none() -> None:
    state = ClusterState("cluster-1", {})
    state.groups.streams["orders"] = streams_group()
    assert streams_group_of(state, "orders", NOW_MS) is None
    state.groups.streams["orders"] = StreamsGroup()
    assert streams_group_of(state, "orders", NOW_MS) is None
    assert streams_group_of(state, "nobody", NOW_MS) is None


@pytest.mark.parametrize("number", ["1", "00"])
def test_a_group_whose_members_have_tasks_of_another_topology_is_none(number: str) -> None:
    group = streams_group()
    (subtopology,) = TOPOLOGY.subtopologies
    group.topology = replace(TOPOLOGY, subtopologies=(replace(subtopology, subtopology_id=number),))
    assert read(group) is None


def test_a_group_whose_members_have_tasks_of_partitions_that_are_not_known_is_none() -> None:
    assert read(streams_group(), partitions=3) is None
    assert read(streams_group(), partitions=5) is not None

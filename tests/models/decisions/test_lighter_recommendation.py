"""A recommendation that is too large leaves out what no follower reads, says so, and stays ours."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from caughtup.models.assignors.following.recommendation import read_followed
from caughtup.models.decisions.lighter_recommendation import lighter_recommendations
from caughtup.models.decisions.recommendation import read_recommendation
from caughtup.models.errors import ScenarioError
from caughtup.models.ids import TaskId
from caughtup.models.tasks.positions import CopyKey, TaskPosition
from tests.support.streams import (
    GROUP,
    START_MS,
    WARMING,
    cluster_state,
    generation,
    known_ends,
    process,
    read,
)

PARTS = [
    "inputs.scenario.lags",
    "inputs.scenario.partitions",
    "inputs.end_offset_sums",
    "movements.reason",
    "movements",
]


@pytest.fixture(scope="module")
def record() -> Mapping[str, Any]:
    state = cluster_state()
    known_ends(state)
    read(state, generation(7, *WARMING))
    (record,) = state.decide(START_MS + 20_000)
    return record


def test_it_is_whole_first_and_then_without_one_part_more_each_time(
    record: Mapping[str, Any],
) -> None:
    lighter = list(lighter_recommendations(record))
    assert lighter[0] is record
    assert [one.get("left_out") for one in lighter] == [
        None,
        *(PARTS[: count + 1] for count in range(len(PARTS))),
    ]
    sizes = [len(json.dumps({**one, "left_out": None})) for one in lighter]
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) == len(sizes)
    assert "left_out" not in record


@pytest.mark.parametrize("count", range(len(PARTS) + 1))
def test_a_follower_reads_the_same_in_each(record: Mapping[str, Any], count: int) -> None:
    lighter = json.loads(json.dumps(list(lighter_recommendations(record))[count]))
    assert read_followed(lighter, GROUP) == read_followed(dict(record), GROUP)


@pytest.mark.parametrize("count", range(1, len(PARTS) + 1))
def test_after_a_restart_the_generation_is_not_decided_again(
    record: Mapping[str, Any], count: int
) -> None:
    lighter = json.loads(json.dumps(list(lighter_recommendations(record))[count]))
    inputs, exact = read_recommendation(lighter)
    assert (exact.result, exact.decision) == ("match", None)
    with pytest.raises(ScenarioError, match="is missing"):
        inputs.scenario.expanded()
    state = cluster_state()
    state.applications.apply_published(GROUP, lighter)
    read(state, generation(7, *WARMING))
    assert list(state.decide(START_MS + 60_000)) == []
    decided = state.applications[GROUP].decided
    assert decided is not None
    assert decided.record == lighter
    assert decided.leader_movements is None
    for _ in state.watch_copies(GROUP, START_MS + 61_000):
        pass
    # That a copy has caught up changes nothing: there is nothing to decide from again.
    caught_up = TaskPosition("standby", 5, {}, START_MS + 60_000)
    state.positions.apply(GROUP, CopyKey(str(process(2)), TaskId(0, 1)), caught_up)
    assert list(state.decide(START_MS + 62_000)) == []

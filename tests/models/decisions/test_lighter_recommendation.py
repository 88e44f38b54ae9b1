"""A recommendation that is too large leaves out what no follower reads, says so, and stays ours."""

from __future__ import annotations

import json
from typing import Any

import pytest

from caughtup.models.assignors.following.recommendation import read_followed
from caughtup.models.decisions.recommendation import (
    MOST_WRITTEN_BYTES,
    encode_recommendation,
    lighter_recommendations,
    recorded_inputs,
)
from caughtup.models.errors import CaughtupError, ScenarioError
from caughtup.models.ids import CopyKey, TaskId
from caughtup.models.records.fields import ABSENT, json_values
from caughtup.models.records.recommendations import RecommendationRecord
from caughtup.models.records.topics import MOST_RECOMMENDATION_BYTES
from caughtup.models.tasks.positions import TaskPosition
from tests.support.decisions import a_recommendation, decided_generation, recommendation_of
from tests.support.groups.records import GROUP, START_MS
from tests.support.groups.streams import WARMING, generation, process
from tests.support.states import cluster_state, read

PARTS = [
    "inputs.scenario.lags",
    "inputs.scenario.partitions",
    "inputs.end_offset_sums",
    "movements.reason",
    "movements",
]


@pytest.fixture(scope="module")
def whole() -> RecommendationRecord:
    return a_recommendation(*WARMING)


def record_of(recommended: RecommendationRecord) -> dict[str, Any]:
    return json_values(recommended)


def test_it_is_whole_first_and_then_without_one_part_more_each_time(
    whole: RecommendationRecord,
) -> None:
    found = list(lighter_recommendations(whole))
    assert found[0] is whole
    lighter = list(map(record_of, found))
    assert [one.get("left_out") for one in lighter] == [
        None,
        *(PARTS[: count + 1] for count in range(len(PARTS))),
    ]
    sizes = [len(json.dumps({**one, "left_out": None})) for one in lighter]
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) == len(sizes)
    assert whole.left_out is ABSENT


@pytest.mark.parametrize("count", range(len(PARTS) + 1))
def test_a_follower_reads_the_same_in_each(whole: RecommendationRecord, count: int) -> None:
    lighter = record_of(list(lighter_recommendations(whole))[count])
    assert read_followed(lighter, GROUP) == read_followed(record_of(whole), GROUP)


@pytest.mark.parametrize("count", range(1, len(PARTS) + 1))
def test_after_a_restart_the_generation_is_not_decided_again(
    whole: RecommendationRecord, count: int
) -> None:
    lighter = recommendation_of(record_of(list(lighter_recommendations(whole))[count]))
    assert lighter.leader.result == "match"
    with pytest.raises(ScenarioError, match="is missing"):
        recorded_inputs(lighter.inputs).scenario.expanded()
    state = cluster_state()
    state.applications.apply_published(GROUP, lighter)
    read(state, generation(7, *WARMING))
    assert list(state.decide(START_MS + 60_000)) == []
    decided = decided_generation(state)
    assert decided.recommendation == lighter
    assert decided.exact.decision is None
    assert decided.leader_movements is None
    for _ in state.watch_copies(GROUP, START_MS + 61_000):
        pass
    # That a copy has caught up changes nothing: there is nothing to decide from again.
    caught_up = TaskPosition("standby", 5, {}, START_MS + 60_000)
    state.positions.apply(GROUP, CopyKey(str(process(2)), TaskId(0, 1)), caught_up)
    assert list(state.decide(START_MS + 62_000)) == []


def test_one_that_fits_is_written_whole(whole: RecommendationRecord) -> None:
    assert json.loads(encode_recommendation(whole)) == record_of(whole)
    assert MOST_WRITTEN_BYTES <= MOST_RECOMMENDATION_BYTES // 2


def test_one_that_does_not_fit_leaves_out_as_much_as_it_has_to(
    whole: RecommendationRecord,
) -> None:
    size = len(encode_recommendation(whole))
    assert json.loads(encode_recommendation(whole, size)).get("left_out") is None
    lighter = encode_recommendation(whole, size - 1)
    assert json.loads(lighter)["left_out"] == ["inputs.scenario.lags"]
    assert len(lighter) < size
    lightest = json.loads(encode_recommendation(whole, 2_350))
    assert lightest["left_out"][-1] == "movements"
    assert lightest["assignment"] == record_of(whole)["assignment"]


def test_one_that_does_not_fit_whatever_is_left_out_is_refused(
    whole: RecommendationRecord,
) -> None:
    with pytest.raises(CaughtupError) as refused:
        encode_recommendation(whole, 100)
    assert refused.value.code == "too_large"
    assert refused.value.message.endswith("bytes, of 100 at most")

"""A recommendation is never larger than its readers take."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from caughtup.agents.recommendations.records import MAX_BYTES, encode
from caughtup.followers.python.kafka import recommendations as follower
from caughtup.models.errors import CaughtupError
from tests.support.streams import START_MS, WARMING, cluster_state, generation, known_ends, read


@pytest.fixture(scope="module")
def record() -> Mapping[str, Any]:
    state = cluster_state()
    known_ends(state)
    read(state, generation(7, *WARMING))
    (record,) = state.decide(START_MS + 20_000)
    return record


def test_one_that_fits_is_written_whole(record: Mapping[str, Any]) -> None:
    assert json.loads(encode(record)) == json.loads(json.dumps(record))
    assert MAX_BYTES <= follower.MAX_BYTES // 2


def test_one_that_does_not_fit_leaves_out_as_much_as_it_has_to(record: Mapping[str, Any]) -> None:
    whole = len(encode(record))
    assert json.loads(encode(record, whole)).get("left_out") is None
    lighter = encode(record, whole - 1)
    assert json.loads(lighter)["left_out"] == ["inputs.scenario.lags"]
    assert len(lighter) < whole
    lightest = json.loads(encode(record, 1_900))
    assert lightest["left_out"][-1] == "movements"
    assert lightest["assignment"] == json.loads(json.dumps(record))["assignment"]


def test_one_that_does_not_fit_whatever_is_left_out_is_refused(record: Mapping[str, Any]) -> None:
    with pytest.raises(CaughtupError) as refused:
        encode(record, 100)
    assert refused.value.code == "too_large"
    assert refused.value.message.endswith("bytes, of 100 at most")

"""A recommendation is never larger than its readers take."""

from __future__ import annotations

import json

import pytest

from caughtup.agents.recommendations.records import MAX_BYTES, encode
from caughtup.followers.python.kafka import recommendations as follower
from caughtup.models.decisions.recommendation import Recommendation
from caughtup.models.decisions.recommendation_fields import recommendation_fields
from caughtup.models.errors import CaughtupError
from tests.support.decisions import a_recommendation
from tests.support.groups.streams import WARMING


@pytest.fixture(scope="module")
def recommended() -> Recommendation:
    return a_recommendation(*WARMING)


def test_one_that_fits_is_written_whole(recommended: Recommendation) -> None:
    assert json.loads(encode(recommended)) == json.loads(
        json.dumps(recommendation_fields(recommended))
    )
    assert MAX_BYTES <= follower.MAX_BYTES // 2


def test_one_that_does_not_fit_leaves_out_as_much_as_it_has_to(recommended: Recommendation) -> None:
    whole = len(encode(recommended))
    assert json.loads(encode(recommended, whole)).get("left_out") is None
    lighter = encode(recommended, whole - 1)
    assert json.loads(lighter)["left_out"] == ["inputs.scenario.lags"]
    assert len(lighter) < whole
    lightest = json.loads(encode(recommended, 2_350))
    assert lightest["left_out"][-1] == "movements"
    assert (
        lightest["assignment"]
        == json.loads(json.dumps(recommendation_fields(recommended)))["assignment"]
    )


def test_one_that_does_not_fit_whatever_is_left_out_is_refused(recommended: Recommendation) -> None:
    with pytest.raises(CaughtupError) as refused:
        encode(recommended, 100)
    assert refused.value.code == "too_large"
    assert refused.value.message.endswith("bytes, of 100 at most")

"""The document's six cases once more, with every round held against the published workers'."""

from __future__ import annotations

import pytest

from caughtup.demo.story.connect.cases import CASES
from tests.models.connect.seed_cases import story
from tests.oracle.connect.comparison import assert_same_rounds
from tests.support.oracles import Oracle

#: They share one JVM.
pytestmark = pytest.mark.xdist_group("connect oracle")


def test_the_documents_cases_are_decided_as_kafka_decides_them(connect_oracle: Oracle) -> None:
    assert assert_same_rounds(connect_oracle, map(story, CASES)) == 6

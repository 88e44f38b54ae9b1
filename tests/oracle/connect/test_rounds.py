"""Rounds of generated Connect groups, decided by the published workers and by ours."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.oracle.conftest import seeds_of_a_family
from tests.oracle.connect.comparison import assert_same_rounds
from tests.oracle.generated.connect_stories import (
    generate_eager_story,
    generate_faulty_story,
    generate_large_story,
    generate_story,
)
from tests.support.oracles import Oracle

#: They share one JVM.
pytestmark = pytest.mark.xdist_group("connect oracle")


@pytest.mark.family("Connect, 14 rounds each")
@seeds_of_a_family(one_of=4)
def test_rounds_are_connects(
    connect_oracle: Oracle, seeds: range, tally: Callable[[int], None]
) -> None:
    tally(assert_same_rounds(connect_oracle, map(generate_story, seeds)))


@pytest.mark.family("Connect, 14 rounds each, generations that fail and work that is run twice")
@seeds_of_a_family(one_of=4)
def test_rounds_after_faults_are_connects(
    connect_oracle: Oracle, seeds: range, tally: Callable[[int], None]
) -> None:
    tally(assert_same_rounds(connect_oracle, map(generate_faulty_story, seeds)))


@pytest.mark.family("Connect, 14 rounds each, dozens of workers")
@seeds_of_a_family(one_of=4)
def test_rounds_of_many_workers_are_connects(
    connect_oracle: Oracle, seeds: range, tally: Callable[[int], None]
) -> None:
    tally(assert_same_rounds(connect_oracle, map(generate_large_story, seeds)))


@pytest.mark.family("Connect, 14 rounds each, eager")
@seeds_of_a_family(one_of=4)
def test_eager_rounds_are_connects(
    connect_oracle: Oracle, seeds: range, tally: Callable[[int], None]
) -> None:
    tally(assert_same_rounds(connect_oracle, map(generate_eager_story, seeds)))

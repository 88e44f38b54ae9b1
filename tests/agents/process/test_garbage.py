"""What is here to stay is frozen when there is more of it, and never again."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from caughtup.agents.process.garbage import FreezeOnGrowth, collect_seldom


@pytest.fixture(autouse=True)
def thawed() -> Iterator[None]:
    gc.unfreeze()  # another test may have caught up with a log in this process
    yield
    gc.unfreeze()


def test_growth_is_frozen_and_nothing_else() -> None:
    freeze = FreezeOnGrowth()
    freeze.reached(999)
    assert gc.get_freeze_count() == 0
    freeze.reached(1_000)
    assert gc.get_freeze_count() > 0
    gc.unfreeze()
    for count in (1_999, 500, 1_000, 1_999):
        freeze.reached(count)
        assert gc.get_freeze_count() == 0
    freeze.reached(2_500)
    assert gc.get_freeze_count() > 0
    gc.unfreeze()
    freeze.reached(3_499)
    assert gc.get_freeze_count() == 0


def test_cycles_are_looked_for_seldom_and_still_found() -> None:
    before = gc.get_threshold()
    try:
        collect_seldom()
        collected = gc.get_stats()[0]["collections"]
        kept: list[list[object]] = [[] for _ in range(5_000)]
        assert gc.get_stats()[0]["collections"] == collected
        for _ in range(20_000):
            cycle: list[object] = []
            cycle.append(cycle)
        assert gc.get_stats()[0]["collections"] > collected
        assert len(kept) == 5_000
    finally:
        gc.set_threshold(*before)

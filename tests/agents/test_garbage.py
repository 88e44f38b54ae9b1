"""What is here to stay is frozen when there is much more of it, and seldom."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from caughtup.agents.garbage import Settling


@pytest.fixture(autouse=True)
def thawed() -> Iterator[None]:
    yield
    gc.unfreeze()


def test_what_has_doubled_is_frozen_and_nothing_else() -> None:
    settling = Settling()
    settling.reached(999)
    assert gc.get_freeze_count() == 0
    settling.reached(1_000)
    assert gc.get_freeze_count() > 0
    gc.unfreeze()
    settling.reached(1_999)
    assert gc.get_freeze_count() == 0
    settling.reached(2_000)
    assert gc.get_freeze_count() > 0

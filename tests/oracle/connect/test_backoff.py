"""How long a leader waits that would take work away again and again, to the millisecond."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest

from caughtup.models.connect.assignors import revocation_backoff_ms
from tests.oracle.conftest import FIRST_SEED
from tests.support.oracles import Oracle

#: They share one JVM.
pytestmark = pytest.mark.xdist_group("connect oracle")

TIMES = 8
EIGHT_HOURS_MS = 8 * 3_600_000


def off_by(oracle: Oracle, longest: Iterable[int]) -> set[int]:
    """Return by how many milliseconds ours are off, for these longest delays."""
    theirs = oracle.ask({"backoffs": list(longest), "times": TIMES})
    return {
        abs(revocation_backoff_ms(number, int(one)) - their)
        for one, delays in theirs.items()
        for number, their in enumerate(delays, start=1)
    }


def test_the_backoff_is_kafkas_for_whole_seconds(connect_oracle: Oracle) -> None:
    assert off_by(connect_oracle, range(0, EIGHT_HOURS_MS, 1_000)) == {0}
    assert off_by(connect_oracle, range(1_200)) == {0}


def test_the_backoff_is_within_a_millisecond_for_any_longest_delay(connect_oracle: Oracle) -> None:
    """Java promises the last bit of neither a logarithm nor a power: one in 14,000 is another."""
    rng = random.Random(FIRST_SEED)
    drawn = (rng.randrange(1 << rng.randint(1, 31)) for _ in range(20_000))
    assert off_by(connect_oracle, [(1 << 31) - 1, *drawn]) <= {0, 1}, f"seed {FIRST_SEED}"

"""The benchmarks' arithmetic; what they measure is measured by running them."""

from __future__ import annotations

import random

from caughtup.bench.freshness import summary


def test_a_percentile_is_the_smallest_measurement_that_so_many_do_not_exceed() -> None:
    hundredths = [number / 100 for number in range(1, 201)]
    random.Random(1).shuffle(hundredths)
    assert summary(hundredths) == {
        "commits": 200,
        "median_seconds": 1.005,
        "p90_seconds": 1.8,
        "p99_seconds": 1.98,
        "max_seconds": 2.0,
    }


def test_of_one_measurement_everything_is_that_one() -> None:
    assert set(summary([0.25]).values()) == {1, 0.25}

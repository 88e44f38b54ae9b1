"""Simulated reassignments: times to go from half-way on, against when they really ended."""

from __future__ import annotations

import random

import pytest

from tests.simulation.healthy_reassignments import lone_reassignment
from tests.simulation.observer import Observer
from tests.support.sizes import daily

REASSIGNMENTS = daily(2, 12)
#: What comes on top of a copy: the ISR is joined within two seconds, and observed once a poll.
JOIN_SECONDS = 2.0


@pytest.mark.parametrize("throttle", [None, 1_500_000, 5_000_000, 10_000_000])
def test_from_half_way_on_times_to_go_are_within_a_quarter_of_the_truth(
    throttle: int | None,
) -> None:
    """In 19 of 20 observations: what chance deals out behind a throttle in the rest nobody can know."""
    good = told = observations = 0
    worst = (0.0, "")
    for seed in range(REASSIGNMENTS):
        chance = random.Random(f"{seed} {throttle}")
        cluster, reassignment = lone_reassignment(chance, throttle)
        observer = Observer(cluster, chance)
        seen = list(observer.run(4 * 3_600_000))
        assert reassignment.ended_ms is not None
        for judged in seen:
            if judged.now_ms < reassignment.ended_ms / 2:
                continue
            observations += 1
            eta = judged.figures.eta
            if eta is None:
                continue
            told += 1
            truth = (reassignment.ended_ms - judged.now_ms) / 1000
            error = abs(eta.seconds - truth)
            allowed = 0.25 * truth + JOIN_SECONDS + observer.interval_ms / 1000
            good += error <= allowed
            worst = max(worst, (error / allowed, f"seed {seed}: {eta.seconds:.0f} s for {truth} s"))
    print(f"throttle {throttle}: {good} of {told} good, {observations} observations; worst {worst}")
    assert told >= 0.95 * observations
    assert good >= 0.95 * told, worst

"""Who follows a recommendation builds the copies that it named, however long that takes."""

from __future__ import annotations

import random

import pytest

from tests.support.simulation.followed_group import FollowedGroup


@pytest.mark.parametrize(
    "seed", [*range(12), *(pytest.param(n, marks=pytest.mark.thorough) for n in range(12, 200))]
)
def test_no_copy_is_begun_for_nothing(seed: int) -> None:
    rng = random.Random(seed)
    processes = rng.randint(2, 5)
    group = FollowedGroup(
        seed,
        tasks=rng.randint(processes, 30),
        processes=processes,
        config={
            "num.standby.replicas": rng.choice((0, 0, 1)),
            "max.warmup.replicas": rng.choice((1, 2, 8)),
        },
    )
    group.settle()
    group.begun.clear()
    group.add()
    group.settle()
    joined = next(r for r in group.records if len(r["process_ids"]) == processes + 1)
    held = {
        (number, task)
        for number, one in group.processes.items()
        for task in one.active | one.standby
    }
    assert set(group.begun) <= held, f"seed {seed}"
    assert len(group.begun) == len(set(group.begun)) == joined["cost"]["copies"], f"seed {seed}"

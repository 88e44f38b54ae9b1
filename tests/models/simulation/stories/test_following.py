"""Who follows a recommendation builds the copies that it named, however long that takes."""

from __future__ import annotations

import random

import pytest

from tests.support.simulation.followed_group import FollowedGroup

#: In some of these a service that doesn't know what was begun recommends others, while tasks are
#: held back or not.
SEEDS = (0, 1, 2, 4, 21, 25, 27, 51)
MORE = [pytest.param(n, marks=pytest.mark.thorough) for n in range(200) if n not in SEEDS]


@pytest.mark.parametrize("seed", [*SEEDS, *MORE])
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


@pytest.mark.parametrize("seed", [0, 3, 7, 10])
def test_a_fourth_process_builds_its_quarter_of_states_that_are_nearly_alike(seed: int) -> None:
    group = FollowedGroup(seed, tasks=24, processes=3, config={"max.warmup.replicas": 8})
    group.settle()
    group.begun.clear()
    group.add()
    group.settle()
    assert len(group.begun) == 6, f"seed {seed}"
    assert {task for _, task in group.begun} == group.processes[4].active

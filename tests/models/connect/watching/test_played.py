"""Groups that are played at random: every generation a match, and what was foreseen comes true."""

from __future__ import annotations

import random

import pytest

from caughtup.models.connect.watching.watch import Watch, follow
from caughtup.models.connect.work import Item, written
from tests.support.connect.playing import Group
from tests.support.sizes import daily

SEEDS = range(daily(24, 60))
ROUNDS = 25


def change(group: Group, dice: random.Random, away: list[str]) -> None:
    """Do something to a group, or let time pass."""
    what = dice.choice(["join", "leave", "back", "more", "fewer", "time", "time", "rest"])
    if what == "join" and len(group.members) < 6:
        group.join(f"W{group._joined + 10}")
    elif what == "leave" and len(group.members) > 1:
        worker = dice.choice([*group.members])
        group.leave(worker)
        away.append(worker)
    elif what == "back" and away:
        group.join(away.pop(dice.randrange(len(away))))
    elif what in ("more", "fewer"):
        connector = dice.choice("ABCDE")
        if what == "more":
            group.connectors[connector] = dice.randrange(1, 5)
        else:
            group.connectors.pop(connector, None)
        group.config_offset += 1


@pytest.mark.parametrize("seed", SEEDS)
def test_every_generation_is_a_match_and_what_was_foreseen_comes_true(seed: int) -> None:
    dice = random.Random(seed)
    group = Group({"A": 3, "B": 2, "C": 1}, dice.choice([0, 1_000, 60_000, 300_000]))
    group.join("W1", "W2", "W3")
    away: list[str] = []
    watch: Watch | None = None
    for _ in range(ROUNDS):
        changed = watch is None or dice.random() < 0.6
        if changed:
            change(group, dice, away)
            group.now_ms += dice.choice([10, 1_000, 50_000, 400_000])
        elif watch is not None and watch.forecast.at_ms is not None:
            group.now_ms = max(group.now_ms, watch.forecast.at_ms)
        generation, decision = group.round(clock_ms=dice.choice([0, -3, 40]))
        if watch is not None and not changed:
            assert foreseen(watch, generation) == {}, seed
        watch = follow(watch, generation, group.connectors)
        assert (watch.comparison.result, watch.comparison.why) == ("match", ""), (
            seed,
            generation.generation,
        )
        assert written(watch.unassigned) == written(decision.unassigned)


def foreseen(watch: Watch, generation) -> dict[Item, tuple[str, str | None]]:
    """Return what nobody had and went to another worker than was foreseen."""
    goes = {}
    for name, worker in generation.workers.items():
        for item in (*worker.assignment.assigned.connectors, *worker.assignment.assigned.tasks):
            goes[item] = name
    stopped = {
        item
        for worker in generation.workers.values()
        for item in (*worker.assignment.revoked.connectors, *worker.assignment.revoked.tasks)
    }
    return {
        item: (name, goes.get(item))
        for item, name in watch.forecast.goes_to.items()
        if item in goes and item not in stopped and goes[item] != name
    }

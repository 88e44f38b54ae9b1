"""Follow-ups become rare while they bring nothing, whatever it is that is recommended."""

from __future__ import annotations

import random
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest

from caughtup.models.assignment.scenario import parse_scenario
from caughtup.models.assignors.following.follower import (
    FollowerDecision,
    FollowUpCounter,
    Patience,
    backoff_ms,
    follow,
)
from caughtup.models.ids import ProcessId, TaskId
from tests.models.assignors.following.test_follower import one_runs_all, recommended
from tests.support.oracles import Oracle

ONE, TWO = ProcessId(0, 1), ProcessId(0, 2)
ZERO, FIRST = TaskId(0, 0), TaskId(0, 1)
NOTHING: Mapping[ProcessId, list[TaskId]] = {ONE: [ZERO], TWO: []}
INTERVAL_MS = 600_000


def came_to(decision_id: str | None, follow_up_ms: int | None = 5_000) -> FollowerDecision:
    return FollowerDecision(
        "followed" if decision_id else "none", decision_id, {}, {}, follow_up_ms
    )


def test_only_rebalances_that_waiting_brought_are_counted() -> None:
    waiting = FollowUpCounter(Patience(follow_up_ms=1_000, follow_ups=2))
    counts = []
    for now_ms in (0, 100, 1_100, 1_200, 2_200, 3_300):
        waiting.begin(NOTHING, now_ms)
        waiting.count(came_to(None), now_ms)
        counts.append(waiting.waited)
    assert counts == [1, 1, 2, 2, 2, 2]
    waiting.begin({TWO: []}, 3_400)
    assert waiting.waited == 0


def test_a_recommendation_that_is_followed_ends_the_waiting() -> None:
    waiting = FollowUpCounter(Patience(follow_up_ms=1_000))
    waiting.begin(NOTHING, 0)
    waiting.count(came_to(None), 0)
    assert waiting.waited == 1
    waiting.count(came_to("a"), 1_000)
    assert waiting.waited == 0


def test_another_name_each_time_does_not_bring_follow_ups_sooner() -> None:
    """As long as nothing comes of them they are ever rarer, to the probing interval."""
    now_ms = 0.0
    waiting = FollowUpCounter(Patience())
    found = one_runs_all()
    moments = []
    while now_ms < 2 * 3_600_000:
        moments.append(now_ms)
        waiting.begin(NOTHING, now_ms)
        newest = recommended(
            found,
            {1: (("0_0", "0_1"), ()), 2: ((), ())},
            decision_id=f"forged-{len(moments)}",
            probing_rebalance={"needed": True, "worthwhile_at_ms": 0},
        )
        decision = follow(parse_scenario(found), newest, repeated=waiting.repeated)
        assert decision.reason == "followed"
        waiting.count(decision, now_ms)
        assert decision.follow_up_ms is not None
        now_ms += decision.follow_up_ms
    gaps = [later - sooner for sooner, later in pairwise(moments)]
    doubled = [5_000, 5_000, 10_000, 20_000, 40_000, 80_000, 160_000, 320_000]
    assert gaps == doubled + [INTERVAL_MS] * (len(gaps) - len(doubled))
    assert len(moments) == 19


def test_what_is_refused_in_between_comes_no_sooner() -> None:
    waiting = FollowUpCounter(Patience())
    for number, now_ms in enumerate(range(0, 40_000, 5_000)):
        waiting.begin(NOTHING, now_ms)
        waiting.count(came_to("d" if number % 2 else None), now_ms)
    assert waiting.repeated == 2
    kept = follow(
        parse_scenario(one_runs_all()),
        recommended(one_runs_all(), {1: (("0_0",), ()), 2: ((), ())}),
        repeated=waiting.repeated,
    )
    assert (kept.reason, kept.follow_up_ms) == ("missing_task", 20_000)


def test_a_copy_that_is_caught_up_for_the_first_time_is_news_and_one_that_was_is_none() -> None:
    waiting = FollowUpCounter(Patience())
    ready = {ONE: [ZERO], TWO: [FIRST]}
    repeated = []
    for now_ms, caught_up in ((0, NOTHING), (5, NOTHING), (10, ready), (15, NOTHING), (20, ready)):
        for again in range(3):
            waiting.begin(caught_up, 1_000 * (now_ms + again))
            waiting.count(came_to("d", 1_000), 1_000 * (now_ms + again))
        repeated.append(waiting.repeated)
    assert repeated == [1, 4, 1, 4, 7]


def test_a_rebalance_that_others_brought_before_the_follow_up_is_not_counted() -> None:
    waiting = FollowUpCounter(Patience())
    for now_ms in (0, 2_400, 4_800, 7_200):
        waiting.begin(NOTHING, now_ms)
        waiting.count(came_to("d"), now_ms)
    assert waiting.repeated == 0
    for now_ms in (9_700, 12_200, 14_700):
        waiting.begin(NOTHING, now_ms)
        waiting.count(came_to("d"), now_ms)
    assert waiting.repeated == 2


@pytest.mark.parametrize(
    ("first_ms", "repeated", "later"),
    [(5_000, 0, 5_000), (5_000, 3, 40_000), (5_000, 30, INTERVAL_MS), (1 << 62, 50, INTERVAL_MS)],
)
def test_times_are_doubled_to_the_probing_interval(
    first_ms: int, repeated: int, later: int
) -> None:
    assert backoff_ms(first_ms, INTERVAL_MS, repeated) == later


def generated_rebalances(seed: int) -> dict[str, Any]:
    """Make a sequence of rebalances: copies catch up and are lost, processes come and go."""
    rng = random.Random(seed)
    processes = [str(ProcessId(0, number)) for number in range(4)]
    now_ms, there = 0, processes[:3]
    rebalances = []
    for _ in range(40):
        now_ms += rng.choice([0, 100, 499, 500, 501, 1_000, 5_000])
        if rng.random() < 0.05:
            there = rng.sample(processes, rng.randint(1, 4))
        rebalances.append(
            {
                "now_ms": now_ms,
                "ready": {
                    one: [f"0_{task}" for task in range(4) if rng.random() < 0.3] for one in there
                },
                "followed": rng.random() < 0.7,
                "follow_up_ms": rng.choice([None, 1_000, 1_000, 3_000]),
            }
        )
    return {"patience": [1_000, 900_000, rng.choice([0, 2, 3])], "rebalances": rebalances}


def test_java_and_python_count_alike(follower_oracle: Oracle) -> None:
    most = 0
    for seed in range(300):
        question = generated_rebalances(seed)
        waiting = FollowUpCounter(Patience(*question["patience"]))
        counts = []
        for one in question["rebalances"]:
            ready = {
                ProcessId.parse(process): [TaskId.parse(task) for task in tasks]
                for process, tasks in one["ready"].items()
            }
            waiting.begin(ready, one["now_ms"])
            counts.append([waiting.waited, waiting.repeated])
            decision = came_to("d" if one["followed"] else None, one["follow_up_ms"])
            waiting.count(decision, one["now_ms"])
        assert follower_oracle.ask(question)["counts"] == counts, f"seed {seed}"
        most = max(most, *(repeated for _, repeated in counts))
    # Otherwise the seeds say little.
    assert most > 5

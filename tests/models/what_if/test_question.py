"""Plans played on a group as it was read: two clients, of which ``b`` warms up 0_1 for ``a``."""

from __future__ import annotations

from dataclasses import replace

import pytest

from caughtup.models.assignors.following.follower import Patience
from caughtup.models.decisions.exact.comparison import FOLLOWER
from caughtup.models.errors import ScenarioError
from caughtup.models.ids import TaskId
from caughtup.models.records.fields import changed
from caughtup.models.simulation.streams.plan import PlannedActions
from caughtup.models.simulation.streams.run import RunningInstance
from caughtup.models.what_if.question import (
    LeaderAssignedGroup,
    UnknownClientError,
    ask,
    best_plans,
    group_of,
)
from caughtup.models.what_if.safety import safe_to_stop
from caughtup.models.what_if.setting import AS_IT_IS, WhatIfSetting
from tests.support.groups.records import GROUP
from tests.support.states import NOW_MS, everything


def group(*rates: float) -> LeaderAssignedGroup:
    restore = (min(rates), max(rates)) if rates else None
    found = group_of(everything(), GROUP, NOW_MS, restore)
    assert found is not None
    return found


def running(found: LeaderAssignedGroup, rate: float) -> tuple[RunningInstance, ...]:
    """Return a group's instances, if its threads restore so many offsets a second."""
    return found.running(found.application(AS_IT_IS, rate))


def test_a_group_begins_as_it_was_read() -> None:
    a, b = running(group(), 0.0)
    assert (a.name, b.name) == ("a", "b")
    (thread,) = a.threads
    assert [str(task) for task in thread.active] == ["0_0", "0_1"]
    assert {str(task): at for task, at in b.offset_sums.items()} == {"0_1": 0}


def test_a_copy_has_been_restored_since_its_generation_as_fast_as_a_thread_does() -> None:
    found = group()
    later = replace(found, now_ms=found.generation.as_of_ms + 20_000)
    task = TaskId(0, 1)
    for rate, at in ((1_000.0, 20_000), (2_000.0, 40_000), (9_000.0, 50_000)):
        assert running(later, rate)[1].offset_sums == {task: at}
    assert running(replace(later, now_ms=0), 9_000.0)[1].offset_sums == {task: 0}  # clocks differ
    # An application that says itself how far its copies are is believed.
    rows = tuple(
        replace(row, offset_sum=45_000, as_of_ms=later.now_ms - 1_000)
        if row.role == "warmup"
        else row
        for row in later.rows
    )
    assert running(replace(later, rows=rows), 1_000.0)[1].offset_sums == {task: 46_000}


def test_an_application_that_follows_is_played_with_its_follower() -> None:
    found = group(1_000)
    exact = found.decided.exact
    exact = exact._replace(leader=changed(exact.leader, assignor=FOLLOWER))
    follows = replace(found, decided=replace(found.decided, exact=exact))
    own = follows.application(AS_IT_IS, 1_000.0)
    assert (own.assignor, own.follower) == ("minimal_movement", Patience())
    assert (
        follows.application(WhatIfSetting(assignor="high_availability"), 1_000.0).follower is None
    )
    assert found.application(AS_IT_IS, 1_000.0).follower is None


def test_only_an_application_whose_leader_assigns_can_be_played() -> None:
    assert group_of(everything(), "plain", NOW_MS) is None
    assert group_of(everything(), "nobody", NOW_MS) is None


def test_the_slowest_and_the_fastest_restoring_make_a_range() -> None:
    answer = ask(
        group(1_000, 5_000), PlannedActions(kill=("a",), keep_state=False), WhatIfSetting()
    )
    slow, fast = answer.slow.figures, answer.fast.figures
    # 50,000 offsets of 0_0, and those of 0_1 that the warm-up didn't get before.
    assert slow.longest_still_ms - fast.longest_still_ms >= 40_000
    assert slow.longest_still_ms > 45_000 + 50_000
    assert slow.copies_built == fast.copies_built == 1


def test_where_no_copy_was_seen_to_restore_its_time_is_left_out_and_said_to_be() -> None:
    answer = ask(group(), PlannedActions(kill=("a",), keep_state=False), WhatIfSetting())
    assert not answer.restoring_known
    assert answer.slow.offsets_restored > 0
    assert 45_000 <= answer.slow.figures.longest_still_ms < 60_000


def test_a_client_that_is_not_there_is_refused_by_name() -> None:
    with pytest.raises(UnknownClientError, match="'c' is not among a, b"):
        ask(group(), PlannedActions(stop=("c",)), WhatIfSetting())


@pytest.mark.parametrize(
    ("config", "what"),
    [
        (("num.standby.replicas", -1), "num.standby.replicas"),
        (("probing.rebalance.interval.ms", 10), "probing.rebalance.interval.ms"),
        (("num.standbys", 1), "num.standbys"),
    ],
)
def test_a_config_that_kafka_refuses_is_refused(config: tuple[str, int], what: str) -> None:
    with pytest.raises(ScenarioError, match=what):
        ask(group(), PlannedActions(add=1), WhatIfSetting(config=(config,)))


def test_who_has_nothing_that_counts_can_go_and_who_has_the_only_copy_cannot() -> None:
    asked = {"within_ms": 10_000, "setting": WhatIfSetting(), "leave_group": True}
    b = safe_to_stop(group(1_000), "b", etas_ms={}, **asked)
    assert (b.safe, b.still_ms, b.safe_in_ms) == (True, 0, 0)
    a = safe_to_stop(group(1_000), "a", etas_ms={}, **asked)
    assert not a.safe
    assert a.reason == "0_0's only caught-up copy is here, and no other one is being built"


def test_nobody_is_told_that_it_is_safe_where_nobody_knows_how_long_restoring_takes() -> None:
    asked = {"within_ms": 3_600_000, "setting": WhatIfSetting(), "leave_group": True}
    unknown = safe_to_stop(group(), "a", etas_ms={}, **asked)
    assert (unknown.safe, unknown.known) == (False, False)
    assert safe_to_stop(group(1_000), "a", etas_ms={}, **asked).safe


def test_of_the_best_plans_none_is_beaten_in_both_downtime_and_offsets() -> None:
    plan = PlannedActions(restart=("a", "b"))
    asked, *best = best_plans(group(1_000), plan, WhatIfSetting())
    assert asked.plan == plan
    costs = [(one.slow.figures.longest_still_ms, one.slow.offsets_restored) for one in best]
    assert costs == sorted(costs, key=lambda cost: (cost[0], -cost[1]))
    assert len({offsets for _, offsets in costs}) == len(costs)


def test_a_question_ends_between_two_steps_when_it_is_told_to() -> None:
    found, plan, steps = group(1_000), PlannedActions(stop=("a",)), list[int]()
    ask(found, plan, between_steps=lambda: steps.append(1))
    assert len(steps) > 2
    for last in (1, len(steps)):
        left = list(range(last))

        def end(left: list[int] = left) -> None:
            left.pop()
            if not left:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            ask(found, plan, between_steps=end)

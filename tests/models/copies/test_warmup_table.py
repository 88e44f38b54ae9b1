"""The copies of one application over its generations, read from the bytes of the wire."""

from __future__ import annotations

from dataclasses import replace

import pytest

from caughtup.models.copies.figures import CatchUpRate
from caughtup.models.copies.history import Observation
from caughtup.models.copies.warmup_table import WarmupTable
from caughtup.models.histories.offset_sums import EndOffsetSum
from caughtup.models.ids import CopyKey, TaskId
from caughtup.models.parameters import DEFAULTS, ApplicationParameters
from tests.support.groups.records import GROUP, START_MS, commit
from tests.support.groups.streams import (
    HANDED_OVER,
    HANDING_OVER,
    RUNNING,
    WARMING,
    Member,
    process,
)
from tests.support.simulation.warmups import END, TASK, WARMUP, Service
from tests.support.states import TOLD, read

MINUTE = 60_000


def test_a_warm_up_is_followed_from_its_rebalance_until_it_is_promoted() -> None:
    service = Service()
    service.rebalance(*WARMING)
    (warmup,) = service.assess().values()
    assert (warmup.copy, warmup.role, warmup.is_warmup) == (WARMUP, "warmup", True)
    assert warmup.figures.lag is not None
    assert (warmup.figures.lag.high, warmup.figures.provenance) == (50_000, "reported")
    assert warmup.verdict == "unknown"
    for index in range(1, 9):
        assert service.see(5_000 * index, 5 * index)
        warmup = service.assess(5 * index)[WARMUP]
        assert warmup.verdict == ("warming" if index < 8 else "caught_up")
    assert warmup.caught_up_since_ms == START_MS + 40_000
    service.rebalance(*HANDED_OVER, at_ms=START_MS + MINUTE)
    assert service.assess(60)[WARMUP].role == "restoring"
    read(service.state, commit(1, 10, at_ms=START_MS + 2 * MINUTE))
    service.refresh()
    assert service.assess(120) == {}
    assert not service.see(50_000, 121)


def test_a_copy_that_runs_or_that_nobody_holds_is_none_of_its_business() -> None:
    service = Service()
    service.rebalance(*WARMING)
    assert not service.see(5_000, 1, CopyKey(str(process(1)), TASK))
    assert not service.see(5_000, 1, CopyKey(str(process(9)), TASK))
    assert service.table.watched_tasks() == {TASK}


def test_a_generation_told_twice_is_one_generation() -> None:
    service = Service()
    service.rebalance(*WARMING)
    assert service.see(5_000, 5)
    service.refresh()
    lag = service.assess(5)[WARMUP].figures.lag
    assert lag is not None
    assert lag.high == 45_000


def test_a_copy_that_stays_keeps_its_history_through_a_rebalance() -> None:
    service = Service()
    service.rebalance(*WARMING)
    for index in range(1, 6):
        service.see(2_000 * index, 5 * index)
    service.rebalance(
        WARMING[0], replace(WARMING[1], sums={"0_1": 12_000}), at_ms=START_MS + 30_000
    )
    warmup = service.assess(30)[WARMUP]
    assert warmup.verdict == "warming"
    assert warmup.figures.rate == pytest.approx(400)
    assert warmup.figures.provenance == "reported"


def test_where_no_standbys_are_configured_a_standby_is_a_warm_up() -> None:
    """Without the leader's decision the wire doesn't tell the two apart."""
    undecided = (replace(WARMING[0], probe_at_ms=None), WARMING[1])
    reported = Service()
    reported.rebalance(*undecided)
    assert (reported.assess()[WARMUP].role, reported.assess()[WARMUP].is_warmup) == (
        "standby",
        True,
    )
    assumed = Service(ApplicationParameters(changelogs=TOLD.changelogs))
    assumed.rebalance(*undecided)
    assert not assumed.assess()[WARMUP].is_warmup
    standbys = Service(replace(TOLD, config=dict(DEFAULTS) | {"num.standby.replicas": 1}))
    standbys.rebalance(*undecided)
    assert not standbys.assess()[WARMUP].is_warmup


def test_a_warm_up_that_is_caught_up_while_no_rebalance_is_scheduled_is_stranded() -> None:
    service = Service()
    service.rebalance(replace(WARMING[0], probe_at_ms=None), WARMING[1])
    service.see(45_000, 30)
    assert service.assess(80)[WARMUP].verdict == "caught_up"
    assert service.assess(100)[WARMUP].verdict == "stranded"


def test_a_rate_from_outside_tells_when_a_warm_up_is_there() -> None:
    service = Service()
    service.rebalance(*WARMING)
    service.table.observe_end(TASK, START_MS + 30_000, END)
    rate = CatchUpRate(1_000, 0, MINUTE, START_MS + 10_000)
    service.table.set_rate(WARMUP, rate)
    warmup = service.assess(10)[WARMUP]
    assert (warmup.verdict, warmup.figures.pace) == ("warming", "given")
    assert warmup.figures.eta is not None
    assert warmup.figures.eta.seconds == 30
    service.table.set_rate(WARMUP, None)
    assert service.assess(10)[WARMUP].figures.pace is None


#: The second instance runs a task that it has to restore, and warms up another one.
RESTORING = (
    Member("a", 1, ("0_1",), {"0_1": RUNNING}, ("0_1",), (), START_MS + 10 * MINUTE),
    Member("b", 2, active=("0_0",), standby=("0_1",)),
)
RESTORED = CopyKey(str(process(2)), TaskId(0, 0))


def test_a_warm_up_waits_while_its_thread_restores_an_active_and_is_not_stalled_then() -> None:
    service = Service()
    service.rebalance(*RESTORING)
    for second in range(0, 1_200, 30):
        service.see(40 * second, second, RESTORED)
        service.see(0, second, WARMUP)
    assert service.assess(1_100)[RESTORED].verdict == "warming"
    waiting = service.assess(1_100)[WARMUP]
    assert waiting.verdict == "waiting"
    assert waiting.reason == (
        "50,000 offsets to restore; its stream thread restores its actives first: 0_0"
    )
    service.see(50_000, 1_200, RESTORED)
    service.see(0, 1_200, WARMUP)
    assert service.assess(1_200)[WARMUP].verdict == "unknown"
    service.see(0, 1_900, WARMUP)
    assert service.assess(1_900)[WARMUP].verdict == "stalled"


def test_nobody_waits_for_ever_for_an_active_that_was_not_heard_of() -> None:
    """An active without input never shows that it runs."""
    service = Service()
    service.rebalance(*RESTORING)
    assert service.assess(60)[WARMUP].verdict == "waiting"
    for second in (660, 1_300):
        service.see(0, second, WARMUP)
    assert service.assess(1_300)[WARMUP].verdict == "stalled"


def test_a_copy_that_ran_the_task_until_now_has_everything() -> None:
    service = Service()
    service.rebalance(
        Member("a", 1, ("0_1",), {"0_1": RUNNING}, (), ("0_1",)),
        Member("b", 2, sums={"0_1": 50_000}, active=("0_1",)),
    )
    former = service.assess()[CopyKey(str(process(1)), TASK)]
    assert former.verdict == "caught_up"


def test_a_copy_that_is_lost_and_built_again_twice_is_flapping_for_ten_generations() -> None:
    service = Service()
    without = (WARMING[0], replace(WARMING[1], standby=()))
    at_ms = START_MS
    for _ in range(2):
        service.rebalance(*WARMING, at_ms=at_ms)
        service.rebalance(*without, at_ms=at_ms + MINUTE)
        at_ms += 2 * MINUTE
    service.rebalance(*WARMING, at_ms=at_ms)
    flapping = service.assess((at_ms - START_MS) / 1000)[WARMUP]
    assert flapping.verdict == "flapping"
    assert flapping.reason == "lost and rebuilt 2 times in the last 10 generations"
    for index in range(1, 9):
        service.rebalance(*WARMING, at_ms=at_ms + index * MINUTE)
    assert service.assess((at_ms - START_MS) / 1000 + 480)[WARMUP].verdict != "flapping"


def test_a_copy_that_is_kept_through_many_rebalances_does_not_flap() -> None:
    service = Service()
    for index in range(12):
        service.rebalance(*WARMING, at_ms=START_MS + index * MINUTE)
    assert service.assess(720)[WARMUP].verdict != "flapping"


def test_a_store_that_is_wiped_again_and_again_is_flapping() -> None:
    service = Service()
    service.rebalance(*WARMING)
    for second in range(0, 30, 5):
        service.see(second % 10 * 8_000, second)
    flapping = service.assess(30)[WARMUP]
    assert flapping.verdict == "flapping"
    assert flapping.figures.set_back is not None
    assert (flapping.figures.set_back.before, flapping.figures.set_back.after) == (40_000, 0)


def test_an_unknown_offset_sum_says_nothing_of_a_copy() -> None:
    service = Service()
    service.rebalance(WARMING[0], replace(WARMING[1], sums={"0_1": -3}))
    assert (service.assess()[WARMUP].verdict, service.assess()[WARMUP].figures.lag) == (
        "unknown",
        None,
    )


def test_a_changelog_that_was_recreated_has_new_ends() -> None:
    service = Service()
    service.rebalance(*WARMING)
    service.table.observe_end(TASK, START_MS + 1_000, EndOffsetSum(10, 10))
    service.table.observe(WARMUP, Observation(START_MS + 2_000, lag=4))
    lag = service.assess(2)[WARMUP].figures.lag
    assert lag is not None
    assert lag.high == 4


def test_an_application_that_was_never_told_of_has_nothing_to_assess() -> None:
    assert list(WarmupTable(TOLD).assess(START_MS)) == []


def test_a_group_whose_tasks_the_broker_assigns_has_its_copies_judged_by_their_reports() -> None:
    service = Service()
    service.rebalance(*WARMING)
    rows = service.state.task_rows(GROUP)
    table = WarmupTable(TOLD)
    table.apply_assignment(rows)
    for index in range(8):
        assert table.observe(
            WARMUP, Observation(START_MS + 5_000 * index, lag=60_000 - 5_000 * index)
        )
    (warmup,) = table.assess(START_MS + 35_000)
    assert warmup.verdict == "warming"
    assert warmup.figures.eta is not None
    assert warmup.figures.eta.seconds == pytest.approx(15)
    assert table.observe(WARMUP, Observation(START_MS + 40_000, lag=0))
    (warmup,) = table.assess(START_MS + 10 * MINUTE)
    assert (warmup.is_warmup, warmup.verdict) == (True, "caught_up")
    table.apply_assignment([])
    assert list(table.assess(START_MS)) == []


def test_handing_over_is_caught_up_at_once_when_the_report_says_so() -> None:
    service = Service()
    service.rebalance(*HANDING_OVER)
    assert service.assess()[WARMUP].verdict == "caught_up"

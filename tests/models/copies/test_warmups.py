"""The verdict on a copy that is to catch up, line by line of its table, on simulated copies."""

from __future__ import annotations

from caughtup.models.copies.figures import CatchUpRate, copy_figures
from caughtup.models.copies.history import CopyHistory, Observation
from caughtup.models.copies.warmups import GRACE_MS, copy_verdict
from caughtup.models.histories.offset_sums import SumHistory
from caughtup.models.ids import TaskId
from tests.support.simulation.copies import (
    LIMIT,
    MINUTE,
    PROBING_INTERVAL_MS,
    SECOND,
    START_MS,
    SimulatedCopy,
    copy_context,
)


def test_a_copy_that_gains_is_warming_and_the_reason_has_its_numbers() -> None:
    copy = SimulatedCopy(end=60_000, rate=600, growth=200)
    copy.run(30 * SECOND)
    assert copy.verdict() == (
        "warming",
        (
            "lag 48,000, acceptable 10,000, restores 600.0/s, measured from its own positions, "
            "200.0/s are written: caught up in 95 s"
        ),
    )


def test_a_rate_from_outside_is_named_as_such() -> None:
    copy = SimulatedCopy(end=60_000, rate=500, report_ms=None)
    copy.run(30 * SECOND)
    verdict, reason = copy.verdict(given=CatchUpRate(500, 100, MINUTE, copy.now_ms))
    assert verdict == "warming"
    assert reason == (
        "lag 60,000, acceptable 10,000, restores 500.0/s, measured by Spark, "
        "0.0/s are written: caught up in 70 s (53 s to 95 s)"
    )


def test_a_copy_within_the_limit_is_caught_up() -> None:
    copy = SimulatedCopy(end=9_000)
    assert copy.verdict() == ("caught_up", "lag 9,000, acceptable 10,000")


def test_between_reports_a_copy_is_caught_up_once_the_last_of_its_time_has_passed() -> None:
    copy = SimulatedCopy(end=30_000, rate=1_000)
    copy.run(16 * SECOND)
    copy.report_ms = None
    copy.run(3 * SECOND)
    assert copy.verdict()[0] == "warming"
    copy.run(SECOND + 100)
    assert copy.verdict() == (
        "caught_up",
        "its lag was 15,000 5.1 s ago; at its pace of that time, it has caught up since",
    )


def test_a_copy_that_cannot_keep_up_with_what_comes_is_chasing() -> None:
    copy = SimulatedCopy(rate=500, growth=600)
    copy.run(MINUTE)
    assert copy.verdict() == (
        "chasing",
        (
            "lag 106,000, acceptable 10,000, restores 500.0/s, measured from its own positions, "
            "600.0/s are written: at these rates it never catches up"
        ),
    )


def test_a_copy_that_keeps_its_distance_is_chasing_too() -> None:
    copy = SimulatedCopy(rate=500, growth=500)
    copy.run(MINUTE)
    assert copy.verdict()[0] == "chasing"


def test_nobody_is_called_chasing_after_a_few_reports() -> None:
    copy = SimulatedCopy(rate=500, growth=600)
    copy.run(25 * SECOND)
    verdict, reason = copy.verdict()
    assert verdict == "unknown"
    assert reason.endswith("it is not certain yet that it catches up")


def test_a_copy_that_moved_and_stands_is_stalled_after_three_of_its_intervals() -> None:
    copy = SimulatedCopy(rate=1_000, report_ms=20 * SECOND)
    copy.run(80 * SECOND)
    copy.rate = 0
    copy.run(60 * SECOND)
    assert copy.verdict()[0] != "stalled"
    copy.run(20 * SECOND)
    assert copy.verdict() == (
        "stalled",
        "20,000 offsets to restore, no progress for 80 s, longer than the 60 s that its usual pauses allow",
    )


def test_a_copy_that_is_seen_every_second_is_not_stalled_for_a_pause_of_half_a_minute() -> None:
    copy = SimulatedCopy(rate=1_000, report_ms=SECOND)
    copy.run(30 * SECOND)
    copy.rate = 0
    copy.run(30 * SECOND)
    assert copy.verdict()[0] != "stalled"
    copy.run(SECOND)
    assert copy.verdict()[0] == "stalled"


def test_a_copy_that_goes_on_is_warming_again() -> None:
    copy = SimulatedCopy(rate=1_000)
    copy.run(30 * SECOND)
    copy.rate = 0
    copy.run(MINUTE)
    copy.rate = 1_000
    copy.run(10 * SECOND)
    verdict, reason = copy.verdict()
    assert verdict == "warming"
    assert "restores 1,000.0/s" in reason


def test_a_copy_that_never_moved_is_stalled_after_a_probing_interval() -> None:
    copy = SimulatedCopy()
    copy.run(PROBING_INTERVAL_MS)
    assert copy.verdict() == (
        "unknown",
        "lag 100,000, acceptable 10,000; its pace is not known yet",
    )
    copy.run(5 * SECOND)
    assert copy.verdict() == (
        "stalled",
        (
            "100,000 offsets to restore, no progress for 10 min, and none since caughtup first "
            "saw it; the probing interval is 10 min"
        ),
    )


def test_a_copy_that_moves_every_minute_may_stand_for_three() -> None:
    copy = SimulatedCopy(report_ms=5 * SECOND)
    for _ in range(4):
        copy.run(MINUTE - 5 * SECOND)
        copy.position += 5_000
        copy.run(5 * SECOND)
    copy.run(3 * MINUTE)
    assert copy.verdict()[0] != "stalled"
    copy.run(5 * SECOND)
    assert copy.verdict()[0] == "stalled"


def test_a_lag_of_a_marker_that_never_goes_away_is_explained() -> None:
    copy = SimulatedCopy(end=100, rate=33, limit=0)
    copy.run(3 * SECOND)
    copy.rate = 0
    copy.run(PROBING_INTERVAL_MS + 10 * SECOND)
    verdict, reason = copy.verdict()
    assert verdict == "stalled"
    assert reason.endswith("these may be transaction markers, which no copy restores")


def test_a_copy_waits_while_its_thread_restores_actives() -> None:
    copy = SimulatedCopy()
    copy.run(PROBING_INTERVAL_MS + MINUTE)
    waits = copy_context(waits_for=(TaskId(0, 1), TaskId(0, 4)))
    assert copy.verdict(waits) == (
        "waiting",
        "100,000 offsets to restore; its stream thread restores its actives first: 0_1 and 1 more",
    )


def test_a_copy_that_waited_is_not_stalled_when_its_turn_comes() -> None:
    copy = SimulatedCopy()
    copy.run(PROBING_INTERVAL_MS + MINUTE)
    copy.history.record_waited_until(copy.now_ms)
    assert copy.verdict()[0] == "unknown"


def caught_up_for(duration_ms: int) -> SimulatedCopy:
    copy = SimulatedCopy(end=5_000, position=5_000)
    copy.run(duration_ms)
    return copy


def test_a_warm_up_that_is_caught_up_without_any_rebalance_ahead_is_stranded() -> None:
    copy = caught_up_for(GRACE_MS)
    nobody = copy_context(rebalance_due_ms=None)
    assert copy.verdict(nobody)[0] == "caught_up"
    copy.run(5 * SECOND)
    assert copy.verdict(nobody) == (
        "stranded",
        "lag 0, acceptable 10,000; it could have taken over 65 s ago, but no rebalance is scheduled",
    )


def test_a_warm_up_that_is_caught_up_and_whose_rebalance_does_not_come_is_stranded() -> None:
    copy = caught_up_for(5 * MINUTE)
    due = START_MS + 3 * MINUTE
    assert copy.verdict(copy_context(rebalance_due_ms=due)) == (
        "stranded",
        ("lag 0, acceptable 10,000; the rebalance that would promote it was due 2 min ago"),
    )
    late = copy_context(rebalance_due_ms=copy.now_ms - GRACE_MS)
    assert copy.verdict(late)[0] == "caught_up"


def test_a_warm_up_that_was_caught_up_after_the_time_is_given_as_long() -> None:
    copy = SimulatedCopy(end=20_000, rate=1_000)
    copy.run(30 * SECOND)
    overdue = copy_context(rebalance_due_ms=START_MS - 10 * MINUTE)
    assert copy.verdict(overdue)[0] == "caught_up"


def test_a_standby_is_never_stranded() -> None:
    copy = caught_up_for(5 * MINUTE)
    assert copy.verdict(copy_context(is_warmup=False))[0] == "caught_up"


def test_a_copy_that_is_lost_and_built_again_is_flapping_whatever_else_it_is() -> None:
    copy = caught_up_for(SECOND)
    assert copy.verdict(copy_context(flaps=1))[0] == "caught_up"
    assert copy.verdict(copy_context(flaps=3)) == (
        "flapping",
        "lost and rebuilt 3 times in the last 10 generations",
    )


def test_nothing_is_said_of_a_copy_that_nobody_told_of() -> None:
    figures = copy_figures(CopyHistory(), SumHistory(), None, LIMIT, START_MS)
    assert copy_verdict(figures, copy_context(), START_MS) == (
        "unknown",
        "no position of it was reported",
    )


def test_nothing_is_said_of_a_copy_without_end_offsets() -> None:
    history = CopyHistory()
    history.observe(Observation(START_MS, offset_sum=5), SumHistory(), LIMIT)
    figures = copy_figures(history, SumHistory(), None, LIMIT, START_MS)
    verdict = copy_verdict(figures, copy_context(), START_MS)
    assert verdict == ("unknown", "the end offsets of its changelogs are not known")


def test_nothing_is_said_of_a_copy_that_was_not_seen_for_long() -> None:
    copy = SimulatedCopy(rate=500)
    copy.run(MINUTE)
    copy.report_ms = None
    copy.run(PROBING_INTERVAL_MS + SECOND)
    assert copy.verdict() == (
        "unknown",
        "no position was reported for 10 min; its lag was 70,000 then",
    )

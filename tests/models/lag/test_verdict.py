"""Verdicts on simulated groups whose state is known."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections import Counter
from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caughtup.models.lag.verdict import Verdict
from caughtup.models.verdicts import LAG
from tests.support.simulation.group import HOUR, MINUTE, SECOND, SimulatedGroup, steadily, until
from tests.support.sizes import daily


def healthy(rate: float = 100, commit_ms: int = 5 * SECOND) -> SimulatedGroup:
    """A group that has read all that comes for ten minutes."""
    group = SimulatedGroup(steadily(rate))
    group.consume(10 * rate, commit_ms)
    group.run(10 * MINUTE)
    return group


@settings(print_blob=True, deadline=None, max_examples=12)
@given(
    rate=st.integers(1, 300),
    commit_ms=st.sampled_from([100, SECOND, 5 * SECOND, 30 * SECOND, 2 * MINUTE]),
    sample_ms=st.sampled_from([SECOND, 10 * SECOND]),
)
def test_a_group_that_reads_all_that_comes_is_ok_and_one_that_then_stops_is_stopped(
    rate: int, commit_ms: int, sample_ms: int
) -> None:
    group = SimulatedGroup(steadily(rate), sample_ms)
    group.consume(2 * rate, commit_ms)
    group.run(4 * max(commit_ms, sample_ms))
    assert group.verdicts_during(2 * MINUTE) == {"ok"}
    group.run(commit_ms - group.now % commit_ms)
    group.consume(0, None)
    allowance = 3 * max(commit_ms, sample_ms)
    assert "stopped" not in group.verdicts_during(allowance)
    # It takes until the age is certain: the samples around it may be further apart by then.
    group.run(allowance // 2 + sample_ms)
    assert group.verdicts_during(10 * MINUTE, MINUTE) == {"stopped"}
    assert "no commit for" in group.verdict().reason


@pytest.mark.parametrize("gap_seconds", [0.3, 7, 40])
@pytest.mark.parametrize(
    ("commit_ms", "repeats"),
    [
        pytest.param(5 * SECOND, True, id="auto commit"),
        pytest.param(30 * SECOND, False, id="Kafka Streams"),
        pytest.param(100, False, id="a commit for each poll"),
    ],
)
def test_a_healthy_group_is_never_accused_whenever_its_records_come(
    gap_seconds: float, commit_ms: int, repeats: bool
) -> None:
    """Records come at random, and the group has read all but those of the last second or so."""
    chance = random.Random(f"{gap_seconds} {commit_ms}")
    comings = list(
        accumulate(int(chance.expovariate(1 / gap_seconds) * 1000) + 1 for _ in range(9_000))
    )
    group = SimulatedGroup(lambda now: bisect_right(comings, now))
    seen: Counter[str] = Counter()
    position = 0
    group.list_ends()
    group.commit(0)
    while group.now < 40 * MINUTE:
        group.now += 100
        if group.now % SECOND == 0:
            group.list_ends()
        if group.now % commit_ms == 0:
            read = max(position, group.produced(group.now - chance.randint(0, commit_ms // 4)))
            if repeats or read > position:
                group.commit(read)
            position = read
        if group.now % SECOND == 0:
            seen[group.verdict().verdict] += 1
    assert seen.keys() <= {"ok", "unknown"}
    assert seen["ok"] > 0.9 * seen.total()


def test_a_group_that_commits_the_same_offset_over_and_over_is_stalled() -> None:
    group = healthy()
    group.consume(0, 5 * SECOND)
    assert group.verdicts_during(14 * SECOND) == {"ok"}
    group.run(10 * SECOND)
    assert group.verdicts_during(10 * MINUTE) == {"stalled"}
    assert "it has committed offset 60,000 again" in group.verdict().reason


@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
def test_a_group_that_reads_less_than_comes_diverges_however_little_less(share: float) -> None:
    group = healthy()
    group.consume(100 * share, 5 * SECOND)
    group.run(30 * MINUTE)
    assert group.verdict().verdict == "diverging"
    assert group.verdicts_during(30 * MINUTE, 30 * SECOND) == {"diverging"}


def test_a_group_that_falls_behind_now_diverges_though_it_was_further_behind_before() -> None:
    group = SimulatedGroup(steadily(100))
    group.run(20 * MINUTE)
    group.consume(1_000, 5 * SECOND)
    group.run(10 * MINUTE)
    assert group.verdict().verdict == "ok"
    group.consume(50, 5 * SECOND)
    group.run(3 * MINUTE)
    figures = group.figures()
    assert figures.trend is not None
    assert figures.trend.velocity < 0
    assert group.verdict().verdict == "diverging"


def test_a_group_is_not_ok_because_the_log_has_not_been_sampled_for_long() -> None:
    """It is a minute behind, and commits every five seconds; that we see only later."""
    group = SimulatedGroup(steadily(100), sample_ms=24 * HOUR)
    group.run(MINUTE)
    group.consume(100, 5 * SECOND)
    group.run(10 * MINUTE)
    group.sample_ms = SECOND
    group.run(2 * SECOND)
    assert group.verdicts_during(12 * SECOND) == {"unknown"}
    group.run(10 * SECOND)
    assert group.verdicts_during(5 * MINUTE) == {"slow"}


def test_a_group_that_keeps_its_distance_far_behind_is_slow() -> None:
    group = SimulatedGroup(steadily(100))
    group.run(10 * MINUTE)
    group.consume(100, 5 * SECOND)
    group.run(MINUTE)
    assert group.verdicts_during(30 * MINUTE, 7 * SECOND) == {"slow"}


def test_a_group_that_catches_up_is_slow_until_it_is_back_in_its_rhythm() -> None:
    group = healthy()
    group.consume(0, None)
    group.run(10 * MINUTE)
    assert group.verdict().verdict == "stopped"
    group.consume(400, 5 * SECOND)
    group.run(20 * SECOND)
    verdict = group.verdict()
    assert verdict.verdict == "slow"
    assert "reads 400.0/s, 100.0/s are produced: caught up in" in verdict.reason
    assert group.verdicts_during(150 * SECOND) == {"slow"}
    group.run(50 * SECOND)
    assert group.verdicts_during(10 * MINUTE) == {"ok"}


def test_a_burst_that_is_read_within_the_groups_rhythm_is_ok_however_many_records() -> None:
    burst = 5_000_000
    group = SimulatedGroup(lambda now: now // 10 + (burst if now > 10 * MINUTE + 700 else 0))
    group.consume(1_000_000, 5 * SECOND)
    group.run(10 * MINUTE)
    seen = group.verdicts_during(MINUTE)
    assert max(lag for _, _, lag in group.committed) >= burst / 10
    assert seen == {"ok"}


def test_a_recreated_log_is_rewound_until_the_group_commits_on_it() -> None:
    group = healthy(rate=10)
    made_anew = group.now
    group.produced = lambda now: (now - made_anew) // 1000
    group.consume(0, None)
    group.run(MINUTE)
    verdict = group.verdict()
    assert (verdict.verdict, group.figures().lag.lag) == ("rewound", 60)
    assert verdict.reason == (
        "the commit 6,000 lies beyond the log, which ends at 60: the topic was recreated, or the log lost its tail"
    )
    group.position = 0
    group.consume(2, 5 * SECOND)
    group.run(20 * SECOND)
    assert group.verdict().verdict == "rewound"
    # It has read all that there is, though the new log never gets as far as the old one was.
    group.run(2 * MINUTE)
    assert group.figures().rewound_from is None
    group.run(3 * SECOND)
    assert group.figures().lag.lag > 0
    assert group.verdict().verdict == "ok"


def test_a_log_start_beyond_the_commit_is_told_with_what_was_lost() -> None:
    group = healthy()
    group.consume(0, None)
    group.run(10 * MINUTE)
    group.start_offset = 70_000
    group.run(SECOND)
    figures = group.figures()
    assert figures.records_lost == 10_000
    assert figures.retention_used == pytest.approx(1.2, abs=0.01)
    assert figures.lag.lag == 50_100
    assert group.verdict().verdict == "stopped"
    assert group.verdict().reason.endswith("; 10,000 offsets were deleted unread")
    group.start_offset = group.produced(group.now + SECOND)
    group.produced = until(group.now + SECOND, group.produced)
    group.run(HOUR)
    assert group.verdict() == Verdict(
        "ok", "at the end of the log; 60,200 offsets were deleted unread", 0.0
    )


def test_what_is_not_known_yet_is_unknown() -> None:
    group = SimulatedGroup(steadily(100))
    group.now = 10 * MINUTE
    group.list_ends()
    group.commit(5)
    assert group.verdict().verdict == "unknown"
    group.run(5 * SECOND)
    assert group.verdict().verdict == "unknown"


def test_a_group_that_died_before_the_service_started_is_stopped_in_the_end() -> None:
    """One commit of two days ago is left of it; its rhythm went with the log's compaction."""
    group = SimulatedGroup(steadily(100), sample_ms=10 * SECOND)
    group.commit(5)
    group.now = 48 * HOUR
    group.list_ends()
    assert group.verdicts_during(15 * MINUTE, 10 * SECOND) == {"unknown"}
    assert group.verdicts_during(5 * MINUTE, 10 * SECOND) == {"stopped"}


@settings(print_blob=True, deadline=None, max_examples=daily(20, 60))
@given(st.data())
def test_whatever_happens_a_verdict_is_one_of_the_seven_and_fits_its_figures(
    data: st.DataObject,
) -> None:
    """A log that grows, stands still, is deleted from its start or made anew, and wild commits."""
    log = {"end": 0}
    group = SimulatedGroup(lambda now: log["end"])
    group.readable_known = data.draw(st.booleans())
    group.list_ends()
    for _ in range(data.draw(st.integers(1, 30))):
        event = data.draw(st.sampled_from(["grow", "commit", "repeat", "wait", "expire", "renew"]))
        if event == "grow":
            log["end"] += data.draw(st.integers(1, 1_000))
        elif event == "commit":
            group.commit(data.draw(st.integers(0, log["end"] + 5)))
        elif event == "repeat" and group.committed:
            group.commit(group.committed[-1][0])
        elif event == "expire":
            group.start_offset = data.draw(st.integers(group.start_offset, log["end"]))
        elif event == "renew":
            log["end"] = group.start_offset = 0
        group.now += data.draw(st.sampled_from([1, SECOND, MINUTE, HOUR]))
        group.list_ends()
        figures, verdict = group.figures(), group.verdict()
        assert verdict.verdict in LAG.words
        assert verdict.reason
        assert "\n" not in verdict.reason
        assert figures.lag.lag >= 0
        assert figures.eta_seconds is None or figures.eta_seconds >= 0
        assert figures.retention_used is None or figures.retention_used >= 0
        if figures.lag.lag == 0 and not figures.lag.out_of_range:
            assert verdict.verdict == "ok"
        if verdict.verdict in ("stopped", "stalled"):
            assert figures.lag.lag > 0
            assert figures.age is not None
            assert figures.age.certain_seconds > figures.allowed_seconds

"""Where Burrow's verdict is false: each case with what Burrow says, and what is true."""

from __future__ import annotations

import pytest

from caughtup.models.ids import TopicPartition
from caughtup.models.lag.figures import lag_figures
from caughtup.models.lag.verdict import partition_verdict
from caughtup.models.offsets import EndOffsets
from tests.support.simulation.burrow import burrow_status
from tests.support.simulation.group import (
    GROUP,
    HOUR,
    MINUTE,
    SECOND,
    START_MS,
    SimulatedGroup,
    steadily,
    until,
)


def test_a_single_commit_is_not_a_stop() -> None:
    group = SimulatedGroup(steadily(100))
    group.run(MINUTE)
    group.commit(10)
    group.run(2 * SECOND)
    assert burrow_status(group) == "STOP"
    assert group.verdict().verdict == "unknown"
    group.commit(200)
    group.run(2 * SECOND)
    assert group.verdict().verdict != "stopped"


def test_a_low_lag_that_stays_is_ok() -> None:
    group = SimulatedGroup(steadily(100))
    for _ in range(60):
        group.run(SECOND)
        group.commit(group.produced(group.now) - 5)
    assert group.figures().lag.lag == 5
    assert burrow_status(group) == "WARN"
    assert group.verdict().verdict == "ok"


def test_a_transaction_marker_behind_the_last_record_is_not_a_stop() -> None:
    group = SimulatedGroup(until(10 * MINUTE, steadily(10)), sample_ms=10 * SECOND)
    group.markers = 1
    group.consume(100, 5 * SECOND)
    group.run(10 * MINUTE)
    group.consume(0, None)
    group.run(HOUR)
    assert burrow_status(group) == "STOP"
    assert group.verdict().verdict == "ok"
    assert group.verdict().reason == "nothing to read, 1 offset not readable"


def test_a_record_that_comes_after_an_hour_of_nothing_but_a_marker_is_as_old_as_it_is() -> None:
    """Its offset follows the marker's, and the commit is on the marker's, of an hour ago."""
    group = SimulatedGroup(until(10 * MINUTE, steadily(10)), sample_ms=10 * SECOND)
    group.markers = 1
    group.consume(100, 5 * SECOND)
    group.run(10 * MINUTE)
    group.consume(0, None)
    group.run(HOUR)
    assert group.verdict().verdict == "ok"
    # The marker is overtaken by the next transaction, of ten records and its own marker.
    group.produced = lambda now: 6_011
    group.run(10 * SECOND)
    figures = group.figures()
    assert figures.lag.lag == 11
    assert figures.age is not None
    assert figures.age.seconds <= 10
    assert burrow_status(group) == "STOP"
    assert group.verdict().verdict == "ok"


def test_records_of_a_long_transaction_are_behind_from_its_end_on() -> None:
    group = SimulatedGroup(lambda now: 100 if now < 30 * MINUTE else 90_000)
    group.consume(100_000, 5 * SECOND)
    group.run(5 * MINUTE)
    group.markers = 50_000  # an open transaction's records: in the log, but not to be read yet
    assert group.verdicts_during(25 * MINUTE - SECOND) == {"ok"}
    group.markers = 1
    assert group.verdicts_during(30 * SECOND) == {"ok"}


def test_one_offset_of_unknown_kind_is_neither_a_stop_nor_ok() -> None:
    group = SimulatedGroup(until(10 * MINUTE, steadily(10)), sample_ms=10 * SECOND)
    group.markers, group.readable_known = 1, False
    group.consume(100, 5 * SECOND)
    group.run(10 * MINUTE)
    group.consume(0, None)
    group.run(HOUR)
    assert burrow_status(group) == "STOP"
    assert group.verdict().verdict == "unknown"
    assert "a record or a transaction marker" in group.verdict().reason


def test_a_group_is_rewound_until_it_has_regained_its_place_not_for_ten_commits() -> None:
    group = SimulatedGroup(steadily(100))
    group.consume(1_000, 5 * SECOND)
    group.run(10 * MINUTE)
    group.position = 1_000
    group.consume(500, 5 * SECOND)
    group.run(5 * SECOND)
    assert group.verdict().verdict == "rewound"
    group.run(60 * SECOND)
    assert burrow_status(group) == "OK"
    assert group.verdict().verdict == "rewound"
    assert group.verdict().reason.startswith(
        "its commits went back from 60,000 and are at 33,500; "
    )
    group.run(60 * SECOND)
    assert group.verdict().verdict == "slow"
    group.run(30 * SECOND)
    assert group.verdict().verdict == "ok"


def test_a_rewind_at_the_second_commit_is_seen() -> None:
    group = SimulatedGroup(steadily(100))
    group.run(MINUTE)
    for offset in (5_000, 100, 900):
        group.run(5 * SECOND)
        group.commit(offset)
    assert burrow_status(group) != "REWIND"
    assert group.verdict().verdict == "rewound"


def test_a_pause_of_seconds_is_not_a_stop_of_a_group_that_commits_often() -> None:
    """Ten commits are a second here; a rebalance or a long collection takes two."""
    group = SimulatedGroup(steadily(100))
    group.consume(1_000, 100)
    group.run(10 * MINUTE)
    group.consume(0, None)
    group.run(2 * SECOND)
    group.ends_seen = group.ends_seen[-1:] * 10  # as many samples as Burrow keeps, within the pause
    assert burrow_status(group) == "STOP"
    assert group.verdict().verdict == "ok"
    group.run(5 * SECOND)
    assert group.verdict().verdict == "stopped"


def test_a_group_that_waits_for_an_idle_producer_is_ok_and_stays_so_when_records_come() -> None:
    """Once an hour a record comes, and the group commits it in its next second."""
    group = SimulatedGroup(lambda now: now // HOUR)
    committed = 0
    seen = set()
    for minute in range(10 * 60):
        group.run(MINUTE)
        seen.add(group.verdict().verdict)
        if group.produced(group.now) > committed:
            group.run(SECOND)
            committed = group.produced(group.now)
            group.commit(committed)
            group.list_ends()
            seen.add(group.verdict().verdict)
        assert group.figures().lag.lag <= 1, minute
    assert "stopped" not in seen
    assert group.verdict().verdict == "ok"
    # And it has not forgotten what its rhythm is: an hour of silence is none of it.
    group.run(HOUR)
    assert group.figures().lag.lag == 1
    group.run(30 * SECOND)
    assert group.verdict().verdict == "stopped"


def test_a_batch_that_runs_every_ten_minutes_is_ok_between_its_runs() -> None:
    """Thirty commits in thirty seconds, then nothing for ten minutes, over and over."""
    group = SimulatedGroup(steadily(20), sample_ms=10 * SECOND)
    burrows, ours = set(), set()
    for run in range(12):
        group.consume(100_000, SECOND)
        group.run(30 * SECOND)
        group.consume(0, None)
        for _ in range(57):
            group.run(10 * SECOND)
            burrows.add(burrow_status(group))
            if run > 2:
                ours.add(group.verdict().verdict)
    assert "STOP" in burrows
    assert ours == {"ok"}


def test_a_partition_that_is_never_committed_is_stopped_once_records_came_unread() -> None:
    group = SimulatedGroup(until(3 * MINUTE, steadily(100)))
    other = TopicPartition("orders", 1)
    for _ in range(20):
        group.run(10 * SECOND)
        group.commit(group.now, other)  # the group is well elsewhere
    assert group.commits.interval_ms(GROUP) == 10_000
    assert group.figures().lag.lag == 18_000
    verdict = group.verdict()
    assert verdict.verdict == "stopped"
    assert verdict.reason.startswith(
        "never committed, though records arrived 3 min ago; 18,000 offsets"
    )


def test_a_partition_that_is_never_committed_and_gets_no_records_is_not_judged() -> None:
    """Whether its old records are to be read is for auto.offset.reset to say."""
    group = SimulatedGroup(lambda now: 500)
    group.run(HOUR)
    history = group.ends.history(next(iter(group.ends))[0])
    assert history is not None
    verdict = partition_verdict(lag_figures(None, history, START_MS + HOUR, 5_000))
    assert verdict.verdict == "unknown"
    assert "auto.offset.reset" in verdict.reason
    history.add(EndOffsets(500, 500, 500, START_MS + HOUR + 1))
    nothing_left = partition_verdict(lag_figures(None, history, START_MS + HOUR, 5_000))
    assert nothing_left.verdict == "ok"


@pytest.mark.parametrize("members", ["none", "of the new protocol"])
def test_a_group_of_whose_members_nothing_is_known_is_ok_at_the_end(members: str) -> None:
    """Verdicts rest on commits, so members that are gone or can't be read make no difference."""
    group = SimulatedGroup(until(10 * MINUTE, steadily(10)), sample_ms=10 * SECOND)
    group.consume(100, 5 * SECOND)
    group.run(10 * MINUTE)
    if members == "none":
        group.consume(0, None)
    group.run(10 * SECOND)
    assert group.verdicts_during(3 * HOUR, MINUTE) == {"ok"}

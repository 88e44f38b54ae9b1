"""``caughtup bench follow``: its arithmetic and its table; the rest is a test on real Kafka."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console

from caughtup.bench.follow import broken_promises, follow_table
from caughtup.bench.main import bench
from caughtup.demo.apps.restore_listener import RestoredCopy
from caughtup.demo.story.growth import interval_waits, longest_pause, sum_copies

FIGURE: dict[str, Any] = {
    "by": "the follower",
    "tasks": 24,
    "seconds": 52.8,
    "interval_waits": 2,
    "interval_seconds": 60,
    "generations": 8,
    "copies_built": 6,
    "copies_recommended": 6,
    "copies_kafka": 18,
    "copy_seconds": 0.6,
    "cold_hand_overs": 0,
    "longest_pause_seconds": 2.9,
    "calm_pause_seconds": 0.4,
    "uncommitted": [],
    "exact": {"match": 12, "mismatch": 0, "undetermined": 1},
    "broken": [],
}


def copy(**fields: Any) -> RestoredCopy:
    """A copy that a standby built from nothing within 700 ms, and that then became the active."""
    built = RestoredCopy.parse("standby\tcounts\tc-changelog\t3\t0\t20000\t20104\t5\t705\tPROMOTED")
    return built._replace(**fields)


def test_a_line_of_the_listener_is_read_and_what_it_does_not_know_is_none() -> None:
    assert copy() == RestoredCopy(
        "standby", "counts", "c-changelog", 3, 0, 20_000, 20_104, 5, 705, "PROMOTED"
    )
    waiting = RestoredCopy.parse("standby\tcounts\tc-changelog\t3\t0\t-1\t-1\t5\t-1\t")
    assert waiting == copy(end=None, loaded=None, reached_ms=None, ending="")
    assert not waiting.from_nothing


def test_copies_from_nothing_are_built_and_others_are_not() -> None:
    taken_over = copy(role="active", start=20_105, end=20_105, loaded=None, ending="RESTORED")
    assert sum_copies([copy(), taken_over, copy(start=500, loaded=600)]) == {
        "copies_built": 1,
        "copies_dropped": 0,
        "cold_hand_overs": 0,
        "copy_seconds": 0.7,
        "offsets_restored": 20_105 + 101,
    }


def test_a_store_whose_changelog_is_empty_is_no_copy_of_anything() -> None:
    empty = copy(role="active", end=0, loaded=None, ending="RESTORED")
    assert sum_copies([empty])["copies_built"] == 0
    assert sum_copies([empty])["copy_seconds"] is None


def test_an_active_that_has_much_to_restore_is_handed_over_cold() -> None:
    cold = copy(role="active", start=0, end=5_000, ending="RESTORED")
    resumed = copy(role="active", start=3_500, end=5_000, ending="RESTORED")
    near = copy(role="active", start=4_000, end=5_000, ending="RESTORED")
    counted = sum_copies([cold, resumed, near])
    assert (counted["cold_hand_overs"], counted["copies_built"]) == (2, 1)


def test_a_copy_that_was_built_and_given_up_is_counted_as_dropped() -> None:
    assert sum_copies([copy(ending="MIGRATED"), copy()])["copies_dropped"] == 1


def test_rebalances_as_far_apart_as_the_probing_interval_waited_for_it() -> None:
    assert interval_waits([]) == interval_waits([5]) == 0
    assert interval_waits([120_500, 0, 1_500, 61_400, 119_000]) == 1


@pytest.mark.parametrize(
    ("since", "until", "pause"), [(0, 100, 30), (31, 100, 20), (70, 200, 5), (110, 200, 0)]
)
def test_the_longest_pause_is_that_of_those_which_reach_into_the_time(
    since: int, until: int, pause: int
) -> None:
    assert longest_pause([0, 30, 50, 60, 65, 70, 75], since, until) == pause


def test_of_a_partition_without_commits_no_pause_is_known() -> None:
    assert longest_pause([], 0, 10) == longest_pause([5], 0, 10) == 0


@pytest.mark.parametrize(
    ("worse", "broken"),
    [
        ({}, []),
        ({"copies_built": 7}, ["copies"]),
        ({"cold_hand_overs": 1}, ["no cold hand-over"]),
        ({"uncommitted": ["orders-placed-3"]}, ["every task continues"]),
        ({"exact": {"match": 1, "mismatch": 1, "undetermined": 0}}, ["no mismatch"]),
    ],
)
def test_what_is_promised_and_not_kept_is_named(worse: dict[str, Any], broken: list[str]) -> None:
    assert list(broken_promises({**FIGURE, **worse})) == broken


def test_both_are_shown_side_by_side() -> None:
    kafka = {**FIGURE, "by": "Kafka's own assignor", "seconds": 615.2, "interval_waits": 9}
    written = StringIO()
    console = Console(width=120, file=written)
    console.print(follow_table([FIGURE, {**kafka, "copy_seconds": None}]))
    rows = [line.split("│")[1:-1] for line in written.getvalue().splitlines()]
    printed = {row[0].strip(): [cell.strip() for cell in row[1:]] for row in rows if row}
    assert printed["seconds until all have their share"] == ["53", "615"]
    assert printed["of these waited for probing.rebalance.interval.ms"] == [
        "2 × 60 = 120",
        "9 × 60 = 540",
    ]
    assert printed["seconds that a copy takes, median"] == ["0.6", ""]
    assert printed["exact mode: match / mismatch / undetermined"] == ["12 / 0 / 1"] * 2


def test_an_odd_number_of_tasks_is_refused_before_anything_is_started() -> None:
    result = CliRunner().invoke(bench, ["follow", "--tasks", "9"])
    assert result.exit_code == 2
    assert "9 is odd" in result.output

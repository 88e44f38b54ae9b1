"""What counts as standing still, of a real task as of a simulated one."""

from __future__ import annotations

from caughtup.models.simulation.time_line import Activity, Mark, TimeSpan
from tests.integration.simulation.observed import (
    LEAST_MS,
    longest_still,
    of_time_line,
    stood_still,
)


def test_pauses_shorter_than_the_least_are_none() -> None:
    written = [0, 500, 500 + LEAST_MS - 1, 10_000, 10_100]
    assert stood_still(written, 0, 10_500) == (10_000 - 500 - LEAST_MS + 1, 10_000)
    assert stood_still([0, 500, 1_000], 0, 1_200) == (0, 0)


def test_what_was_before_the_beginning_is_no_part_of_a_pause() -> None:
    assert stood_still([0, 9_000], 4_000, 10_000) == (5_000, 9_000)
    assert longest_still({0: [0, 9_000], 1: [0, 4_500, 9_000]}, 8_000) == 9_000


def test_a_time_line_has_the_same_figures() -> None:
    spans = [
        TimeSpan("0_0", "a", Activity.PROCESSING, 0, 1_000),
        TimeSpan("0_0", "b", Activity.RESTORING, 4_000, 6_000),
        TimeSpan("0_0", "b", Activity.PROCESSING, 6_000, 20_000),
    ]
    marks = [Mark(4_000, "rebalance", ""), Mark(4_001, "copy", ""), Mark(4_002, "stop", "")]
    found = of_time_line(spans, marks, ["0_0"], 20_000)
    assert (found.still_ms, found.balanced_ms) == ({"0_0": 5_000}, 6_000)
    assert (found.copies, found.rebalances) == (1, 1)

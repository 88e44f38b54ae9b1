"""Groups whose coordinators are asked: what a verdict is worth when the answers stay away."""

from __future__ import annotations

import pytest

from tests.support.groups.records import GROUP, SOURCE, START_MS, commit
from tests.support.states import cluster_state, list_ends, read

MINUTE_MS = 60_000


@pytest.mark.parametrize(
    ("interval_ms", "silent_ms", "expected"),
    [
        (10_000, 0, "stopped"),
        (10_000, 10_000, "stopped"),
        (10_000, 31_000, "unknown"),
        (60_000, 31_000, "stopped"),
        (60_000, 181_000, "unknown"),
    ],
)
def test_a_group_that_is_not_answered_about_is_unknown_after_three_intervals(
    interval_ms: int, silent_ms: int, expected: str
) -> None:
    state = cluster_state()
    state.assessments.asked_allowed_ms = max(30_000, 3 * interval_ms)
    read(state, commit(0, 10))
    answered_ms = START_MS + 30 * MINUTE_MS
    now_ms = answered_ms + silent_ms
    for number, at_ms in enumerate(range(START_MS, now_ms + 1, 1_000)):
        list_ends(state, {0: 20 + number}, at_ms=at_ms, topic=SOURCE)
    state.asked_ms[GROUP] = answered_ms
    for _ in state.assess(GROUP, now_ms):
        pass
    verdict = state.assessments.verdicts[GROUP]
    assert verdict.verdict == expected, verdict

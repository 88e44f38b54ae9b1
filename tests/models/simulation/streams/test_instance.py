"""What a kill leaves of states: what was flushed, and nothing of what was in memory only."""

from __future__ import annotations

import pytest

from caughtup.models.simulation.streams.run import StreamsRun
from tests.models.simulation.stories.telling import SECOND, application, later, running

HALF_A_MINUTE = 30 * SECOND


def killed(flush_offsets: int) -> StreamsRun:
    """Kill B, whose state of 10,000 offsets was restored from nothing, and start it again."""
    run = running(application(2, flush_offsets=flush_offsets), ["A", "B"])
    later(run, 0, lambda: run.kill("B"))
    later(run, 5 * SECOND, lambda: run.start("B"))
    run.time.run(run.time.now_ms + 2 * HALF_A_MINUTE)
    return run


@pytest.mark.parametrize(
    ("flush_offsets", "left"), [(1_000, 0), (4_000, 2_000), (10_000, 0), (16_000, 10_000)]
)
def test_what_was_not_flushed_is_restored_again_after_a_kill(flush_offsets: int, left: int) -> None:
    assert killed(flush_offsets).shared.to_restore == 20_000 + left


def test_a_state_is_flushed_by_whoever_closes_it_in_order() -> None:
    run = running(application(2, flush_offsets=16_000), ["A", "B"])
    later(run, 0, lambda: run.stop("B"))
    later(run, 5 * SECOND, lambda: run.start("B"))
    later(run, 5 * SECOND + HALF_A_MINUTE, lambda: run.kill("B"))
    later(run, 10 * SECOND + HALF_A_MINUTE, lambda: run.start("B"))
    run.time.run(run.time.now_ms + 4 * HALF_A_MINUTE)
    assert run.shared.to_restore == 20_000

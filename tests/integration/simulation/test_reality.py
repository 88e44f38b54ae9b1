"""The simulator held against real applications: minutes each, so with ``make thorough`` alone.

docs/measured.md has the tables, which the modules beside print.
"""

from __future__ import annotations

import random
from contextlib import ExitStack
from pathlib import Path

import pytest

from caughtup.demo.cluster.cluster import EmbeddedCluster
from tests.integration.simulation import connect, safe
from tests.integration.simulation.stories import STORIES, Told, tell
from tests.integration.simulation.table import begin, rows, task_rows
from tests.support.kafka.quotas import BROKER

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(1_500)]

#: What a busy machine adds to each pause, and a group's heartbeats, ms. A real hand-over takes one to
#: three seconds here, a simulated one no time, and a pause counts from two seconds on.
BUSY_MS = 3_500


def near(real_ms: float, simulated_ms: float, share: float) -> bool:
    """Return whether two times are as near as that, or as a busy machine leaves them."""
    return abs(real_ms - simulated_ms) <= max(share * real_ms, BUSY_MS)


def check(told: Told) -> None:
    print("\n".join((*rows([told]), *task_rows(told))))
    real, simulated = told.real, told.simulated
    assert real.copies == simulated.copies
    assert near(real.balanced_ms, simulated.balanced_ms, 0.25)
    assert near(real.median_ms, simulated.median_ms, 0.15)
    for task, still in real.still_ms.items():
        assert near(still, simulated.still_ms[task], 0.25), task


@pytest.mark.parametrize("of", sorted({one.of for one in STORIES}))
def test_a_real_application_does_as_the_simulated_one(of: str, tmp_path: Path) -> None:
    with EmbeddedCluster(nodes=1, broker_properties=BROKER) as cluster, ExitStack() as stack:
        app, rates = begin(cluster, of, tmp_path, stack)
        for story in STORIES:
            if story.of == of:
                check(tell(app, story, rates))


def test_safe_is_as_it_was_said_to_be() -> None:
    seed = random.SystemRandom().randrange(10**6)
    tries = safe.tries(seed, 10)
    print(f"seed {seed}", *safe.rows(tries), sep="\n")
    assert sum(one.right for one in tries) >= 8


def test_connect_workers_do_as_simulated_ones() -> None:
    for told in connect.stories(40):
        print("\n".join(connect.rows_of([told])))
        for item, idle_ms in told.real.idle_ms.items():
            assert near(idle_ms, told.simulated.idle_ms[item], 0.15)

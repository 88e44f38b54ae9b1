"""What the documents tell of Kafka Streams, each as a story with its time line.

A column is some seconds, a letter the client that has the task: ``A`` processes it, ``a`` restores
it or waits, ``.`` is nobody. Rows with a ``+`` are standbys and warm-ups: ``a`` is behind.
"""

from __future__ import annotations

from dataclasses import replace
from textwrap import dedent

import pytest

from caughtup.models.simulation.membership import Timings
from tests.models.simulation.stories.telling import (
    MINUTE,
    SECOND,
    application,
    join,
    later,
    running,
    told,
)


def rows(text: str) -> list[str]:
    return dedent(text).strip("\n").split("\n")


def test_a_thread_waits_for_all_its_actives_until_kafka_3_7() -> None:
    """Seed 001: one state that isn't restored holds up every task of its thread."""
    run = running(application(4, waits_for_thread=True), ["A", "B"])
    later(run, 5 * SECOND, lambda: run.kill("B", keep_state=False))
    drawn, figures = told(run, 90 * SECOND, 2 * SECOND)
    assert drawn == rows("""
        0_0 AAAAAAAAAAAAAAAAAAAAAAAAaaaaaaaaaaaAAAAAAAAAA
        0_1 BBB......................aaaaaaaaaaAAAAAAAAAA
        0_2 AAAAAAAAAAAAAAAAAAAAAAAAaaaaaaaaaaaAAAAAAAAAA
        0_3 BBB......................aaaaaaaaaaAAAAAAAAAA
    """)
    # Two states of 10,000 offsets at 1,000 a second, for which the others wait.
    assert figures.still_ms["0_0"] == figures.still_ms["0_2"] == 20 * SECOND


def test_since_3_8_each_task_waits_for_itself() -> None:
    run = running(application(4), ["A", "B"])
    later(run, 5 * SECOND, lambda: run.kill("B", keep_state=False))
    drawn, figures = told(run, 90 * SECOND, 2 * SECOND)
    assert drawn == rows("""
        0_0 AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
        0_1 BBB......................aaaaaaaaaaAAAAAAAAAA
        0_2 AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
        0_3 BBB......................aaaaaaaaaaAAAAAAAAAA
    """)
    assert figures.still_ms["0_0"] == 0
    assert figures.copies_built == 2


def test_a_standby_takes_over_and_nothing_is_restored() -> None:
    """Seed 001: what remains is the session timeout, 45 s, before anybody knows of it."""
    run = running(application(2, configs={"num_standby_replicas": 1}), ["A", "B"])
    later(run, 5 * SECOND, lambda: run.kill("B", keep_state=False))
    drawn, figures = told(run, 90 * SECOND, 2 * SECOND)
    assert drawn == rows("""
        0_0 AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
          + BBB..........................................
        0_1 BBB......................AAAAAAAAAAAAAAAAAAAA
          + AAAAAAAAAAAAAAAAAAAAAAAAA....................
    """)
    assert figures.copies_built == 0
    assert 44 * SECOND < figures.longest_still_ms < 46 * SECOND


def test_a_scale_out_warms_up_first_and_moves_by_probing_rebalances() -> None:
    """Seed 000: two warm-ups at a time, and no task stands still for its state."""
    configs = {"acceptable_recovery_lag": 0}
    run = running(application(6, configs=configs), ["A", "B"])
    later(run, 5 * SECOND, lambda: join(run, "C"))
    drawn, figures = told(run, 160 * SECOND, 5 * SECOND)
    assert drawn == rows("""
        0_0 AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
        0_1 BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB
        0_2 AAAAAAAAAAAAACCCCCCCCCCCCCCCCCCC
          + .cccCCCCCCCCCC..................
        0_3 BBBBBBBBBBBBBAAAAAAAAAAAAAAAAAAA
          + .aaaAAAAAAAAAA..................
        0_4 AAAAAAAAAAAAAAAAAAAAAAAAABBBBBBB
          + .............bbbBBBBBBBBBB......
        0_5 BBBBBBBBBBBBBBBBBBBBBBBBBCCCCCCC
          + .............cccCCCCCCCCCC......
    """)
    assert (figures.copies_built, figures.probing) == (4, 2)
    assert figures.longest_still_ms < SECOND


def test_two_copies_are_enough_for_the_same_balance() -> None:
    configs = {"acceptable_recovery_lag": 0}
    run = running(application(6, assignor="minimal_movement", configs=configs), ["A", "B"])
    later(run, 5 * SECOND, lambda: join(run, "C"))
    drawn, figures = told(run, 160 * SECOND, 5 * SECOND)
    assert drawn == rows("""
        0_0 AAAAAAAAAAAAACCCCCCCCCCCCCCCCCCC
          + .cccccCCCCCCCC..................
        0_1 BBBBBBBBBBBBBCCCCCCCCCCCCCCCCCCC
          + .cccccCCCCCCCC..................
        0_2 AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
        0_3 BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB
        0_4 AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
        0_5 BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB
    """)
    assert (figures.copies_built, figures.probing) == (2, 1)


@pytest.mark.parametrize(
    ("assignor", "drawing"),
    [("high_availability", "0_0 BBBBBAAAAA"), ("sticky", "0_0 BBBBBBBBBB")],
)
def test_a_stateless_task_moves_for_nothing_but_under_the_sticky_assignor(
    assignor: str, drawing: str
) -> None:
    """Seed 003: t1 runs on m1, m3 joins, and t1 moves although nobody had too much to do."""
    run = running(application(0, 1, assignor=assignor), ["B", "C"])
    later(run, 5 * SECOND, lambda: join(run, "A"))
    drawn, _ = told(run, 10 * SECOND, SECOND)
    assert drawn == [drawing]


@pytest.mark.parametrize("eager", [True, False], ids=["eager", "cooperative"])
def test_an_eager_rebalance_stops_every_task_and_a_cooperative_one_what_moves(eager: bool) -> None:
    """Seed 003: with Kafka's own heartbeats of 3 s, and nothing to restore."""
    changes = {"eager": eager, "timings": Timings(), "assignor": "sticky"}
    run = running(replace(application(0, 6), **changes), ["A", "B"])
    later(run, 5 * SECOND, lambda: join(run, "C"))
    _, figures = told(run, MINUTE, SECOND)
    stopped = sum(still > 0 for still in figures.still_ms.values())
    assert stopped == (6 if eager else 2)
    assert figures.longest_still_ms <= 2 * Timings().heartbeat_interval_ms

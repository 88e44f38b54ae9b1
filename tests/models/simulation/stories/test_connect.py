"""Seed 004 in virtual time: three workers of connectors A (two tasks) and B (one), a delay of 60 s.

A column is some seconds, a letter the worker that runs the connector or task, ``.`` is nobody.
"""

from __future__ import annotations

from textwrap import dedent

from caughtup.models.simulation.connect import ConnectRun
from caughtup.models.simulation.time_line import TimeLineFigures, draw, figures

SECOND = 1_000
#: Until then the workers of a story's beginning run all work, shared out.
SETTLED_MS = 120 * SECOND
DELAY_MS = 60 * SECOND
LETTERS = {"W1": "1", "W2": "2", "W3": "3"}


def running(*workers: str, eager: bool = False) -> ConnectRun:
    """Start workers two seconds apart, in order, and run until all is calm."""
    run = ConnectRun({"A": 2, "B": 1}, max_delay_ms=DELAY_MS, eager=eager)
    for number, name in enumerate(workers):
        run.time.at(number * 2 * SECOND, lambda name=name: run.start(name))
    run.time.run(SETTLED_MS)
    return run


def told(run: ConnectRun, lasting_ms: int, step_ms: int) -> tuple[list[str], TimeLineFigures]:
    until_ms = SETTLED_MS + lasting_ms
    run.time.run(until_ms)
    spans = run.line.spans(until_ms)
    drawn = draw(spans, run.items, LETTERS, from_ms=SETTLED_MS, until_ms=until_ms, step_ms=step_ms)
    return drawn, figures(spans, run.line.marks, run.items, from_ms=SETTLED_MS, until_ms=until_ms)


def rows(text: str) -> list[str]:
    return dedent(text).strip("\n").split("\n")


def test_case_1_the_first_worker_gets_everything() -> None:
    drawn, _ = told(running("W1"), 10 * SECOND, SECOND)
    assert drawn == [f"{item:<3} 1111111111" for item in ("A", "A-0", "A-1", "B", "B-0")]


def test_case_2_two_join_and_only_what_moves_stops() -> None:
    """Work is revoked in one round and dealt in the next: it stands still for a heartbeat."""
    run = running("W1")
    for name in ("W2", "W3"):
        run.time.at(SETTLED_MS + 2_500, lambda name=name: run.start(name))
    drawn, found = told(run, 20 * SECOND, SECOND)
    assert drawn == rows("""
        A   111...22222222222222
        A-0 111...22222222222222
        A-1 111...33333333333333
        B   11111111111111111111
        B-0 11111111111111111111
    """)
    assert found.rebalances == 2
    assert [bool(one.workers["W1"].revoked) for one in run.decisions[-2:]] == [True, False]


def test_case_3_one_leaves_and_its_work_waits_for_the_delay() -> None:
    run = running("W1", "W2", "W3")
    run.time.at(SETTLED_MS + 5 * SECOND, lambda: run.stop("W2"))
    drawn, found = told(run, 90 * SECOND, 3 * SECOND)
    assert drawn == rows("""
        A   111111111111111111111111111111
        A-0 111111111111111111111111111111
        A-1 22....................11111111
        B   22....................33333333
        B-0 333333333333333333333333333333
    """)
    assert 60 * SECOND < found.still_ms["B"] < 64 * SECOND


def test_case_4_one_comes_back_in_time_and_gets_its_work_back() -> None:
    """After the delay all the same: the leader waits for its end, whoever is there before."""
    run = running("W1", "W2", "W3")
    run.time.at(SETTLED_MS + 5 * SECOND, lambda: run.stop("W2"))
    run.time.at(SETTLED_MS + 25 * SECOND, lambda: run.start("W2"))
    drawn, _ = told(run, 90 * SECOND, 3 * SECOND)
    assert drawn == rows("""
        A   111111111111111111111111111111
        A-0 111111111111111111111111111111
        A-1 22....................22222222
        B   22....................22222222
        B-0 333333333333333333333333333333
    """)


def test_case_5_the_leader_leaves_and_a_new_one_deals_at_once() -> None:
    run = running("W1", "W2", "W3")
    run.time.at(SETTLED_MS + 5 * SECOND, lambda: run.stop("W1"))
    drawn, found = told(run, 90 * SECOND, 3 * SECOND)
    assert drawn == rows("""
        A   113333333333333333333333333333
        A-0 112222222222222222222222222222
        A-1 222222222222222222222222222222
        B   222222222222222222222222222222
        B-0 333333333333333333333333333333
    """)
    assert 0 < found.longest_still_ms < 4 * SECOND


def test_case_6_the_delay_is_forgotten_with_the_leader() -> None:
    """The document lets the new leader go on waiting; Kafka's remembers nothing of it."""
    run = running("W1", "W2", "W3")
    for seconds, happens, name in (
        (5, run.stop, "W2"),
        (25, run.start, "W2"),
        (35, run.stop, "W1"),
        (45, run.start, "W1"),
    ):
        run.time.at(SETTLED_MS + seconds * SECOND, lambda h=happens, n=name: h(n))
    drawn, _ = told(run, 90 * SECOND, 3 * SECOND)
    assert drawn == rows("""
        A   111111111111222222222222222222
        A-0 111111111111222.11111111111111
        A-1 22..........222222222222222222
        B   22..........333333333333333333
        B-0 333333333333333333333333333333
    """)


def test_with_the_eager_protocol_a_bounce_stops_the_world_twice() -> None:
    """Seed 004's beginning: everybody gives up everything, and most of it moves."""
    moved = {}
    for eager in (True, False):
        run = running("W1", "W2", "W3", eager=eager)
        run.time.at(SETTLED_MS + 5 * SECOND, lambda run=run: run.stop("W3"))
        run.time.at(SETTLED_MS + 15 * SECOND, lambda run=run: run.start("W3"))
        told(run, 90 * SECOND, 3 * SECOND)
        spans = run.line.spans(SETTLED_MS + 90 * SECOND)
        moved[eager] = {span.task for span in spans if span.start_ms > SETTLED_MS}
    assert moved == {True: {"A", "A-0", "A-1", "B", "B-0"}, False: {"B-0"}}

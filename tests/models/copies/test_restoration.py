"""Which standbys wait for which restoring actives of their thread."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caughtup.models.copies.figures import CopyFigures
from caughtup.models.copies.restoration import standbys_wait_for, waiting_standbys, with_shared_pace
from caughtup.models.copies.warmups import copy_verdict
from caughtup.models.groups.generation import StreamsGeneration, read_streams_generation
from caughtup.models.histories.trend import Eta, Trend
from caughtup.models.ids import CopyKey, TaskId
from caughtup.models.polls.batch import decode_batch
from tests.support.groups.records import GROUP
from tests.support.groups.streams import Member, generation, process
from tests.support.simulation.copies import LIMIT, MINUTE, SECOND, SimulatedCopy, copy_context

A, B, C = TaskId(0, 0), TaskId(0, 1), TaskId(0, 2)


def test_standbys_begin_when_every_active_of_the_thread_is_restored() -> None:
    assert standbys_wait_for({A: True, C: False, B: False}) == [B, C]
    assert standbys_wait_for({A: True, B: True}) == []
    assert standbys_wait_for({}) == []


def two_threads() -> StreamsGeneration:
    """One process: its first thread has an active and a standby, its second a standby only."""
    (_, metadata), *_ = decode_batch(
        [
            generation(
                1,
                Member("a", 1, active=("0_0",), standby=("0_1",), thread=1),
                Member("a", 1, standby=("0_2",), thread=2),
            )
        ]
    ).groups.items()
    assert metadata is not None
    read = read_streams_generation(GROUP, metadata, {})
    assert read is not None
    return read


def test_a_standby_waits_for_the_actives_of_its_own_thread_only() -> None:
    first = str(process(1))
    restoring = {CopyKey(first, A)}
    assert waiting_standbys(two_threads(), restoring) == {CopyKey(first, B): (A,)}
    assert waiting_standbys(two_threads(), set()) == {}


def test_the_same_task_restoring_in_another_process_holds_up_nobody() -> None:
    assert waiting_standbys(two_threads(), {CopyKey(str(process(2)), A)}) == {}


class SimulatedThread:
    """A thread that restores ``rate`` offsets a second, divided among its copies by weight."""

    def __init__(self, rate: float, *copies: tuple[float, float, float]) -> None:
        """``copies``: the offsets to restore until it is there, its weight, what comes a second."""
        self.rate = rate
        self.weights = [weight for _, weight, _ in copies]
        self.copies = [SimulatedCopy(end=LIMIT + todo, growth=come) for todo, _, come in copies]
        self.arrived: dict[int, float] = {}

    def run(self, duration_ms: int) -> None:
        """Advance time in steps of a tenth of a second."""
        for _ in range(duration_ms // 100):
            there = [
                i for i, copy in enumerate(self.copies) if i in self.arrived or copy.lag <= LIMIT
            ]
            for index in there:
                self.arrived.setdefault(index, self.copies[index].now / SECOND)
                # It goes on with what comes, and no faster.
                self.copies[index].rate = self.copies[index].growth
            spare = self.rate - math.fsum(self.copies[index].rate for index in there)
            under_way = [index for index in range(len(self.copies)) if index not in there]
            total = math.fsum(self.weights[index] for index in under_way)
            for index in under_way:
                self.copies[index].rate = spare * self.weights[index] / total
            for copy in self.copies:
                copy.run(100)

    def figures(self) -> list[CopyFigures]:
        return with_shared_pace([copy.figures() for copy in self.copies])


def etas(figures: list[CopyFigures]) -> list[Eta]:
    return [copy.eta for copy in figures if copy.eta is not None]


def test_the_second_copy_is_there_sooner_than_at_its_own_pace() -> None:
    thread = SimulatedThread(1_000, (60_000, 3, 0), (60_000, 1, 0))
    thread.run(40 * SECOND)
    alone = etas([copy.figures() for copy in thread.copies])
    together = etas(thread.figures())
    assert [eta.seconds for eta in alone] == pytest.approx([40, 200], rel=0.01)
    assert [eta.seconds for eta in together] == pytest.approx([40, 80], rel=0.01)
    assert together[0] == alone[0]
    assert together[1].high == alone[1].high
    assert [copy.restored_before for copy in thread.figures()] == [0, 1]
    thread.run(90 * SECOND)
    assert thread.arrived == pytest.approx({0: 80, 1: 120}, abs=0.5)


def test_a_reason_names_what_the_time_counts_on() -> None:
    thread = SimulatedThread(1_000, (60_000, 3, 0), (60_000, 1, 0))
    thread.run(40 * SECOND)
    _, second = thread.figures()
    verdict, reason = copy_verdict(second, copy_context(), thread.copies[1].now_ms)
    assert verdict == "warming"
    assert reason == (
        "lag 60,000, acceptable 10,000, restores 250.0/s, measured from its own positions, "
        "0.0/s are written: caught up in 80 s (80 s to 3 min), at the pace of the copy that its thread restores before it"
    )


def test_a_copy_that_falls_back_now_is_not_called_chasing_while_it_may_get_more() -> None:
    thread = SimulatedThread(1_000, (60_000, 9, 0), (60_000, 1, 300))
    thread.run(40 * SECOND)
    _, second = thread.figures()
    assert second.eta is not None
    assert second.eta.high == math.inf
    assert math.isfinite(second.eta.seconds)
    verdict, _ = copy_verdict(second, copy_context(), thread.copies[1].now_ms)
    assert verdict == "unknown"
    thread.run(5 * MINUTE)
    assert second.eta.seconds + 40 == pytest.approx(thread.arrived[1], rel=0.02)


def test_a_thread_that_can_do_no_more_leaves_its_copies_chasing() -> None:
    thread = SimulatedThread(500, (600_000, 1, 300), (600_000, 1, 300))
    thread.run(MINUTE)
    assert [eta.seconds for eta in etas(thread.figures())] == [math.inf, math.inf]
    first, _ = thread.figures()
    assert copy_verdict(first, copy_context(), thread.copies[0].now_ms)[0] == "chasing"


def test_a_copy_alone_and_copies_that_stand_or_are_there_share_nothing() -> None:
    moving, standing, there = (
        SimulatedCopy(rate=1_000),
        SimulatedCopy(),
        SimulatedCopy(end=LIMIT),
    )
    for copy in (moving, standing, there):
        copy.run(30 * SECOND)
    figures = [copy.figures() for copy in (moving, standing, there)]
    assert with_shared_pace(figures) == figures
    assert with_shared_pace([]) == []


@settings(print_blob=True, deadline=None, max_examples=25)
@given(
    rate=st.integers(1_000, 20_000),
    copies=st.lists(
        st.tuples(st.floats(60, 240), st.integers(1, 4), st.floats(0, 0.1)),
        min_size=1,
        max_size=4,
    ),
)
def test_copies_of_a_thread_arrive_when_their_figures_say(
    rate: int, copies: list[tuple[float, int, float]]
) -> None:
    """``copies``: way in seconds of the whole thread, weight, and share of the rate that comes."""
    thread = SimulatedThread(rate, *((way * rate, weight, rate * s) for way, weight, s in copies))
    thread.run(40 * SECOND)
    reported = etas(thread.figures())
    while len(thread.arrived) < len(copies):
        assert thread.copies[0].now < 30 * MINUTE
        thread.run(10 * SECOND)
    for index, eta in enumerate(reported):
        truth = thread.arrived[index] - 40
        assert eta.seconds == pytest.approx(truth, rel=0.02, abs=1.0)
        assert eta.low - 1 - truth * 0.01 <= truth <= eta.high + 1


@settings(print_blob=True, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(-10_000, 10_000),
            st.integers(0, 10_000),
            st.integers(0, 10**6),
            st.floats(0, 1),
        ),
        max_size=6,
    )
)
def test_a_thread_makes_no_time_longer_and_no_bound_narrower(
    copies: list[tuple[int, int, int, float]],
) -> None:
    """``copies``: closing speed, growth, lag, and how much of the time its lower bound is."""
    figures = []
    for speed, growth, lag, share in copies:
        seconds = lag / speed if speed > 0 else math.inf
        figures.append(
            CopyFigures(
                lag=None,
                provenance="measured",
                limit=0,
                age_seconds=0.0,
                caught_up_since_ms=None,
                estimated_lag=lag,
                closing=Trend(speed, 0.0, 0.0, 60.0, 9),
                rate=max(0.0, speed + growth),
                growth=growth,
                pace="own",
                eta=Eta(seconds, seconds * share if speed > 0 else math.inf, math.inf),
                stood_seconds=0.0,
                allowed_seconds=None,
                set_back=None,
                seen_every_seconds=None,
            )
        )
    for before, after in zip(figures, with_shared_pace(figures), strict=True):
        assert before.eta is not None
        assert after.eta is not None
        assert 0 <= after.eta.low <= after.eta.seconds <= before.eta.seconds
        assert after.eta.low <= before.eta.low
        assert after.eta.high == before.eta.high

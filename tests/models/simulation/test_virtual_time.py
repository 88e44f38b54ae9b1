"""Virtual time: order, cancelling, and a story that goes round."""

from __future__ import annotations

import pytest

from caughtup.models.simulation.virtual_time import EndlessError, VirtualTime


def test_what_is_due_happens_in_the_order_of_time_and_then_of_planning() -> None:
    time, happened = VirtualTime(), list[tuple[int, str]]()

    def note(name: str) -> None:
        happened.append((time.now_ms, name))

    time.at(5, lambda: note("b"))
    time.at(3, lambda: note("a"))
    time.at(5, lambda: note("c"))
    time.after(4, lambda: time.at(1, lambda: note("late, so at once")))
    time.run(10)
    assert happened == [(3, "a"), (4, "late, so at once"), (5, "b"), (5, "c")]
    assert time.now_ms == 10


def test_nothing_happens_once_it_is_cancelled_or_before_its_time() -> None:
    time, happened = VirtualTime(), list[str]()
    event = time.at(2, lambda: happened.append("cancelled"))
    time.at(20, lambda: happened.append("later"))
    event.cancel()
    time.run(10)
    assert happened == []
    time.run(20)
    assert happened == ["later"]


def test_a_story_that_goes_round_ends_at_a_bound() -> None:
    time = VirtualTime()

    def again() -> None:
        time.after(0, again)

    again()
    with pytest.raises(EndlessError, match="1,000 events until 0 ms"):
        time.run(10, most_events=1_000)

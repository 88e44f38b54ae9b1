"""Generations from a log, decided again: what its leader's clock said is told by the delay."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from caughtup.demo.connect.decided_again import decide_again
from caughtup.demo.connect.group_log import LoggedGeneration
from caughtup.models.connect.generation import ConnectGeneration, ConnectMember
from caughtup.models.wire.connect_protocol import NOTHING, WorkerAssignment, WorkerState
from tests.models.connect.building import work

D_MS = 12_000
#: Worker → what it owns, what it is told to start, what it is told to stop.
RoundOutcome = Mapping[str, tuple[str, str, str]]


def logged(number: int, at_ms: int, told: RoundOutcome, delay_ms: int = 0) -> LoggedGeneration:
    """Make a generation that W1 leads and whose record is written 20 ms later."""
    workers = {}
    for name, (owned, assigned, revoked) in told.items():
        has = WorkerAssignment(2, 0, "W1", "", 9, work(owned), NOTHING, 0)
        is_told = WorkerAssignment(2, 0, "W1", "", 9, work(assigned), work(revoked), delay_ms)
        said = WorkerState(2, "", 9, has if owned else None)
        workers[name] = ConnectMember(name, name, "", said, is_told)
    generation = ConnectGeneration("g", number, "sessioned", "W1", at_ms, workers)
    return LoggedGeneration(generation, at_ms + 20)


FIRST = logged(1, 0, {"W1": ("A A-0", "", ""), "W2": ("B A-1", "", "")})
LEFT = logged(2, 1_000, {"W1": ("A A-0", "", "")}, D_MS)


def decided(*generations: LoggedGeneration) -> list[bool]:
    configured = {"A": 2, "B": 0}
    return [one.match for one in decide_again(generations, lambda _: configured, D_MS)]


# The leader decided 7 ms after its group's state changed, and 5,000 ms later W2 is back.
@pytest.mark.parametrize(("delay_ms", "match"), [(D_MS - 5_000, True), (D_MS - 4_000, False)])
def test_what_is_left_of_a_delay_has_to_fit_the_log_s_times(delay_ms: int, match: bool) -> None:
    back = logged(3, 6_007, {"W1": ("A A-0", "", ""), "W2": ("", "", "")}, delay_ms)

    assert decided(FIRST, LEFT, back) == [True, True, match]


def test_what_waited_goes_to_who_came_back_when_the_delay_is_over() -> None:
    back = logged(3, 6_007, {"W1": ("A A-0", "", ""), "W2": ("", "", "")}, D_MS - 5_000)
    over = logged(4, 13_010, {"W1": ("A A-0", "", ""), "W2": ("", "B A-1", "")})
    elsewhere = logged(4, 13_010, {"W1": ("A A-0", "B A-1", ""), "W2": ("", "", "")})
    early = logged(4, 9_000, {"W1": ("A A-0", "", ""), "W2": ("", "B A-1", "")})

    assert decided(FIRST, LEFT, back, over)[-1]
    assert not decided(FIRST, LEFT, back, elsewhere)[-1]
    assert not decided(FIRST, LEFT, back, early)[-1]

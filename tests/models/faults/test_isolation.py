"""Failures cost their subject a turn, are counted by part and cause, and kept in bounds."""

from __future__ import annotations

import pytest

from caughtup.models.errors import DecodeError
from caughtup.models.faults import FAULTS_KEPT, Fault, Faults


def test_a_failure_is_counted_and_what_follows_goes_on() -> None:
    faults = Faults()
    for group in ("a", "b", "a"):
        with faults.isolated("assessment", group, 5):
            raise OverflowError("too large")
    assert faults.totals == {("assessment", "OverflowError"): 3}
    assert faults.newest() == [
        Fault("assessment", "a", "OverflowError", "too large", 2, 5),
        Fault("assessment", "b", "OverflowError", "too large", 1, 5),
    ]


def test_an_error_of_ours_is_counted_by_its_code() -> None:
    faults = Faults()
    faults.note("scrape", "orders", DecodeError("truncated", "4 bytes wanted"), 1)
    assert faults.totals == {("scrape", "truncated"): 1}


def test_the_end_of_the_process_is_no_failure() -> None:
    faults = Faults()
    with pytest.raises(KeyboardInterrupt), faults.isolated("page", "orders", 1):
        raise KeyboardInterrupt
    assert not faults.totals


def test_what_failed_takes_down_what_it_had() -> None:
    faults, shown = Faults(), {"orders": "ok"}
    with faults.isolated("assessment", "orders", 5, lambda error: shown.pop("orders")):
        pass
    assert shown == {"orders": "ok"}
    with faults.isolated("assessment", "orders", 5, lambda error: shown.pop("orders")):
        raise OverflowError
    assert shown == {}


def test_an_item_that_fails_costs_itself_alone() -> None:
    faults, done = Faults(), []
    for number in (1, 0, 1, 0):
        with faults.isolated("commits", f"of {number}", 5):
            done.append(1 // number)
    assert done == [1, 1]
    assert faults.totals == {("commits", "ZeroDivisionError"): 2}
    (fault,) = faults.newest()
    assert (fault.subject, fault.times) == ("of 0", 2)


def test_what_is_kept_is_bounded_and_the_newest_stays() -> None:
    faults = Faults()
    for number in range(FAULTS_KEPT + 50):
        faults.note("page", f"group-{number}" + "x" * 1_000, ValueError("y" * 1_000), number)
    kept = faults.newest()
    assert len(kept) == FAULTS_KEPT
    assert kept[0].last_ms == FAULTS_KEPT + 49
    assert max(len(fault.subject) for fault in kept) == 200
    assert max(len(fault.message) for fault in kept) == 200
    assert faults.totals == {("page", "ValueError"): FAULTS_KEPT + 50}


def test_whoever_listens_is_told_of_each_with_the_error() -> None:
    noted: list[tuple[Fault, Exception]] = []
    faults = Faults(lambda fault, error: noted.append((fault, error)))
    error = ValueError("no")
    faults.note("page", "orders", error, 1)
    assert noted == [(Fault("page", "orders", "ValueError", "no", 1, 1), error)]

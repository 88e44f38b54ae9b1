"""Rules and orders done wrong, Java's of a set of clients above all: decisions must differ then."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from caughtup.models.assignment.decision import Decision
from caughtup.models.assignment.scenario import Scenario
from caughtup.models.assignors.java.hash_order import ClientHashOrder

#: Where something is, its name, and what takes its place.
Wrong = tuple[Any, str, Callable[..., Any] | Any]


def as_filled(self: ClientHashOrder, places: list[int]) -> list[int]:
    """Return places as they were put in."""
    return list(places)


def all_but_as_filled(self: ClientHashOrder, excluded: set[int]) -> list[int]:
    """Return everybody's places but some, as they were put in."""
    return [place for place in self.everyone if place not in excluded]


def assert_noticed(
    monkeypatch: pytest.MonkeyPatch,
    wrong: Wrong,
    decided: Iterable[tuple[Scenario, Decision]],
    decide: Callable[[Scenario], Decision],
) -> None:
    """Fail unless some scenario is decided otherwise with this done wrong."""
    monkeypatch.setattr(*wrong)
    assert any(decide(scenario) != decision for scenario, decision in decided)

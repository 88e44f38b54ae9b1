"""Who is active among instances that come and go."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caughtup.models.election import Candidate, elect

NEW = Candidate("host:1", active=False, caught_up=False, since_ms=5)
CANDIDATES = st.builds(
    Candidate, st.just("host:1"), st.booleans(), st.booleans(), st.integers(0, 3)
)


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        (replace(NEW, active=True), replace(NEW, caught_up=True, since_ms=1)),
        (replace(NEW, caught_up=True), replace(NEW, since_ms=1)),
        (replace(NEW, since_ms=1), NEW),
    ],
    ids=["the active one stays", "tables that are read", "there for longer"],
)
def test_who_is_preferred(better: Candidate, worse: Candidate) -> None:
    assert elect({"b": better, "a": worse}) == "b"
    assert elect({"b": worse, "a": better}) == "a"


@given(st.dictionaries(st.text("abc", max_size=2), CANDIDATES, min_size=1), st.randoms())
def test_whoever_counts_the_result_is_the_same_and_an_active_one_stays(
    candidates: dict[str, Candidate], order: object
) -> None:
    names = list(candidates)
    order.shuffle(names)  # type: ignore[attr-defined]
    chosen = elect({name: candidates[name] for name in names})
    assert chosen == elect(candidates)
    assert candidates[chosen].active == any(one.active for one in candidates.values())

"""What is wrong with several instances together is noticed, and nothing else is."""

from __future__ import annotations

import pytest

from tests.chaos.rules import Watched
from tests.chaos.said import COMMITTED, GROUP_LAG, Figure, Said
from tests.chaos.sharing import (
    UNSHARED_SECONDS,
    Unshared,
    had_twice,
    is_complete,
    united,
)

A, B = (Watched(name, (("words", 0),)) for name in "ab")


def told(asked: float, *groups: str, ready: int = 200, age: float = 0.0) -> Said:
    figures = {Figure(COMMITTED, group, "words", 0): 7.0 for group in groups}
    # On its page, each instance has the groups of all.
    figures |= {Figure(GROUP_LAG, group): 1.0 for group in "ab"}
    return Said(asked, asked + 0.5, ready, "", 200, figures, age)


def test_two_that_are_ready_may_not_have_a_group_at_once() -> None:
    first, other, again = told(1, "a"), told(2, "a", "b"), told(3, "a")
    (found,) = had_twice(first, other, again)
    assert found.said == "two that are ready have a"
    assert list(had_twice(told(1, "b"), other, again)) == []
    assert list(had_twice(first, told(2, "a", ready=503), again)) == []


def test_all_is_complete_if_each_group_is_with_one() -> None:
    assert is_complete([told(1, "a"), told(1, "b")], [A, B])
    assert not is_complete([told(1, "a"), told(1, "a", "b")], [A, B])
    assert not is_complete([told(1, "a"), told(1)], [A, B])


def test_together_they_are_ready_if_all_are_and_as_old_as_the_oldest() -> None:
    both = united([told(1, "a", age=3.0), told(2, "b", ready=503)])
    assert not both.is_ready
    assert (both.asked, both.answered, both.age_seconds) == (1, 2.5, 3.0)
    assert {figure.group for figure in both.figures} == {"a", "b"}


@pytest.mark.parametrize("can_be", [True, False])
def test_a_group_may_be_with_none_for_a_hand_over_if_one_could_have_it(can_be: bool) -> None:
    unshared, found = Unshared(), []
    for second in range(int(UNSHARED_SECONDS) + 3):
        found += unshared.judge({"a": second == 0, "b": True}, 100.0 + second, can_be=can_be)
    assert len(found) == can_be
    assert unshared.longest["b"] <= 1
    if can_be:
        assert "no instance has had a for 31 s" in found[0].said

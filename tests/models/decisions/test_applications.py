"""Only the last values of a group are kept, and of no more groups than there may be."""

from __future__ import annotations

import pytest

from caughtup.models.decisions import applications
from caughtup.models.decisions.applications import LastByGroup


def test_the_last_values_of_each_group_are_kept_in_their_order() -> None:
    kept = LastByGroup[int]()
    assert all(kept.add("b", number) for number in range(6))
    assert kept.add("a", 9)
    assert kept.of("b") == (2, 3, 4, 5)
    assert (kept.newest("b"), kept.newest("c"), kept.of("c")) == (5, None, ())
    assert list(kept.each_newest()) == [("a", 9), ("b", 5)]
    assert kept.groups() == {"a", "b"}
    assert kept.forget("b")
    assert not kept.forget("b")
    assert kept.groups() == {"a"}


def test_of_too_many_groups_no_more_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(applications, "MOST_GROUPS", 1)
    kept = LastByGroup[int]()
    assert kept.add("a", 1)
    assert not kept.add("b", 1)
    assert kept.add("a", 2)
    assert kept.of("a") == (1, 2)

"""What happened of late: bounded by number, by group and by length."""

from __future__ import annotations

from caughtup.models.recent.happenings import Happening, Happenings


def a_rebalance(number: int, group: str) -> Happening:
    return Happening(number, "rebalance", f"generation {number}", None, group)


def test_the_newest_come_first_of_all_and_of_each_group() -> None:
    happenings = Happenings()
    for number in range(6):
        happenings.note(a_rebalance(number, "even" if number % 2 == 0 else "odd"))
    assert [one.at_ms for one in happenings.newest(3)] == [5, 4, 3]
    assert [one.at_ms for one in happenings.of("even")] == [4, 2, 0]
    assert list(happenings.of("nobody")) == []
    happenings.forget("even")
    assert list(happenings.of("even")) == []


def test_neither_number_nor_groups_nor_words_grow_without_end() -> None:
    happenings = Happenings()
    for number in range(20_000):
        happenings.note(a_rebalance(number, f"group-{number}"))
        happenings.note(Happening(number, "verdict", "x" * 9_000, "y" * 9_000, "busy"))
    assert len(happenings.newest(10**6)) == 1_000
    assert len(list(happenings.of("busy"))) == 100
    assert list(happenings.of("group-0")) == []
    assert len(list(happenings.of("group-19999"))) == 1
    (newest, _) = happenings.newest(2)
    assert newest.why is not None
    assert len(newest.text) == len(newest.why) == 500

"""What happened of late: bounded by number, by group and by length."""

from __future__ import annotations

import pytest

from caughtup.models.groups.membership import Member, Membership
from caughtup.models.recent.happenings import Happening, Happenings, rebalance


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


AT_MS = 1_800_000_000_000


def group(generation: int, **members: str) -> Membership:
    """Return a group in a generation; ``members`` are client ids by member id."""
    found = tuple(Member(member, client, "/10.0.0.1") for member, client in members.items())
    return Membership("classic", generation, found, {}, frozenset())


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (group(5, m1="a"), group(6, m1="a", m2="b"), "generation 5 → 6: b joined"),
        (group(5, m1="a", m2="b"), group(7, m2="b"), "generation 5 → 7: a left"),
        (
            group(5, m1="a", m2="b"),
            group(6, m1="a", m3="c"),
            "generation 5 → 6: c joined, b left",
        ),
        (
            group(5, m1="a", m2="b"),
            group(6, m1="a", m3="b"),
            "generation 5 → 6: b came back as another member",
        ),
        (group(5, m1="a"), group(6), "generation 5 → 6: everybody left"),
        (
            group(5),
            group(6, **{f"m{n}": f"c{n}" for n in range(7)}),
            "generation 5 → 6: c0, c1, c2, c3, c4 and 2 more joined",
        ),
        (
            group(5),
            group(6, m1="", m2="two", m3="two"),
            "generation 5 → 6: m1, two (2 members) joined",
        ),
        (
            group(5, m1="a"),
            group(6, m1="a", m2="b-StreamThread-1-consumer", m3="b-StreamThread-2-consumer"),
            "generation 5 → 6: b (2 members) joined",
        ),
        (
            group(5, m1="a"),
            group(6, m1="a"),
            "generation 5 → 6: a member requested it; no member joined or left",
        ),
    ],
)
def test_who_joined_and_left_is_named(before: Membership, after: Membership, said: str) -> None:
    happening = rebalance("orders", before, after, AT_MS)
    assert happening is not None
    assert (happening.text, happening.group, happening.at_ms) == (said, "orders", AT_MS)


def test_a_group_in_the_same_generation_was_not_dealt_anew() -> None:
    assert rebalance("orders", group(5, m1="a"), group(5, m1="a"), AT_MS) is None


@pytest.mark.parametrize(("due_ms", "was_due"), [(AT_MS - 3_000, True), (AT_MS + 60_000, False)])
def test_a_rebalance_that_was_due_is_told_from_one_that_was_not(due_ms: int, was_due: bool) -> None:
    happening = rebalance("orders", group(5, m1="a"), group(6, m1="a"), AT_MS, due_ms)
    assert happening is not None
    assert ("was due" in happening.text) is was_due

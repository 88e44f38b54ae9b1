"""Why a group was dealt anew, by its members before and after."""

from __future__ import annotations

import pytest

from caughtup.models.groups.membership import Member, Membership
from caughtup.models.recent.rebalances import rebalance

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
            "generation 5 → 6: a member asked for it; nobody joined or left",
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

"""What happened of late: bounded by number, by group and by length."""

from __future__ import annotations

import pytest

from caughtup.models.rebalances.rebalance import Cause, CauseKind, GroupRebalance
from caughtup.models.recent.happenings import Happening, Happenings, rebalanced


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


def who(kind: CauseKind, client: str, member: str = "m1", why: str = "") -> Cause:
    return Cause(kind, "certain", client, member, why=why)


@pytest.mark.parametrize(
    ("causes", "members", "said"),
    [
        ([who("joined", "b")], 2, "generation 5 → 6: b joined"),
        ([who("left", "a"), who("joined", "c")], 2, "generation 5 → 6: a left, c joined"),
        ([who("left", "a")], 0, "generation 5 → 6: everybody left"),
        (
            [who("joined", f"c{number}") for number in range(7)],
            7,
            "generation 5 → 6: c0, c1, c2, c3, c4 and 2 more joined",
        ),
        (
            [who("joined", ""), who("joined", "two"), who("joined", "two")],
            3,
            "generation 5 → 6: m1, two (2 members) joined",
        ),
        (
            [who("joined", f"b-StreamThread-{number}-consumer") for number in (1, 2)],
            3,
            "generation 5 → 6: b (2 members) joined",
        ),
        (
            [Cause("topic_grew", "certain", topic="orders")],
            1,
            "generation 5 → 6: orders got more partitions",
        ),
        (
            [Cause("requested", "possible")],
            1,
            "generation 5 → 6: a member requested it; no member joined or left",
        ),
    ],
)
def test_what_caused_a_rebalance_is_said_in_one_line(
    causes: list[Cause], members: int, said: str
) -> None:
    rebalance = GroupRebalance(
        generation=6, causes=causes, members=members, partitions=6, moved=3, at_ms=AT_MS, after=5
    )
    happening = rebalanced("orders", rebalance, AT_MS + 5)
    assert (happening.text, happening.group, happening.at_ms) == (said, "orders", AT_MS)
    assert happening.why is None


def test_the_evidence_is_the_reason_and_a_rebalance_of_unknown_time_is_of_now() -> None:
    causes = [who("left", "a", why="its last commit was 2.0 s before")]
    rebalance = GroupRebalance(generation=6, causes=causes, members=1, partitions=6, moved=0)
    happening = rebalanced("orders", rebalance, AT_MS)
    assert (happening.why, happening.at_ms) == (causes[0].why, AT_MS)

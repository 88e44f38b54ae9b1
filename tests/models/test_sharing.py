"""Instances that come and go share partitions: none is ever with two, and few move."""

from __future__ import annotations

import random
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caughtup.models.sharing import (
    LISTED_MS,
    MOST_INSTANCES,
    Claim,
    HeldPartitions,
    Lister,
    PartitionShare,
    Peer,
    TopicListers,
    share_partitions,
    unclaimed_slots,
)

COUNT = 50
NONE = frozenset[int]()


def claims(**held: Claim) -> dict[str, Claim]:
    return held


def settle(current: dict[str, Claim]) -> tuple[dict[str, Claim], int]:
    """Rebalance until nothing changes; return the claims and the number of partitions that moved."""
    moved = 0
    for _ in range(4):
        shared = share_partitions(current, COUNT)
        owners: dict[int, str] = {n: m for m, one in current.items() for n in one.partitions}
        given = [number for share in shared.shares.values() for number in share.partitions]
        assert len(given) == len(set(given)), "a partition is given to one member"
        after = {}
        for member, share in shared.shares.items():
            for number in share.partitions:
                assert owners.get(number, member) == member, "whoever has it gives it up first"
                moved += owners.get(number) is None
            after[member] = Claim(frozenset(share.partitions), share.slot, current[member].since_ms)
        if after == current:
            return current, moved
        current = after
    raise AssertionError("it does not settle")


def test_the_first_gets_all_and_a_second_half() -> None:
    alone, _ = settle(claims(a=Claim(NONE, None, 1)))
    assert alone["a"] == Claim(frozenset(range(COUNT)), 0, 1)
    both, moved = settle({**alone, "b": Claim(NONE, None, 2)})
    assert sorted(len(one.partitions) for one in both.values()) == [25, 25]
    assert both["b"].slot == 1
    assert moved == 25, "nothing else moves"


def test_what_two_claim_is_with_neither_until_both_gave_it_up() -> None:
    shared = share_partitions(
        claims(a=Claim(frozenset({1, 2}), 0, 1), b=Claim(frozenset({2, 3}), 1, 2)), 4
    )
    assert all(2 not in share.partitions for share in shared.shares.values())
    assert 2 not in shared.orphaned


def test_only_what_nobody_claimed_is_orphaned() -> None:
    shared = share_partitions(claims(a=Claim(frozenset({0, 1}), 3, 1)), 4)
    assert shared.shares == {"a": PartitionShare(3, (0, 1, 2, 3))}
    assert shared.orphaned == {2, 3}
    assert unclaimed_slots(claims(a=Claim(NONE, 3, 1))) == [
        slot for slot in range(MOST_INSTANCES) if slot != 3
    ]


def test_a_claim_of_what_is_no_partition_keeps_nothing_from_anybody() -> None:
    shared = share_partitions(claims(a=Claim(frozenset({-1, 4, 10**12}), -7, 1)), 4)
    assert shared.shares == {"a": PartitionShare(0, (0, 1, 2, 3))}


def test_more_instances_than_slots_stand_by() -> None:
    many, _ = settle({f"m{n:02}": Claim(NONE, None, n) for n in range(MOST_INSTANCES + 3)})
    without = [member for member, one in many.items() if one.slot is None]
    assert without == [f"m{n}" for n in range(MOST_INSTANCES, MOST_INSTANCES + 3)]
    assert all(not many[member].partitions for member in without)


def test_a_slot_that_two_claim_stays_with_the_older() -> None:
    shared = share_partitions(claims(a=Claim(NONE, 1, 9), b=Claim(NONE, 1, 2)), 4)
    assert (shared.shares["a"].slot, shared.shares["b"].slot) == (0, 1)


@pytest.mark.parametrize("seed", range(20))
def test_however_they_come_and_go_it_stays_even_and_moves_little(seed: int) -> None:
    rng = random.Random(seed)
    current: dict[str, Claim] = {}
    for step in range(30):
        before = dict(current)
        if current and rng.random() < 0.4:
            del current[rng.choice(sorted(current))]
        else:
            current[f"m{step}"] = Claim(NONE, None, step)
        if not current:
            continue
        kept = sum(len(one.partitions) for one in current.values())
        current, moved = settle(current)
        sizes = [len(one.partitions) for one in current.values() if one.slot is not None]
        assert sum(sizes) == COUNT
        assert max(sizes) - min(sizes) <= 1
        slots = [one.slot for one in current.values() if one.slot is not None]
        assert len(slots) == len(set(slots))
        orphans = COUNT - kept if before else COUNT
        share = -(-COUNT // len(current))
        assert moved <= orphans + share, (seed, step, moved)


def test_without_shares_an_instance_has_every_group() -> None:
    held = HeldPartitions()
    assert held.has_group("orders")
    assert not held.are_shared
    held.numbers = NONE
    assert not held.has_group("orders"), "how many partitions there are is not known"
    held.count, held.numbers = COUNT, frozenset(range(COUNT))
    assert held.has_group("orders")
    assert held.peer_of("orders") is None
    held.numbers, other = NONE, Peer("b:1", "http://b:8080")
    assert not held.has_group("orders")
    assert held.peer_of("orders") is None, "nobody has been given it"
    held.others = dict.fromkeys(range(COUNT), other)
    assert held.peer_of("orders") == other
    assert held.peers() == [other]


@given(seed=st.integers(0, 1 << 32), count=st.integers(1, 6))
def test_one_of_those_that_read_a_topic_lists_it(seed: int, count: int) -> None:
    names = [f"host:{number}" for number in range(count)]
    listers = {name: TopicListers() for name in names}
    numbers = dict.fromkeys(names, 1)
    drawn = Random(seed)
    now = 0

    def turn(wanting: list[str], present: set[str]) -> list[str]:
        """Let each instance list the topic that has to; return these."""
        listing = []
        for name in drawn.sample(wanting, len(wanting)):
            if listers[name].lister("orders", present - {name}, now, LISTED_MS) is None:
                listing.append(name)
                for own, heard in listers.items():
                    heard.note("orders", Lister(name, numbers[name]), now, own)
        return listing

    wanting = drawn.sample(names, drawn.randint(1, count))
    present = set(names)
    for _ in range(2):
        turn(wanting, present)
    (first,) = turn(wanting, present)
    # It has gone.
    present.discard(first)
    others = [name for name in wanting if name != first]
    turn(others, present)
    listing = turn(others, present)
    assert len(listing) == bool(others)
    if others:
        # Its groups no longer read the topic: its list has another number, on any topic.
        numbers[listing[0]] += 1
        for own, heard in listers.items():
            heard.note("another", Lister(listing[0], numbers[listing[0]]), now, own)
        rest = [name for name in others if name not in listing]
        turn(rest, present)
        listing = turn(rest, present)
        assert len(listing) == bool(rest)
        # It is silent, though it is there.
        now += LISTED_MS
        last = [name for name in rest if name not in listing]
        turn(last, present)
        assert len(turn(last, present)) == bool(last)


def test_of_two_that_list_a_topic_one_leaves_it_to_the_other_while_that_is_there() -> None:
    one, two = Lister("a:1", 1), Lister("a:2", 1)
    left = []
    for number in range(50):
        topic, first, second = f"orders-{number}", TopicListers(), TopicListers()
        first.note(topic, two, 5, one.name)
        second.note(topic, one, 5, two.name)
        by_first = first.lister(topic, {two.name}, 5, 9)
        assert {by_first, second.lister(topic, {one.name}, 5, 9)} in ({None, one}, {None, two})
        assert first.lister(topic, set(), 5, 9) is None
        assert first.lister("payments", {two.name}, 5, 9) is None
        left.append(by_first is not None)
    assert 10 < sum(left) < 40


def test_of_an_instance_that_is_silent_topics_are_taken_back_at_once() -> None:
    listers, other = TopicListers(), Lister("a:2", 7)
    topics = [f"orders-{number}" for number in range(20)]
    for topic in topics:
        listers.note(topic, other, 1_000, "a:1")
    left = [topic for topic in topics if listers.lister(topic, {"a:2"}, 1_000, 4_000)]
    assert 0 < len(left) < len(topics)
    listers.note("another", other, 5_000, "a:1")
    assert listers.heard_ms("a:2") == 5_000
    assert all(listers.lister(topic, {"a:2"}, 8_999, 4_000) == other for topic in left)
    assert not any(listers.lister(topic, {"a:2"}, 9_000, 4_000) for topic in left)
    assert listers.heard_ms("a:1") is None


def test_records_in_any_order_leave_no_topic_to_an_earlier_list() -> None:
    listers = TopicListers()
    topic = next(
        topic
        for topic in (f"orders-{number}" for number in range(50))
        if not listers.note(topic, Lister("a:2", 1), 5, "a:1")
        and listers.lister(topic, {"a:2"}, 5, 9)
    )
    listers.note("another", Lister("a:2", 2), 6, "a:1")
    assert listers.lister(topic, {"a:2"}, 6, 9) is None
    listers.note(topic, Lister("a:2", 1), 7, "a:1")
    assert listers.lister(topic, {"a:2"}, 7, 9) is None
    listers.note(topic, Lister("a:2", 2), 8, "a:1")
    assert listers.lister(topic, {"a:2"}, 8, 9) == Lister("a:2", 2)


@given(st.text(), st.integers(0, 10**15 - 1))
def test_a_lister_is_read_as_it_is_written(name: str, number: int) -> None:
    assert Lister.parse(Lister(name, number).text) == Lister(name, number)


@pytest.mark.parametrize(
    "text", ["", "host:1", "host:1/", "host:1/x", "host:1/-1", "h/" + "9" * 40]
)
def test_what_is_no_lister_is_none(text: str) -> None:
    assert Lister.parse(text) is None


def test_while_nobody_can_be_fenced_members_keep_what_they_claim_and_get_no_slot() -> None:
    current = claims(
        a=Claim(frozenset({1, 2}), 1, 1), b=Claim(NONE, 2, 2), new=Claim(NONE, None, 3)
    )
    shared = share_partitions(current, 6)
    assert shared.orphaned == {0, 3, 4, 5}
    assert shared.shares["new"].slot == 0, "of one that is gone, and may still write"
    kept = shared.unfenced(current)
    assert kept.orphaned == NONE
    assert kept.shares == {
        "a": PartitionShare(1, (1, 2)),
        "b": PartitionShare(2, ()),
        "new": PartitionShare(None, ()),
    }

"""The orders of members and topics in a coordinator's hash tables."""

from __future__ import annotations

import random
from itertools import permutations
from uuid import UUID

from caughtup.models.assignors.java.timeline_map import (
    in_timeline_order,
    is_order_certain,
    orders_of_members,
)
from caughtup.models.assignors.java.uuids import uuid_hash_code, uuid_order, uuids_in_hash_order
from tests.support.groups.coordinator import MemberTable


def members(count: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    return [str(UUID(int=rng.getrandbits(128))) for _ in range(count)]


def test_the_order_is_that_of_a_table_to_which_members_were_added() -> None:
    certain = 0
    for seed in range(300):
        names = members(seed % 25 + 1, seed)
        table = MemberTable()
        for name in names:
            table.add(name)
        if is_order_certain(names):
            certain += 1
            assert in_timeline_order(names) == list(table), seed
    assert certain > 150


def test_a_table_that_grew_for_members_that_left_is_among_the_orders() -> None:
    for seed in range(100):
        names = members(14, seed)
        table = MemberTable()
        for name in names:
            table.add(name)
        for name in names[:8]:
            table.remove(name)
        assert in_timeline_order(names[8:], grown=1) == list(table)


def test_where_the_order_is_certain_that_of_joining_does_not_matter() -> None:
    for seed in range(60):
        names = members(4, seed)
        if is_order_certain(names):
            found = {tuple(next(orders_of_members(one, ()))) for one in permutations(names)}
            assert len(found) == 1, seed


def test_orders_are_of_all_members_and_different() -> None:
    for seed in range(50):
        names = members(20, seed)
        found = list(orders_of_members(names, names[-2:]))
        assert len(set(map(tuple, found))) == len(found)
        assert all(sorted(one) == sorted(names) for one in found)
    assert list(orders_of_members([], ())) == [[]]


def test_uuids_compare_as_signed_halves_and_hash_as_javas() -> None:
    negative, positive = bytes([0x80, *[0] * 15]), bytes(16)
    assert uuid_order(negative) < uuid_order(positive)
    assert uuid_hash_code(UUID("00000000-0000-0001-0000-000000000002").bytes) == 3
    assert uuid_hash_code(UUID("00000001-0000-0000-0000-000000000002").bytes) == 3
    assert uuids_in_hash_order([bytes([0] * 15 + [n]) for n in (3, 17, 1)]) == [
        bytes([0] * 15 + [n]) for n in (17, 1, 3)
    ]

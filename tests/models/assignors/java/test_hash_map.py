"""A table that is made at once walks its keys as one to which they were added one after the other."""

from __future__ import annotations

import random

import pytest

from caughtup.models.assignors.java.hash_map import JavaHashMap, in_hash_order


@pytest.mark.parametrize("seed", range(40))
def test_keys_that_come_together_are_walked_as_keys_that_come_in_turn(seed: int) -> None:
    rng = random.Random(seed)
    # Multiples of a large power of two fall into few buckets, which become trees.
    step = rng.choice([1, 1, 7, 31, 1 << 10])
    keys = [step * one for one in rng.sample(range(4_000), rng.randint(0, 300))]
    table = rng.choice([1, 16, 64, 512])
    in_turn = JavaHashMap[int](int, table)
    for key in keys:
        in_turn.add(key)
    at_once = JavaHashMap[int](int, table, keys)
    assert list(at_once) == list(in_turn)
    assert len(at_once) == len(in_turn) == len(keys)
    assert in_hash_order(int, keys) == list(JavaHashMap[int](int, keys=keys))
    for key in keys[::3]:
        in_turn.remove(key)
        at_once.remove(key)
    assert list(at_once) == list(in_turn)

"""Rows sorted by counting, beside a sort by comparison."""

from __future__ import annotations

import numpy as np
import pytest

from caughtup.pipelines.history.buckets.order import sort_rows

SEED = 5


def check(keys: list[np.ndarray], log_offset: np.ndarray) -> None:
    order, first = sort_rows(keys, log_offset)
    expected = np.lexsort((log_offset, *reversed(keys)))
    np.testing.assert_array_equal(order, expected)
    rows = list(zip(*(key[expected].tolist() for key in keys), strict=True))
    assert first.tolist() == [at == 0 or rows[at] != rows[at - 1] for at in range(len(rows))]


@pytest.mark.parametrize("rows", [0, 1, 2, 1_000, 200_000])
@pytest.mark.parametrize("most", [1, 7, 400, 1 << 31])
def test_rows_are_sorted_by_each_key_and_by_their_place_in_the_log(rows: int, most: int) -> None:
    random = np.random.default_rng(SEED)
    keys = [random.integers(0, most, rows) for _ in range(3)]
    in_order = np.arange(rows)
    check(keys, in_order)
    check(keys, random.permutation(in_order))


def test_numbers_below_0_and_far_apart_are_sorted_too() -> None:
    keys = [np.array([5, -1, 5, 1 << 40, -1]), np.array([0, 3, 0, 9, 1])]
    check(keys, np.array([7, 1, 3, 2, 0]))


def test_more_keys_than_16_bits_hold_are_sorted() -> None:
    random = np.random.default_rng(SEED)
    key = random.permutation(100_000)
    check([key, np.zeros(len(key), np.int64)], np.arange(len(key)))

"""Sort rows by columns of small numbers: by counting, where a comparison of rows would take longer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from caughtup.pipelines.history.buckets.lag_columns import Flags, Ints, starts

#: The largest table of ranks: this many entries for each row, or this many in all.
_A_ROW, _LEAST = 4, 1 << 16
#: Numpy sorts numbers of 16 bits by counting them.
_DIGIT = 16


class Sorted(NamedTuple):
    """The indices that sort rows (int64), and which of the sorted rows are the first of their key."""

    order: Ints
    first: Flags


def sort_rows(keys: Sequence[Ints], log_offset: Ints) -> Sorted:
    """Sort rows by keys, the first of them first, and by log offset.

    Arrays of one length. Nearly always rows of one key come in the order of their log already, and
    the keys are numbers from 0 on without large gaps; it takes longer if not.
    """
    ranks = _ranks(keys)
    if ranks is not None:
        order = _by_rank(ranks)
        ranks, offsets = ranks[order], log_offset[order]
        first = starts(ranks)
        if not ((offsets[1:] < offsets[:-1]) & ~first[1:]).any():
            return Sorted(order, first)
    order = np.lexsort((log_offset, *reversed(keys)))
    first = np.zeros(len(order), np.bool_)
    for key in keys:
        first |= starts(key[order])
    return Sorted(order, first)


def _ranks(keys: Sequence[Ints]) -> Ints | None:
    """Return each row's rank among the distinct keys; None if a table of these would be too large."""
    ranks, count = np.zeros(len(keys[0]), np.int64), 1
    for key in keys:
        width = int(key.max(initial=-1)) + 1
        size = count * width
        if int(key.min(initial=0)) < 0 or size > max(_LEAST, _A_ROW * len(key)):
            return None
        ranks = ranks * width + key
        rank_of = np.zeros(size + 1, np.int64)
        rank_of[ranks + 1] = 1
        np.cumsum(rank_of, out=rank_of)
        count, ranks = int(rank_of[-1]), rank_of[ranks]
    return ranks


def _by_rank(ranks: Ints) -> Ints:
    order = np.argsort(ranks.astype(np.uint16), kind="stable")
    upper = (ranks >> _DIGIT).astype(np.uint16)
    if upper.any():
        order = order[np.argsort(upper[order], kind="stable")]
    return order

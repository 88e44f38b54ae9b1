"""Steps as two numbers of 64 bits: the offset, and the *moment*, which is a time and a wait.

A moment has 40 bits for the time (ms, from 2020 to 2054) and 24 for the wait (ms, up to 4.6 hours, or
-1). A step with another time or wait can't be packed.
"""

from __future__ import annotations

from array import array

import numpy as np

from caughtup.models.histories.commits import STEP_NUMBERS
from caughtup.models.polls.column_reader import Ints, Rows

PACKED_NUMBERS = 2
_TIME_BITS = 40
_WAIT_BITS = 24
_WAIT = (1 << _WAIT_BITS) - 1
#: 2020-01-01 UTC, and the middle of the times that can be packed: a moment before it is negative.
_FIRST_MS = 1_577_836_800_000
_MIDDLE_MS = _FIRST_MS + (1 << _TIME_BITS - 1)


def pack_history(steps: array[int]) -> array[int] | None:
    """Return the steps of a history packed; None if one of them can't be."""
    numbers = iter(steps)
    packed: list[int] = []
    for offset, at_ms, wait in zip(numbers, numbers, numbers, strict=True):
        if (at_ms - _FIRST_MS) >> _TIME_BITS or (wait + 1) >> _WAIT_BITS:
            return None
        packed += (offset, (at_ms - _MIDDLE_MS << _WAIT_BITS) + wait + 1)
    return array("q", packed)


def unpack_history(packed: array[int]) -> array[int]:
    """Return the steps of a history, three numbers each."""
    numbers = iter(packed)
    steps: list[int] = []
    for offset, moment in zip(numbers, numbers, strict=True):
        steps += (offset, (moment >> _WAIT_BITS) + _MIDDLE_MS, (moment & _WAIT) - 1)
    return array("q", steps)


def pack(steps: Ints) -> tuple[Ints, Rows]:
    """Return steps packed, and which of them can be; the last axis is that of a step's numbers."""
    at_ms, wait = steps[..., 1], steps[..., 2]
    # What 63 bits don't hold has the other sign here, and too many bits as well.
    fits: Rows = ((at_ms - _FIRST_MS) >> _TIME_BITS | (wait + 1) >> _WAIT_BITS) == 0
    packed = np.empty((*steps.shape[:-1], PACKED_NUMBERS), np.int64)
    packed[..., 0] = steps[..., 0]
    packed[..., 1] = (at_ms - _MIDDLE_MS << _WAIT_BITS) + wait + 1
    return packed, fits


def unpack(packed: Ints) -> Ints:
    """Return packed steps, three numbers each; the last axis is that of a step's numbers."""
    moments = packed[..., 1]
    steps = np.empty((*packed.shape[:-1], STEP_NUMBERS), np.int64)
    steps[..., 0] = packed[..., 0]
    steps[..., 1] = (moments >> _WAIT_BITS) + _MIDDLE_MS
    steps[..., 2] = waits_of(moments)
    return steps


def waits_of(moments: Ints) -> Ints:
    """Return the waits (ms, or -1) of moments."""
    return (moments & _WAIT) - 1


def with_waits(moments: Ints, waits: Ints) -> Ints:
    """Return moments whose waits are the longer ones of their own and these."""
    raised: Ints = moments + np.maximum(waits - waits_of(moments), 0)
    return raised

"""``probing.rebalance.interval.ms``, learned from the time of the next rebalance in assignments."""

from __future__ import annotations

from caughtup.models.decisions.inputs.gathering import CLOCK_ALLOWANCE_MS
from caughtup.models.groups.generation import StreamsGeneration
from caughtup.models.learning.ranges import IntSpan
from caughtup.models.offsets import LONG_MAX
from caughtup.models.parameters import MINIMUMS
from caughtup.models.wire.bounds import LATEST_MS

PROBING = "probing.rebalance.interval.ms"
_LEAST_MS = MINIMUMS[PROBING]
_MINUTE_MS = 60_000


def probing_interval(
    known: IntSpan | None, generation: StreamsGeneration, seen_ms: int
) -> IntSpan | None:
    """Return bounds of the interval, in ms, by earlier bounds and one more generation, or None.

    The leader adds the interval to its clock when it decides: after the group's state changed, and
    before the record was read (``seen_ms``). Clocks are assumed to differ by ``CLOCK_ALLOWANCE_MS``
    at most. Bounds that contradict the earlier ones replace them: the config has changed, or
    another leader has another clock. Source: StreamsPartitionAssignor.computeNewAssignment.
    """
    due_ms = next(
        (
            member.assignment.next_rebalance_ms
            for member in generation.members()
            if member.assignment is not None and member.assignment.next_rebalance_ms
        ),
        None,
    )
    if due_ms is None:
        return known
    latest_ms = max(seen_ms, generation.as_of_ms)
    low = max(_LEAST_MS, due_ms - latest_ms - CLOCK_ALLOWANCE_MS)
    high = due_ms - generation.as_of_ms + CLOCK_ALLOWANCE_MS
    if due_ms >= LATEST_MS:  # later times are decoded as this one
        high = LONG_MAX
    if high < low:
        return known  # the leader's clock is behind by more than that: nothing can be said
    found = IntSpan(low, high)
    return found if known is None else known.meet(found) or found


def whole_minutes(interval: IntSpan) -> int | None:
    """Return the only whole number of minutes within bounds, in ms, or None.

    Other intervals are rarely configured, so that this one is likely, not certain.
    """
    first = -(-interval.low // _MINUTE_MS)
    return first * _MINUTE_MS if first == interval.high // _MINUTE_MS else None

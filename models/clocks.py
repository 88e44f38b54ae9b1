"""How far clocks may differ, and what that makes of a time that is yet to come."""

from __future__ import annotations

#: By how much the clocks of brokers, of applications and ours may differ, in ms. What is said to
#: have been seen later than now by more is a mistake, or was seen before a clock was set back.
AHEAD_MS = 5 * 60_000


def is_from_the_future(at_ms: int, clock_ms: int) -> bool:
    """Return whether a moment (ms) is later than a clock (ms) by more than clocks differ."""
    return at_ms > clock_ms + AHEAD_MS

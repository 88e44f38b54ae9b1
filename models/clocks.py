"""The tolerated difference between clocks, and times that are from the future."""

from __future__ import annotations

#: The tolerated difference between the clocks of brokers, applications and the service, in ms. A
#: time that is later than now by more is an error, or from before a clock was set back.
AHEAD_MS = 5 * 60_000
#: How much more the clock of another instance of the service may be ahead, of what is said only once:
#: a record that did not count would be said again. Brokers take none that is more than an hour ahead
#: (``message.timestamp.after.max.ms``).
OTHER_INSTANCE_MS = 60 * 60_000


def is_from_the_future(at_ms: int, clock_ms: int) -> bool:
    """Return whether a time (ms) is later than a clock (ms) by more than clocks may differ."""
    return at_ms > clock_ms + AHEAD_MS

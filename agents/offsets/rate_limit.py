"""How many lines of one kind the log may have."""

from __future__ import annotations


class RateLimit:
    """A limit on the log lines of one kind a minute."""

    def __init__(self, a_minute: int) -> None:
        self._a_minute = a_minute
        self._minute = -1
        self._count = 0

    def is_exceeded(self, now: int) -> bool:
        """Count one more line at time ``now`` (ms); return whether it exceeds the limit."""
        minute = now // 60_000
        if minute != self._minute:
            self._minute, self._count = minute, 0
        self._count += 1
        return self._count > self._a_minute

"""How many lines of one kind the log may have."""

from __future__ import annotations


class RateLimit:
    """Allows so many log lines a minute."""

    def __init__(self, a_minute: int) -> None:
        self._a_minute = a_minute
        self._minute = -1
        self._count = 0

    def is_exceeded(self, now: int) -> bool:
        """Count one more at this moment (ms), and return whether it is too many."""
        minute = now // 60_000
        if minute != self._minute:
            self._minute, self._count = minute, 0
        self._count += 1
        return self._count > self._a_minute

"""The topics that were made and deleted lately, by which a changed subscription is told apart."""

from __future__ import annotations

from collections.abc import Iterable

#: How long (ms) a topic counts as new, or as deleted lately: clients look for topics every five minutes
#: (``metadata.max.age.ms``).
_LATELY_MS = 10 * 60_000
_MOST = 10_000


class TopicChanges:
    """When each topic appeared or vanished, of the last ten minutes; at most 10,000 of both."""

    def __init__(self) -> None:
        self._appeared_ms: dict[str, int] = {}
        self._vanished_ms: dict[str, int] = {}

    def apply(self, appeared: Iterable[str], vanished: Iterable[str], now_ms: int) -> None:
        """Note which topics are there or gone since the look before."""
        for names, times, others in (
            (appeared, self._appeared_ms, self._vanished_ms),
            (vanished, self._vanished_ms, self._appeared_ms),
        ):
            for name in names:
                others.pop(name, None)
                times.pop(name, None)
                times[name] = now_ms  # the newest comes last
            while times:
                oldest = next(iter(times))
                if len(times) <= _MOST and now_ms - times[oldest] <= _LATELY_MS:
                    break
                del times[oldest]

    def is_new(self, topic: str) -> bool:
        """Return whether a topic was made lately."""
        return topic in self._appeared_ms

    def is_gone(self, topic: str) -> bool:
        """Return whether a topic was deleted lately."""
        return topic in self._vanished_ms

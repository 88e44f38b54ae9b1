"""The recent standstills of a group's partitions: what an application is used to.

A partition stands still while it has something to read and no commit moves its offset. So an
application that commits every 30 s stands still for 30 s each time.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from caughtup.models.polls.column_reader import Ints, Rows

#: The longest standstill of each ten minutes is kept, for six hours.
_WINDOW_MS, _WINDOWS = 600_000, 36
#: A longer standstill was an outage, which is no measure of what is acceptable.
_MOST_MS = 600_000
_NOT_BEHIND = 0


class _Partitions(NamedTuple):
    """Partitions of a topic, their last commits' times, and since when each is behind (ms)."""

    numbers: Ints
    commit_ms: Ints
    since_ms: Ints


class StandstillHistory:
    """The longest standstills of one group, each up to a look's interval too short."""

    def __init__(self) -> None:
        self._topics: dict[str, _Partitions] = {}
        self._longest: dict[int, int] = {}

    def look(self, topic: str, numbers: Ints, commit_ms: Ints, behind: Rows, now_ms: int) -> None:
        """Record what a topic's partitions did since the last look.

        ``commit_ms``: the time of each one's last commit; ``behind``: whether it has something to
        read.
        """
        since_ms = np.where(behind, now_ms, _NOT_BEHIND)
        before = self._topics.get(topic)
        if before is not None:
            _, now, then = np.intersect1d(numbers, before.numbers, return_indices=True)
            since, same = before.since_ms[then], commit_ms[now] == before.commit_ms[then]
            stood = commit_ms[now] - since
            ended = stood[(since != _NOT_BEHIND) & ~same]
            self._note(int(ended[ended <= _MOST_MS].max(initial=0)), now_ms)
            goes_on = (since != _NOT_BEHIND) & same & behind[now]
            since_ms[now[goes_on]] = since[goes_on]
        self._topics[topic] = _Partitions(numbers, commit_ms, since_ms)

    def keep_only(self, topics: Collection[str]) -> None:
        """Remove topics without commits."""
        for topic in self._topics.keys() - topics:
            del self._topics[topic]

    def longest_ms(self, now_ms: int) -> int | None:
        """Return the longest standstill that ended, in ms; None without one."""
        first = now_ms // _WINDOW_MS - _WINDOWS
        return max((ms for window, ms in self._longest.items() if window > first), default=None)

    def _note(self, stood_ms: int, now_ms: int) -> None:
        if stood_ms <= 0:
            return
        window = now_ms // _WINDOW_MS
        self._longest[window] = max(self._longest.get(window, 0), stood_ms)
        for old in [one for one in self._longest if one <= window - _WINDOWS]:
            del self._longest[old]

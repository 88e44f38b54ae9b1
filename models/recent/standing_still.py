"""For how long a group's partitions stood still of late: what an application has lived with.

A partition stands still while it has something to read and nothing of it is committed. Between two
commits there is always that, so an application that commits each 30 s stands still for as long.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from caughtup.models.polls.column_reader import Ints, Rows

#: What is remembered: the longest of each ten minutes, of six hours.
_WINDOW_MS, _WINDOWS = 600_000, 36
#: What took longer was an outage, and is nothing that anybody wants again.
_MOST_MS = 600_000
_NOT_BEHIND = 0


class _Partitions(NamedTuple):
    """Partitions of a topic, when each was committed last, and since when it has been behind (ms)."""

    numbers: Ints
    commit_ms: Ints
    since_ms: Ints


class StandingStill:
    """The longest times of one group, by what is seen at each look: up to a look's interval less."""

    def __init__(self) -> None:
        self._topics: dict[str, _Partitions] = {}
        self._longest: dict[int, int] = {}

    def look(self, topic: str, numbers: Ints, commit_ms: Ints, behind: Rows, now_ms: int) -> None:
        """Note what a topic's partitions did since the last look.

        ``commit_ms``: when each was committed last; ``behind``: whether it has something to read.
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
        """Forget topics of which nothing is committed any more."""
        for topic in self._topics.keys() - topics:
            del self._topics[topic]

    def longest_ms(self, now_ms: int) -> int | None:
        """Return for how long a partition stood still at most that went on; None if none did."""
        first = now_ms // _WINDOW_MS - _WINDOWS
        return max((ms for window, ms in self._longest.items() if window > first), default=None)

    def _note(self, stood_ms: int, now_ms: int) -> None:
        if stood_ms <= 0:
            return
        window = now_ms // _WINDOW_MS
        self._longest[window] = max(self._longest.get(window, 0), stood_ms)
        for old in [one for one in self._longest if one <= window - _WINDOWS]:
            del self._longest[old]

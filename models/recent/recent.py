"""The last hours of one cluster: figures of groups and of the whole over time, and events."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np

from caughtup.models.ids import TopicPartition
from caughtup.models.lag.group_lag import Positions
from caughtup.models.lag.verdict import GroupVerdict
from caughtup.models.polls.column_reader import Ints, Rows
from caughtup.models.recent.happenings import Happening, Happenings
from caughtup.models.recent.rings import Series
from caughtup.models.verdicts import UNTROUBLED

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
    """The longest standstills of one group's partitions, to which its application is used.

    A partition stands still while it has something to read and its committed offset doesn't change.
    Each standstill may be too short by the time between two observations.
    """

    def __init__(self) -> None:
        self._topics: dict[str, _Partitions] = {}
        self._longest: dict[int, int] = {}

    def observe(
        self, topic: str, numbers: Ints, commit_ms: Ints, behind: Rows, now_ms: int
    ) -> None:
        """Record what a topic's partitions did since they were last observed.

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


GROUP_FIGURES = ("lag", "committed_per_second", "produced_per_second")
APPLICATION_FIGURES = (*GROUP_FIGURES, "warmups", "restoring")
CLUSTER_FIGURES = (
    "lag",
    "groups_behind",
    "warmups",
    "restoring",
    "reassignments",
    "bytes_left",
)
#: The most groups with figures over time: 42 MB at most.
MOST_GROUPS = 10_000


class Since(NamedTuple):
    """The time (ms) since when something has been so; ``at_least``: since then or earlier."""

    at_ms: int
    at_least: bool


class _LastObserved(NamedTuple):
    verdict: GroupVerdict | None
    not_ok: Since | None


class Recent:
    """Figures over time by group, and events; both bounded."""

    def __init__(self) -> None:
        self.cluster = Series(CLUSTER_FIGURES)
        self.happenings = Happenings()
        self._groups: dict[str, Series] = {}
        self._positions: dict[str, tuple[int, Positions]] = {}
        self._seen: dict[str, _LastObserved] = {}
        self._moving: dict[TopicPartition, str] = {}
        self._still: dict[str, StandstillHistory] = {}

    def standing_still(self, group: str) -> StandstillHistory:
        """Return the history of an application's standstills."""
        return self._still.setdefault(group, StandstillHistory())

    def stood_still_ms(self, group: str, now_ms: int) -> int | None:
        """Return the longest recent standstill of one of an application's tasks, in ms, or None."""
        still = self._still.get(group)
        return None if still is None else still.longest_ms(now_ms)

    def series(self, group: str) -> Series | None:
        """Return the figures of a group over time; None without any."""
        return self._groups.get(group)

    def not_ok_since(self, group: str) -> Since | None:
        """Return since when a group has not been ok, under whichever verdicts; None if it is ok."""
        seen = self._seen.get(group)
        return None if seen is None else seen.not_ok

    def observe(self, group: str, verdict: GroupVerdict | None, now_ms: int) -> None:
        """Record whether a group's verdict changed since it was last observed."""
        before = self._seen.get(group)
        self._seen[group] = _LastObserved(verdict, _not_ok(before, verdict, now_ms))
        if before is None:
            return
        if before.verdict and verdict and self._is_news(group, before.verdict, verdict):
            text = f"{before.verdict.verdict} → {verdict.verdict}"
            self.happenings.note(Happening(now_ms, "verdict", text, verdict.reason or None, group))

    def _is_news(self, group: str, before: GroupVerdict, verdict: GroupVerdict) -> bool:
        """Return whether a verdict has changed; from unknown to ok counts only after others."""
        if (before.verdict, verdict.verdict) == ("unknown", "ok"):
            return any(one.kind == "verdict" for one in self.happenings.of(group))
        return before.verdict != verdict.verdict

    def observe_reassignment(
        self, partition: TopicPartition, verdict: str, why: str | None, now_ms: int
    ) -> None:
        """Record an event when a reassignment's verdict begins or ceases to be bad."""
        before = self._moving.get(partition, "measuring")
        self._moving[partition] = verdict
        if before != verdict and not {before, verdict} <= UNTROUBLED:
            text = f"{partition}: {before} → {verdict}"
            self.happenings.note(
                Happening(now_ms, "reassignment", text, why, partition=str(partition))
            )

    def sample(
        self,
        group: str,
        now_ms: int,
        lag: int | None,
        positions: Positions,
        copies: Mapping[str, int] | None = None,
    ) -> None:
        """Add a group's figures at a time (ms).

        ``copies``: of a Streams application, the numbers of ``warmups`` and ``restoring``.
        """
        series = self._groups.get(group)
        names = GROUP_FIGURES if copies is None else APPLICATION_FIGURES
        if series is None or series.names != names:
            if series is None and len(self._groups) >= MOST_GROUPS:
                return
            series = self._groups[group] = Series(names)
        figures: dict[str, float] = dict(copies or {})
        if lag is not None:
            figures["lag"] = lag
        figures |= self._rates(group, now_ms, positions)
        series.add(now_ms, figures)

    def _rates(self, group: str, now_ms: int, now: Positions) -> dict[str, float]:
        """Return a group's commit rate and its topics' growth since the sample before.

        Empty if that was of other partitions, or too long ago.
        """
        before_ms, before = self._positions.get(group, (0, now))
        self._positions[group] = (now_ms, now)
        seconds = (now_ms - before_ms) / 1000
        if before.partitions != now.partitions or not 0 < seconds <= 60:
            return {}
        return {
            "committed_per_second": (now.committed - before.committed) / seconds,
            "produced_per_second": (now.end - before.end) / seconds,
        }

    def keep_only(self, groups: Collection[str], moving: Collection[TopicPartition]) -> None:
        """Remove groups that are gone, and partitions that are no longer in movement."""
        for partition in self._moving.keys() - moving:
            del self._moving[partition]
        for kept in (self._groups, self._positions, self._seen, self._still):
            for group in kept.keys() - groups:
                del kept[group]


def _not_ok(
    before: _LastObserved | None, verdict: GroupVerdict | None, now_ms: int
) -> Since | None:
    """Return since when a group has not been ok; an unknown verdict changes nothing."""
    if verdict is None or verdict.verdict == "ok":
        return None
    if before is not None and before.not_ok is not None:
        return before.not_ok
    if verdict.verdict == "unknown":
        return None
    was_ok = before is not None and before.verdict is not None and before.verdict.verdict == "ok"
    return Since(now_ms, at_least=not was_ok)

"""What each copy of a task did, and when: spans of time, and the events that explain them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple


class Activity(StrEnum):
    """What a copy of a task does on a client.

    - ``processing``: the active runs.
    - ``restoring``: the active restores and stands still.
    - ``waiting``: the active is assigned and restored, but its thread restores others first.
    - ``warming``: a standby or a warm-up that isn't caught up yet.
    - ``following``: a standby or a warm-up that is caught up.
    """

    PROCESSING = "processing"
    RESTORING = "restoring"
    WAITING = "waiting"
    WARMING = "warming"
    FOLLOWING = "following"


class TimeSpan(NamedTuple):
    """One activity of a copy of a task on a client, between two moments (ms)."""

    task: str
    client: str
    activity: Activity
    start_ms: int
    end_ms: int


class Mark(NamedTuple):
    """An event at a moment (ms): ``kind`` is one of a few words, ``what`` a sentence."""

    at_ms: int
    kind: str
    what: str


@dataclass(slots=True)
class TimeLine:
    """Records what copies do, whenever that changes.

    A copy does one thing at a time on a client.
    """

    marks: list[Mark] = field(default_factory=list)
    _spans: list[TimeSpan] = field(default_factory=list)
    _doing: dict[tuple[str, str], tuple[Activity, int]] = field(default_factory=dict)

    def mark(self, at_ms: int, kind: str, what: str) -> None:
        """Record an event."""
        self.marks.append(Mark(at_ms, kind, what))

    def does(self, at_ms: int, task: str, client: str, activity: Activity | None) -> None:
        """Record what a client's copy does from now on.

        None if it has none, or only state on disk.
        """
        before = self._doing.get((task, client))
        if before is not None:
            if before[0] is activity:
                return
            if at_ms > before[1]:
                self._spans.append(TimeSpan(task, client, before[0], before[1], at_ms))
        if activity is None:
            self._doing.pop((task, client), None)
        else:
            self._doing[task, client] = activity, at_ms

    def spans(self, until_ms: int) -> list[TimeSpan]:
        """Return all spans, cut off at a moment, sorted by task, start and client."""
        running = (
            TimeSpan(task, client, activity, start_ms, until_ms)
            for (task, client), (activity, start_ms) in self._doing.items()
            if start_ms < until_ms
        )
        return sorted(
            (*self._spans, *running), key=lambda one: (one.task, one.start_ms, one.client)
        )


def standing_still(
    spans: Iterable[TimeSpan], tasks: Iterable[str], from_ms: int, until_ms: int
) -> Mapping[str, list[tuple[int, int]]]:
    """Return when no client processed each task between two moments, as pairs of ms, in order."""
    still: dict[str, list[tuple[int, int]]] = {task: [] for task in tasks}
    reached = dict.fromkeys(still, from_ms)
    for span in sorted(spans, key=lambda one: (one.start_ms, one.end_ms)):
        if span.activity is not Activity.PROCESSING or span.task not in reached:
            continue
        if span.start_ms > reached[span.task]:
            still[span.task].append((reached[span.task], min(span.start_ms, until_ms)))
        reached[span.task] = max(reached[span.task], span.end_ms)
    for task, since_ms in reached.items():
        if since_ms < until_ms:
            still[task].append((since_ms, until_ms))
    return still

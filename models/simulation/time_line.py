"""What each copy of a task did, and when: spans of time, the events that explain them, and figures.

It can be drawn as text: a row for each task, a column for each step of time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from string import ascii_uppercase
from typing import NamedTuple

from caughtup.models.histories.trend import median
from caughtup.models.ids import natural_order


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


@dataclass(frozen=True, slots=True)
class TimeLineFigures:
    """Figures of a time line between two moments.

    ``still_ms``: for each task the total time, in ms, in which no client processed it. ``calm_ms``:
    the time of the last change, in ms after the first moment; None if something was still going on.
    ``copies_built`` are states that an instance restored from nothing, ``rebalances`` completed
    generations, ``probing`` those that a probing rebalance began.
    """

    still_ms: dict[str, int]
    calm_ms: int | None
    copies_built: int
    rebalances: int
    probing: int

    @property
    def longest_still_ms(self) -> int:
        """The longest total standstill of any task, in ms."""
        return max(self.still_ms.values(), default=0)

    @property
    def median_still_ms(self) -> float:
        """The median standstill of all tasks, in ms, those that never stood still included."""
        return median(list(self.still_ms.values())) if self.still_ms else 0.0

    @property
    def all_still_ms(self) -> int:
        """The standstill of all tasks together, in ms."""
        return sum(self.still_ms.values())


def figures(
    spans: Sequence[TimeSpan],
    marks: Sequence[Mark],
    tasks: Iterable[str],
    *,
    from_ms: int,
    until_ms: int,
) -> TimeLineFigures:
    """Return the figures of a time line between two moments."""
    still = standing_still(
        (span for span in spans if span.end_ms > from_ms), tasks, from_ms, until_ms
    )
    within = [mark for mark in marks if from_ms <= mark.at_ms <= until_ms]
    busy = any(
        span.end_ms >= until_ms and span.activity in {Activity.RESTORING, Activity.WAITING}
        for span in spans
    )
    unowned = any(pauses and pauses[-1][1] >= until_ms for pauses in still.values())
    changes = [span.start_ms for span in spans if span.start_ms >= from_ms]
    changes += [span.end_ms for span in spans if from_ms <= span.end_ms < until_ms]
    changes += [mark.at_ms for mark in within]
    return TimeLineFigures(
        still_ms={
            task: sum(end - start for start, end in pauses) for task, pauses in still.items()
        },
        calm_ms=None if busy or unowned else max(changes, default=from_ms) - from_ms,
        copies_built=sum(mark.kind == "copy" for mark in within),
        rebalances=sum(mark.kind == "rebalance" for mark in within),
        probing=sum(mark.kind == "probing" for mark in within),
    )


#: Of several activities within one step, the one with the greatest weight is drawn.
_WEIGHT = {
    Activity.PROCESSING: 0,
    Activity.FOLLOWING: 1,
    Activity.WARMING: 2,
    Activity.WAITING: 3,
    Activity.RESTORING: 4,
}
_ACTIVE = frozenset({Activity.PROCESSING, Activity.RESTORING, Activity.WAITING})
NOBODY = "."


def letters_of(clients: Iterable[str]) -> dict[str, str]:
    """Return a letter for each client, in their order; after 26 the letters repeat."""
    return {
        client: ascii_uppercase[number % len(ascii_uppercase)]
        for number, client in enumerate(sorted(clients, key=natural_order))
    }


def draw(
    spans: Sequence[TimeSpan],
    tasks: Iterable[str],
    letters: Mapping[str, str],
    *,
    from_ms: int,
    until_ms: int,
    step_ms: int,
) -> list[str]:
    """Draw who has each task: ``A`` processes it, ``a`` restores it or waits, ``.`` is no client.

    Standbys and warm-ups follow in a row of their own, if there are any: ``a`` is behind, ``A`` is
    caught up. Each step shows the longest standstill within it, so that no pause is hidden.
    """
    names = list(tasks)
    width = max(map(len, names), default=0)
    rows: list[str] = []
    for task in names:
        own = [span for span in spans if span.task == task]
        active = [span for span in own if span.activity in _ACTIVE]
        others = [span for span in own if span.activity not in _ACTIVE]
        steps = range(from_ms, until_ms, step_ms)
        rows.append(
            f"{task:<{width}} {''.join(_at(active, s, s + step_ms, letters) for s in steps)}"
        )
        for client in sorted({span.client for span in others}):
            kept = [span for span in others if span.client == client]
            line = "".join(_at(kept, s, s + step_ms, letters, gaps=False) for s in steps)
            if line.strip(NOBODY):
                rows.append(f"{'+':>{width}} {line}")
    return rows


def _at(
    spans: Sequence[TimeSpan],
    start_ms: int,
    end_ms: int,
    letters: Mapping[str, str],
    *,
    gaps: bool = True,
) -> str:
    """Return the character of one step; with ``gaps``, ``.`` if no client had it for long."""
    within = [
        (min(span.end_ms, end_ms) - max(span.start_ms, start_ms), span)
        for span in spans
        if span.start_ms < end_ms and span.end_ms > start_ms
    ]
    if not within or (gaps and sum(length for length, _ in within) * 2 < end_ms - start_ms):
        return NOBODY
    _, span = max(within, key=lambda one: (_WEIGHT[one[1].activity], one[0], one[1].client))
    letter = letters.get(span.client, "?")
    caught_up = span.activity in {Activity.PROCESSING, Activity.FOLLOWING}
    return letter if caught_up else letter.lower()

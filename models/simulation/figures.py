"""Figures of a time line: how long tasks stood still, what was copied, and when it came to rest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from caughtup.models.histories.trend import median
from caughtup.models.simulation.time_line import Activity, Mark, TimeSpan, standing_still


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

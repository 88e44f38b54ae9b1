"""The progress of reading a long log, and the counts of its records."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class ReaderCounts:
    """Counts the records, skips and errors of ``__consumer_offsets``, by key type."""

    records: Counter[int] = field(default_factory=Counter)
    skipped: Counter[int] = field(default_factory=Counter)
    errors: Counter[tuple[int | None, str]] = field(default_factory=Counter)


@dataclass(slots=True)
class ReadingProgress:
    """The progress of reading a log since ``started_ms``; ``total`` is its length in offsets.

    ``behind`` are the offsets left. Compaction leaves fewer records than offsets: ``records``
    counts the records that were read. Times are milliseconds since the epoch.
    """

    total: int
    started_ms: int
    behind: int = 0
    records: int = 0

    def __post_init__(self) -> None:
        self.behind = self.total

    def seconds(self, now_ms: int) -> float:
        """Return the time spent so far, in seconds; never 0, so that it can be a divisor."""
        return max(1, now_ms - self.started_ms) / 1000

    def seconds_left(self, now_ms: int) -> float | None:
        """Return the seconds that the rest takes at the rate so far.

        None before anything was read.
        """
        done = self.total - self.behind
        return self.behind * self.seconds(now_ms) / done if done > 0 else None

    def line(self, now_ms: int) -> str:
        """Return the progress in one line."""
        percent = 100 * (self.total - self.behind) // self.total if self.total else 100
        left = self.seconds_left(now_ms)
        rest = "" if left is None else f", about {left:.0f} s left"
        return f"{percent} %, {self.speed(now_ms)}{rest}"

    def speed(self, now_ms: int) -> str:
        """Return in one line the number of records read, and in what time."""
        seconds = self.seconds(now_ms)
        return f"{self.records:,} records in {seconds:.1f} s ({self.records / seconds:,.0f}/s)"

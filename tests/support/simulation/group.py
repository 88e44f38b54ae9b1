"""A partition, its producer and its consumer group, on a clock that the test moves."""

from __future__ import annotations

from collections.abc import Callable

from caughtup.models.histories.end_offset_table import EndOffsetTable
from caughtup.models.ids import TopicPartition
from caughtup.models.lag.figures import LagFigures, lag_figures
from caughtup.models.lag.verdict import Verdict, partition_verdict
from caughtup.models.offsets import EndOffsets
from caughtup.models.wire.consumer_offsets import OffsetCommit
from tests.support.plain_commits import PlainCommits

GROUP = "billing"
PARTITION = TopicPartition("orders", 0)
#: The clock starts here, in ms since the epoch.
START_MS = 1_790_000_000_000
SECOND = 1_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE


class SimulatedGroup:
    """One group-partition; all times are ms since ``START_MS``.

    ``produced`` returns the log end at a time. The group reads at most ``read_rate`` records a
    second, and commits every ``commit_ms`` (None: it is stopped).
    """

    def __init__(self, produced: Callable[[int], int], sample_ms: int = SECOND) -> None:
        self.produced = produced
        self.sample_ms = sample_ms
        self.ends = EndOffsetTable()
        self.commits = PlainCommits()
        self.now = 0
        self.position = 0.0
        self.start_offset = 0
        self.markers = 0
        self.readable_known = True
        self.commit_ms: int | None = None
        self.read_rate = 0.0
        #: Every commit: its offset, its time, and the lag at the sample before it.
        self.committed: list[tuple[int, int, int]] = []
        self.ends_seen: list[int] = []

    def consume(self, read_rate: float, commit_ms: int | None) -> None:
        """Set the records read per second, and the interval of commits (ms)."""
        self.read_rate, self.commit_ms = read_rate, commit_ms

    def run(self, duration_ms: int) -> None:
        """Advance time in steps of 0.1 s."""
        for now in range(self.now + 100, self.now + duration_ms + 1, 100):
            self.now = now
            readable = self.produced(now)
            self.position = min(readable, self.position + self.read_rate / 10)
            if self.commit_ms is not None and now % self.commit_ms == 0:
                self.commit(int(self.position))
            if now % self.sample_ms == 0:
                self.list_ends()

    def list_ends(self) -> None:
        """List the end offsets; the last ``markers`` of them are transaction markers."""
        readable = self.produced(self.now)
        end = readable + self.markers
        self.ends_seen.append(end)
        self.ends.apply(
            PARTITION,
            EndOffsets(
                self.start_offset,
                end,
                end,
                START_MS + self.now,
                readable if self.readable_known else None,
            ),
        )

    def commit(self, offset: int, partition: TopicPartition = PARTITION) -> None:
        """Commit an offset now."""
        seen = self.ends_seen[-1] if self.ends_seen else offset
        self.committed.append((offset, self.now, max(0, seen - offset)))
        commit = OffsetCommit(offset, -1, "", START_MS + self.now, -1, None)
        self.commits.apply(GROUP, partition, commit, self.ends)

    def figures(self) -> LagFigures:
        """Return the figures now."""
        history = self.ends.history(PARTITION)
        assert history is not None
        commits = self.commits.of(GROUP).get(PARTITION)
        own_ms = None if commits is None else commits.interval_ms
        interval_ms = self.commits.interval_ms(GROUP) if own_ms is None else own_ms
        return lag_figures(commits, history, START_MS + self.now, interval_ms)

    def verdict(self) -> Verdict:
        """Return the verdict now."""
        return partition_verdict(self.figures())

    def verdicts_during(self, duration_ms: int, every_ms: int = SECOND) -> set[str]:
        """Advance time, and return all verdicts at intervals of ``every_ms``."""
        found = set()
        for _ in range(duration_ms // every_ms):
            self.run(every_ms)
            found.add(self.verdict().verdict)
        return found


def steadily(rate: float) -> Callable[[int], int]:
    """Produce at a constant ``rate`` of records a second."""
    return lambda now: int(rate * now / 1000)


def until(stop_ms: int, produced: Callable[[int], int]) -> Callable[[int], int]:
    """Produce like another producer until a time (ms), then stop."""
    return lambda now: produced(min(now, stop_ms))

"""One reassignment that is staged, what is due to be said of it, and what was said."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from caughtup.models.ids import TopicPartition

_POLL_SECONDS = 0.3
#: Verdicts that wake somebody up, or that somebody has to see to.
ALARMS = ("stalled", "dead target", "throttled out", "blocked", "no source", "diverging")


#: What is said of a throttle that is left over, which is no partition's verdict.
ORPHANED = "orphaned throttle"


@dataclass(slots=True)
class StagedReassignment:
    """The reassignment of one partition.

    ``due``: the verdict it has to get, None if there is to be none. ``also``: another that is true
    of it, too, and may come before or after. ``cause``: the cause of the one that is due.
    ``outcome``: how it has to end. ``trouble_at``: when it went wrong, from which the time until
    the verdict counts, in seconds of the monotonic clock.
    """

    name: str
    partition: TopicPartition
    due: str | None = None
    also: str | None = None
    cause: str | None = None
    outcome: str | None = None
    listed: bool = True
    trouble_at: float = field(default_factory=time.monotonic)
    #: When each verdict and cause was first said.
    said: dict[tuple[str, str | None], float] = field(default_factory=dict)
    ended: str | None = None
    seen: bool = False

    @property
    def named_after(self) -> float | None:
        """Seconds from the trouble to the verdict that is due; None without one."""
        times = [at for (verdict, _), at in self.said.items() if verdict == self.due]
        return max(0.0, min(times) - self.trouble_at) if times else None

    @property
    def named_cause(self) -> str | None:
        """The first cause that was said with the verdict that is due."""
        causes = [cause for verdict, cause in self.said if verdict == self.due]
        return next((c for c in causes if c == self.cause), causes[0] if causes else None)

    @property
    def false_alarms(self) -> list[str]:
        """The alarms that were said and are not due."""
        said = {verdict for verdict, _ in self.said}
        return sorted(said & set(ALARMS) - {self.due, self.also})

    @property
    def ok(self) -> bool:
        """Whether all that is due was said, and nothing that isn't."""
        named = self.due is None or (
            self.named_after is not None and (self.cause is None or self.named_cause == self.cause)
        )
        return (
            named
            and not self.false_alarms
            and self.ended == self.outcome
            and (self.listed or not self.seen)
        )


class VerdictWatch:
    """Notes what the service says of reassignments, in a thread, until it is left.

    ``page`` gives the page's state; one that fails once is asked again.
    """

    def __init__(self, page: Callable[[], Mapping[str, Any]]) -> None:
        self._page = page
        self._staged: dict[TopicPartition, StagedReassignment] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="verdict-watch", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *problem: object) -> None:
        self._stop.set()
        self._thread.join()

    def add(self, reassignment: StagedReassignment) -> StagedReassignment:
        """Note what is said of this reassignment from now on."""
        self._staged[reassignment.partition] = reassignment
        return reassignment

    def _run(self) -> None:
        while not self._stop.wait(_POLL_SECONDS):
            try:
                page = self._page()
            except OSError:
                continue
            self._note(page, time.monotonic())

    def _note(self, page: Mapping[str, Any], now: float) -> None:
        for row in page["reassignments"]:
            staged = self._staged.get(TopicPartition(row["topic"], row["partition"]))
            if staged is not None and staged.ended is None:
                staged.seen = True
                staged.said.setdefault((row["verdict"], row.get("cause")), now)
        left = {row["name"] for row in page["throttles"] if row["kind"] == "topic"}
        for staged in self._staged.values():
            if staged.partition.topic in left:
                staged.said.setdefault((ORPHANED, None), now)
        for row in page["recent_reassignments"]:
            staged = self._staged.get(TopicPartition(row["topic"], row["partition"]))
            if staged is not None:
                staged.ended = row["outcome"]

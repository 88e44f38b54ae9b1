"""A staged reassignment: the expected verdict, and the verdicts that the service gave."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from caughtup.models.ids import TopicPartition

_POLL_SECONDS = 0.3
#: Verdicts for which operators are alerted.
ALARMS = ("stalled", "dead target", "throttled out", "blocked", "no source", "diverging")


#: The word for a throttle that is left over, which is no partition's verdict.
ORPHANED = "orphaned throttle"


@dataclass(slots=True)
class StagedReassignment:
    """The reassignment of one partition.

    ``due``: the expected verdict, None for none. ``also``: another verdict that may come before or
    after it. ``cause``: the expected cause. ``outcome``: the expected end. ``trouble_at``: when the
    trouble began, in monotonic seconds; the time until the verdict counts from there.
    """

    name: str
    partition: TopicPartition
    due: str | None = None
    also: str | None = None
    cause: str | None = None
    outcome: str | None = None
    listed: bool = True
    trouble_at: float = field(default_factory=time.monotonic)
    #: When each verdict and cause was first given.
    said: dict[tuple[str, str | None], float] = field(default_factory=dict)
    ended: str | None = None
    seen: bool = False

    @property
    def named_after(self) -> float | None:
        """The seconds from the trouble to the expected verdict; None without that verdict."""
        times = [at for (verdict, _), at in self.said.items() if verdict == self.due]
        return max(0.0, min(times) - self.trouble_at) if times else None

    @property
    def named_cause(self) -> str | None:
        """The cause given with the expected verdict, preferably the expected one."""
        causes = [cause for verdict, cause in self.said if verdict == self.due]
        return next((c for c in causes if c == self.cause), causes[0] if causes else None)

    @property
    def false_alarms(self) -> list[str]:
        """The alarms that were given and not expected."""
        said = {verdict for verdict, _ in self.said}
        return sorted(said & set(ALARMS) - {self.due, self.also})

    @property
    def ok(self) -> bool:
        """Whether all expected verdicts were given, and no false alarm."""
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
    """Records the service's verdicts on reassignments, in a thread, until the context ends.

    ``page`` returns the page's state; failures are retried.
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
        """Record the verdicts on this reassignment from now on."""
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

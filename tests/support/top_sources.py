"""What stands for a service or a cluster in tests of ``caughtup top``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from caughtup.agents.errors import UserError
from caughtup.agents.process.health import Health
from caughtup.agents.web.page.parts import WholeView, whole_steps
from caughtup.models.records.fields import changed
from caughtup.models.shown.groups import GroupLine
from caughtup.models.shown.lag import Line, lag_lines
from caughtup.models.state.cluster import ClusterState

#: Names as long as groups have them where people write from right to left.
RIGHT_TO_LEFT = "קבוצת־הזמנות-" * 19 + "סוף"
assert 249 <= len(RIGHT_TO_LEFT) <= 260


def page(state: ClusterState, now_ms: int) -> WholeView:
    """Return what the page shows of a state, as a reader of it has it."""
    steps = whole_steps(state, Health(ready=True, reader_lag=0), now_ms)
    return msgspec.json.decode(msgspec.json.encode(_done(steps)), type=WholeView)


def _done(steps: Iterator[None]) -> Any:
    while True:
        try:
            next(steps)
        except StopIteration as done:
            return done.value


def many_groups(count: int = 1_000) -> WholeView:
    """Return a page of so many groups, one of them with a long name in Hebrew."""
    groups = [
        GroupLine(group=f"group-{n:05}", partitions=2, lag=n, status="ok", members=1)
        for n in range(count - 1)
    ]
    worst = GroupLine(group=RIGHT_TO_LEFT, partitions=1, lag=7, status="stopped", why="x")
    return changed(page(ClusterState("cluster-1", {}), 1), groups=[*groups, worst])


class Told:
    """Says what it is told to say; ``fails`` is why it says nothing."""

    where = "http://caughtup.example:8080"

    def __init__(self, state: WholeView, lines_of: ClusterState | None = None) -> None:
        self.now = state
        self.fails: BaseException | None = None
        self.closed = False
        self._lines_of = lines_of

    def fail(self, why: str) -> None:
        """Say nothing from now on, as a service that is away."""
        self.fails = UserError(why)

    def state(self) -> WholeView:
        """Return what it is told to say."""
        if self.fails is not None:
            raise self.fails
        return self.now

    def lines(self, group: str) -> list[Line]:
        """Return the lines of a group of its state."""
        assert self._lines_of is not None
        return list(lag_lines(self._lines_of, group))

    def close(self) -> None:
        """Note that nobody asks any more."""
        self.closed = True

"""Fakes of a service and a cluster for tests of ``caughtup top``."""

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

#: Group names of realistic length in a right-to-left script.
RIGHT_TO_LEFT = "קבוצת־הזמנות-" * 19 + "סוף"
assert 249 <= len(RIGHT_TO_LEFT) <= 260


def page(state: ClusterState, now_ms: int) -> WholeView:
    """Return a state's page as its reader gets it."""
    steps = whole_steps(state, Health(ready=True, reader_lag=0), now_ms)
    return msgspec.json.decode(msgspec.json.encode(_done(steps)), type=WholeView)


def _done(steps: Iterator[None]) -> Any:
    while True:
        try:
            next(steps)
        except StopIteration as done:
            return done.value


def many_groups(count: int = 1_000) -> WholeView:
    """Return a page of ``count`` groups, one of them with a long Hebrew name."""
    groups = [
        GroupLine(group=f"group-{n:05}", partitions=2, lag=n, status="ok", members=1)
        for n in range(count - 1)
    ]
    worst = GroupLine(group=RIGHT_TO_LEFT, partitions=1, lag=7, status="stopped", why="x")
    return changed(page(ClusterState("cluster-1", {}), 1), groups=[*groups, worst])


class FakeSource:
    """A fake source; ``fails`` is the reason of its failure."""

    where = "http://caughtup.example:8080"

    def __init__(self, state: WholeView, lines_of: ClusterState | None = None) -> None:
        self.now = state
        self.fails: BaseException | None = None
        self.closed = False
        self._lines_of = lines_of

    def fail(self, why: str) -> None:
        """Fail from now on, like a service that is away."""
        self.fails = UserError(why)

    def state(self) -> WholeView:
        """Return the state, or fail."""
        if self.fails is not None:
            raise self.fails
        return self.now

    def lines(self, group: str) -> list[Line]:
        """Return a group's lines."""
        assert self._lines_of is not None
        return list(lag_lines(self._lines_of, group))

    def close(self) -> None:
        """Record that it was closed."""
        self.closed = True

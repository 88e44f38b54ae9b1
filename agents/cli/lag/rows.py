"""The rows of ``caughtup lag``: which groups and partitions are shown, and in which order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import inf
from typing import NamedTuple

from caughtup.agents.clock import now_ms
from caughtup.models.durations import duration
from caughtup.models.records.fields import changed, or_none
from caughtup.models.records.lag_lines import PartitionLine
from caughtup.models.shown.groups import GroupLine
from caughtup.models.shown.lag import Line
from caughtup.models.verdicts import LAG

ORDERS = ("state", "lag", "seconds", "name")


#: What lines are sorted by.
Rank = float | tuple[str | float, ...]


class Row(NamedTuple):
    """A line of a group or a partition, with its keys for filtering and sorting."""

    line: GroupLine | PartitionLine
    name: tuple[str, str, int]
    lag: int | None
    seconds: float | None
    state: str

    def rank(self, order: str) -> Rank:
        """Return the sort key for one of ORDERS."""
        return _KEYS[order](self)


class Choice(NamedTuple):
    """The filter and order of rows."""

    lagging: bool = False
    states: frozenset[str] = frozenset()
    order: str | None = None
    top: int | None = None

    @property
    def is_all(self) -> bool:
        """Whether all rows are shown, in the default order."""
        return not self.lagging and not self.states and self.top is None and self.order is None

    def of(self, rows: Iterable[Row], order: str) -> list[Row]:
        """Return the rows that match, by the user's order, else by this one."""
        found = [
            row
            for row in rows
            if (not self.lagging or (row.lag or 0) > 0)
            and (not self.states or row.state in self.states)
        ]
        found.sort(key=lambda row: row.name)
        found.sort(key=lambda row: row.rank(self.order or order))
        return found[: self.top]


_KEYS: dict[str, Callable[[Row], Rank]] = {
    "name": lambda row: row.name,
    "lag": lambda row: _most_first(row.lag),
    "seconds": lambda row: _most_first(row.seconds),
    "state": lambda row: (-LAG.severity(row.state), _most_first(row.lag)),
}


def _most_first(figure: float | None) -> float:
    """Return a sort key: the greatest first, unknown last."""
    return inf if figure is None else -figure


def group_rows(groups: Iterable[GroupLine]) -> Iterator[Row]:
    """Yield a row for each group; its reason says when a Spark query committed its last batch."""
    for line in groups:
        lag = line.lag_at_least if line.lag is None else line.lag
        shown = changed(line, why=(line.why or "") + _last_batch(line))
        state = line.status or LAG.unassessed
        yield Row(shown, (line.group, "", 0), lag, line.lag_seconds, state)


def _last_batch(line: GroupLine) -> str:
    if line.batch_ms is None:
        return ""
    ago = duration(max(0, now_ms() - line.batch_ms) / 1000)
    return f"; batch {line.batch} was committed {ago} ago"


def partition_rows(lines: Iterable[Line]) -> Iterator[Row]:
    """Yield a row for each partition that a group committed or was assigned."""
    for line in lines:
        if isinstance(line, PartitionLine):
            name = line.group, line.topic, line.partition
            state = or_none(line.verdict) or LAG.unassessed
            yield Row(line, name, or_none(line.lag), or_none(line.lag_seconds), state)

"""The rows of ``caughtup lag``: which groups and partitions are meant, and in which order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from math import inf
from typing import Any, NamedTuple

from caughtup.agents.clock import now_ms
from caughtup.agents.columns import Column
from caughtup.models.durations import duration
from caughtup.models.records.config_lines import ConfigLine
from caughtup.models.records.fields import or_none
from caughtup.models.verdicts import LAG

UNKNOWN = "unknown"
#: Before a figure that may be greater: not all that it is the sum of is known.
AT_LEAST = "≥"
GROUP_COLUMNS = (
    Column("GROUP", name=True),
    Column("STATE", colours=LAG.colours),
    Column("LAG", right=True),
    Column("SECONDS", right=True),
    Column("PARTITIONS", right=True, order=1),
    Column("MEMBERS", right=True, order=2),
    Column("TYPE", order=0),
)
PARTITION_COLUMNS = (
    Column("GROUP", name=True),
    Column("TOPIC", name=True),
    Column("PARTITION", right=True),
    Column("COMMITTED", right=True, order=0),
    Column("END", right=True, order=1),
    Column("LAG", right=True),
    Column("SECONDS", right=True, order=3),
    Column("STATE", colours=LAG.colours),
    Column("CLIENT", name=True, order=2),
)
TASK_COLUMNS = (
    Column("GROUP", name=True),
    Column("TASK"),
    Column("CLIENT", name=True, order=1),
    Column("ROLE"),
    Column("LAG", right=True),
    Column("PROVENANCE", order=0),
)
CONFIG_COLUMNS = (
    Column("GROUP", name=True),
    Column("CONFIG"),
    Column("VALUE"),
    Column("KNOWN"),
    Column("WOULD TELL MORE", order=0),
)
#: What --wide adds, last since it has spaces in it.
WHY = Column("WHY")
ORDERS = ("state", "lag", "seconds", "name")


class Row(NamedTuple):
    """A row: its cells, why it is as it is, and what it is chosen and sorted by."""

    cells: tuple[str, ...]
    why: str
    name: tuple[str, str, int]
    lag: int | None
    seconds: float | None
    state: str

    def rank(self, order: str) -> Any:
        """Return what it is sorted by in one of ORDERS."""
        return _KEYS[order](self)


class Choice(NamedTuple):
    """What of the rows is asked for."""

    lagging: bool = False
    states: frozenset[str] = frozenset()
    order: str | None = None
    top: int | None = None

    @property
    def is_all(self) -> bool:
        """Whether nothing in particular is asked for."""
        return not self.lagging and not self.states and self.top is None and self.order is None

    def of(self, rows: Iterable[Row], order: str) -> list[Row]:
        """Return the rows that are asked for; without a wish of the user's in this order."""
        found = [
            row
            for row in rows
            if (not self.lagging or (row.lag or 0) > 0)
            and (not self.states or row.state in self.states)
        ]
        found.sort(key=lambda row: row.name)
        found.sort(key=lambda row: row.rank(self.order or order))
        return found[: self.top]


_KEYS: dict[str, Callable[[Row], Any]] = {
    "name": lambda row: row.name,
    "lag": lambda row: _most_first(row.lag),
    "seconds": lambda row: _most_first(row.seconds),
    "state": lambda row: (-LAG.severity(row.state), _most_first(row.lag)),
}


def _most_first(figure: float | None) -> float:
    """Return what sorts the greatest first, and what isn't known last."""
    return inf if figure is None else -figure


def named(groups: Iterable[str], wanted: Sequence[str]) -> list[str]:
    """Return the groups that are wanted, by name or by a pattern such as ``orders-*``."""
    if not wanted:
        return list(groups)
    return [g for g in groups if any(g == name or fnmatchcase(g, name) for name in wanted)]


def group_rows(summaries: Iterable[Mapping[str, Any]]) -> Iterator[Row]:
    """Yield a row for each group, of what it sums up to."""
    for found in summaries:
        verdict = found.get("status", UNKNOWN)
        lag = found.get("lag", found.get("lag_at_least"))
        seconds, method = found.get("lag_seconds"), found.get("lag_seconds_method")
        cells = (
            found["group"],
            verdict,
            UNKNOWN if lag is None else f"{'' if 'lag' in found else AT_LEAST}{lag}",
            _seconds(seconds, method),
            str(found["partitions"]),
            str(found.get("members", "")),
            str(found.get("group_type") or ""),
        )
        why = found.get("why", "") + _last_batch(found)
        yield Row(cells, why, (found["group"], "", 0), lag, seconds, verdict)


def _last_batch(found: Mapping[str, Any]) -> str:
    """Return when a query of Spark's committed its last batch; nothing of another group."""
    if found.get("batch_ms") is None:
        return ""
    ago = duration(max(0, now_ms() - found["batch_ms"]) / 1000)
    return f"; batch {found['batch']} was committed {ago} ago"


def partition_rows(lines: Iterable[Mapping[str, Any]]) -> Iterator[Row]:
    """Yield a row for each partition that a group committed or was assigned."""
    for line in lines:
        if line["kind"] != "partition":
            continue
        lag, seconds = line.get("lag"), line.get("lag_seconds")
        verdict = line.get("verdict") or UNKNOWN
        cells = (
            line["group"],
            line["topic"],
            str(line["partition"]),
            str(line.get("committed", UNKNOWN)) if line["has_commit"] else "never",
            _end(line),
            str(line.get("lag", UNKNOWN)),
            _seconds(seconds, line.get("lag_seconds_method")),
            verdict,
            line.get("client_id") or "",
        )
        name = line["group"], line["topic"], line["partition"]
        yield Row(cells, line.get("why") or "", name, lag, seconds, verdict)


def task_cells(lines: Iterable[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """Return the cells of a row for each copy of each task of Streams applications."""
    return [
        (
            line["group"],
            line["task"],
            line["client_id"],
            line["role"],
            str(line.get("lag", "")),
            line["provenance"],
        )
        for line in lines
        if line["kind"] == "task"
    ]


def config_cells(configs: Iterable[ConfigLine]) -> list[tuple[str, ...]]:
    """Return the cells of a row for each config of Streams applications."""
    return [
        (or_none(one.group) or "", one.name, one.values, one.known, or_none(one.would_tell) or "")
        for one in configs
    ]


def _end(line: Mapping[str, Any]) -> str:
    """Return the log's end; where a commit is newer than the look at it, what the commit says."""
    end, committed = line.get("end_offset"), line.get("committed")
    if end is None:
        return UNKNOWN
    # A group that has rewound committed in a log that was made anew: its end is right.
    if committed is not None and committed > end and line.get("verdict") != "rewound":
        return f"{AT_LEAST}{committed}"
    return str(end)


def _seconds(seconds: float | None, method: str | None) -> str:
    if seconds is None:
        return UNKNOWN
    return f"{AT_LEAST if method == 'at_least' else ''}{seconds:.0f}"

"""The columns of tables on the terminal and on the page: their fields, units and layout.

The page gets those of its tables with each view; ``web/static/shell/format.js`` formats its figures.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Literal

import msgspec

from caughtup.models.durations import counted, duration, size
from caughtup.models.records.fields import or_none
from caughtup.models.verdicts import (
    CONTRADICTIONS,
    COPIES,
    DECISIONS,
    LAG,
    OUTCOMES,
    REASSIGNMENTS,
    STREAMS,
    Vocabulary,
)

Unit = Literal[
    "text",
    "known",
    "lag",
    "age",
    "committed",
    "log end",
    "count",
    "names",
    "list",
    "leader",
    "yes or no",
    "share",
    "since",
    "until",
    "seconds to go",
    "partition",
    "route",
    "of",
    "left",
    "bytes/s",
    "time to go",
    "state",
    "broker is",
]

#: Stands for an unknown figure, and before a lower bound.
UNKNOWN = "unknown"
AT_LEAST = "≥"


class Column(msgspec.Struct, frozen=True, omit_defaults=True):
    """A column, which shows the attributes ``of`` a row in a ``unit``.

    ``name`` is whether its cells may be shortened. If the columns don't fit, those with the
    smallest ``order`` are left out first, those with None never. ``colours`` are by the text of a
    cell. ``page`` is the heading of an additional column on the page.
    """

    heading: str
    right: bool = False
    name: bool = False
    order: int | None = None
    colours: Mapping[str, str] = {}
    of: tuple[str, ...] = ()
    unit: Unit = "text"
    page: str = ""

    def cell(self, row: object, now_ms: int = 0) -> str:
        """Return the text of a row's cell at ``now_ms``, empty if unknown."""
        values = [or_none(getattr(row, name)) for name in self.of]
        if self.unit in _TIMES:
            return _TIMES[self.unit](*values, now_ms)
        return formatted(self.unit, *values)


def cells(columns: Sequence[Column], row: object, now_ms: int = 0) -> tuple[str, ...]:
    """Return the texts of a row's cells."""
    return tuple(column.cell(row, now_ms) for column in columns)


def formatted(unit: Unit, *values: object) -> str:
    """Return values formatted in a unit, empty if unknown.

    ``lag`` takes the lag and its lower bound, in offsets; ``age`` the age of the oldest unread
    record in seconds and the method of its estimate; ``log end`` the end, the committed offset and
    the verdict; ``left`` bytes, and offsets in case bytes are unknown; ``of`` a part and the whole;
    ``time to go`` seconds, and whether it never ends.
    """
    return _UNITS[unit](*values)


def _lag(lag: int | None, at_least: int | None) -> str:
    if lag is None and at_least is not None:
        return f"{AT_LEAST}{at_least}"
    return UNKNOWN if lag is None else str(lag)


def _age(seconds: float | None, method: str | None) -> str:
    if seconds is None:
        return UNKNOWN
    return f"{AT_LEAST if method == 'at_least' else ''}{seconds:.0f}"


def _log_end(end: int | None, committed: int | None, verdict: str | None) -> str:
    """Return the log end, or a newer committed offset as its lower bound."""
    if end is None:
        return UNKNOWN
    # A rewound group committed in a log that was recreated since: its end is right.
    if committed is not None and committed > end and verdict != "rewound":
        return f"{AT_LEAST}{committed}"
    return str(end)


def _left(in_bytes: float | None, offsets: int | None) -> str:
    if in_bytes is not None:
        return size(in_bytes)
    return UNKNOWN if offsets is None else counted(offsets, "offset")


def _route(source: Sequence[int], target: Sequence[int]) -> str:
    return " → ".join(",".join(map(str, brokers)) for brokers in (source, target))


def _of(some: Collection[int], every: Collection[int]) -> str:
    return f"{len(set(some) & set(every))} of {len(every)}"


def _time_to_go(seconds: float | None, never: bool | None = None) -> str:
    if never:
        return "never"
    return "" if seconds is None else duration(seconds)


def _broker_is(away: bool, missing: bool, unanswered: bool) -> str:
    trouble = {"away": away, "without this replica": missing, "silent": unanswered}
    return ", ".join(word for word, holds in trouble.items() if holds)


def seconds_since(at_ms: int | None, now_ms: int) -> str:
    """Return how long ago a time (ms) was, in whole seconds."""
    return "" if at_ms is None else f"{max(0, round((now_ms - at_ms) / 1000))} s"


def seconds_until(at_ms: int | None, now_ms: int) -> str:
    """Return the time until ``at_ms``, in whole seconds."""
    return "" if at_ms is None else f"{max(0, round((at_ms - now_ms) / 1000))} s"


def _seconds_to_go(at_ms: int | None, now_ms: int) -> str:
    return "" if at_ms is None else duration(max(0, at_ms - now_ms) / 1000)


#: The units of times, which are relative to now.
_TIMES: dict[Unit, Callable[..., str]] = {
    "since": seconds_since,
    "until": seconds_until,
    "seconds to go": _seconds_to_go,
}
_UNITS: dict[Unit, Callable[..., str]] = {
    "text": lambda value: "" if value is None else str(value),
    "known": lambda value: UNKNOWN if value is None else str(value),
    "state": lambda word: LAG.unassessed if word is None else word,
    "lag": _lag,
    "age": _age,
    "committed": lambda offset, has: (
        (UNKNOWN if offset is None else str(offset)) if has else "never"
    ),
    "log end": _log_end,
    "count": lambda some: str(len(some)),
    "names": lambda *some: " ".join(name for names in some for name in names),
    "list": ", ".join,
    "leader": lambda leads: "leader" if leads else "",
    "yes or no": lambda holds: "yes" if holds else "no",
    "share": lambda share: "" if share is None else f"{share:.0%}",
    "partition": lambda topic, partition: f"{topic}-{partition}",
    "route": _route,
    "of": _of,
    "left": _left,
    "bytes/s": lambda rate: "" if rate is None else f"{size(rate)}/s",
    "time to go": _time_to_go,
    "broker is": _broker_is,
}

#: Of a ``GroupLine``.
GROUP_COLUMNS = (
    Column("GROUP", name=True, of=("group",)),
    Column("STATE", colours=LAG.colours, of=("status",), unit="state"),
    Column("LAG", right=True, of=("lag", "lag_at_least"), unit="lag"),
    Column("SECONDS", right=True, of=("lag_seconds", "lag_seconds_method"), unit="age"),
    Column("PARTITIONS", right=True, order=1, of=("partitions",)),
    Column("MEMBERS", right=True, order=2, of=("members",)),
    Column("TYPE", order=0, of=("group_type",)),
)
#: Of a ``PartitionLine``.
PARTITION_COLUMNS = (
    Column("GROUP", name=True, of=("group",)),
    Column("TOPIC", name=True, of=("topic",)),
    Column("PARTITION", right=True, of=("partition",)),
    Column("COMMITTED", right=True, order=0, of=("committed", "has_commit"), unit="committed"),
    Column("END", right=True, order=1, of=("end_offset", "committed", "verdict"), unit="log end"),
    Column("LAG", right=True, of=("lag",), unit="known"),
    Column("SECONDS", right=True, order=3, of=("lag_seconds", "lag_seconds_method"), unit="age"),
    Column("STATE", colours=LAG.colours, of=("verdict",), unit="state"),
    Column("CLIENT", name=True, order=2, of=("client_id",)),
)
#: Of a ``CopyLine``: those of a snapshot, and those that a service adds.
COPY_NAME_COLUMNS = (
    Column("GROUP", name=True, of=("group",)),
    Column("TASK", of=("task",)),
    Column("CLIENT", name=True, order=1, of=("client_id",)),
)
COPY_FIGURE_COLUMNS = (
    Column("ROLE", of=("role",)),
    Column("LAG", right=True, of=("lag",)),
    Column("PROVENANCE", order=0, of=("provenance",)),
)
COPY_COLUMNS = (*COPY_NAME_COLUMNS, *COPY_FIGURE_COLUMNS)
COPY_VERDICT_COLUMNS = (
    Column("STATE", colours=COPIES.colours, of=("verdict",)),
    Column("ENDS IN", right=True, order=1, of=("eta_seconds",), unit="time to go"),
)
#: Of a ``ConfigLine``.
CONFIG_COLUMNS = (
    Column("GROUP", name=True, of=("group",)),
    Column("CONFIG", of=("name",)),
    Column("VALUE", of=("values",)),
    Column("KNOWN", of=("known",)),
    Column("WOULD TELL MORE", order=0, of=("would_tell",)),
)
#: Added by --wide to groups and partitions, last since it contains spaces.
WHY = Column("WHY", of=("why",))
#: Of an ``ApplicationView``.
APPLICATION_COLUMNS = (
    Column("APPLICATION", name=True, of=("group",)),
    Column("CLIENTS", right=True, order=1, of=("clients",), unit="count"),
    Column("TASKS", right=True, of=("tasks",), unit="count"),
    Column("BEHIND", right=True, of=("behind",)),
    Column("EXACT", colours=DECISIONS.colours, of=("result",)),
    Column("PROBING IN", right=True, order=2, of=("probing_due_ms",), unit="seconds to go"),
    Column("GENERATION", right=True, order=0, of=("generation",)),
)
#: Of a ``Reassignment``.
REASSIGNMENT_COLUMNS = (
    Column("partition", name=True, of=("topic", "partition"), unit="partition"),
    Column("from → to", name=True, order=3, of=("original", "target"), unit="route"),
    Column("phase", order=0, of=("phase",)),
    Column("in sync", order=1, of=("isr", "target"), unit="of"),
    Column("left", right=True, of=("bytes_remaining", "offsets_remaining"), unit="left"),
    Column("rate", right=True, order=2, of=("rate_bytes_per_second",), unit="bytes/s"),
    Column("ends in", right=True, of=("eta_seconds", "never"), unit="time to go"),
    Column("verdict", colours=REASSIGNMENTS.colours, of=("verdict",)),
)
#: Of a ``ReplicaCopy``.
REPLICA_COLUMNS = (
    Column("BROKER", right=True, of=("broker",)),
    Column("ROLE", of=("role",)),
    Column("IN SYNC", of=("in_sync",), unit="yes or no"),
    Column("LOG END", right=True, of=("log_end",)),
    Column("SHARE", right=True, of=("share",), unit="share"),
    Column("BROKER IS", order=0, of=("away", "missing", "unanswered"), unit="broker is"),
)
#: Of a ``ConnectView``.
CONNECT_COLUMNS = (
    Column("CONNECT GROUP", name=True, of=("group",)),
    Column("WORKERS", right=True, order=2, of=("workers",), unit="count"),
    Column("CONNECTORS", right=True, order=1, of=("connectors",), unit="count"),
    Column("TASKS", right=True, of=("tasks",)),
    Column("UNASSIGNED", right=True, of=("unassigned",), unit="count"),
    Column("CONTRADICTIONS", right=True, order=3, of=("contradictions",), unit="count"),
    Column("DECIDED", colours=DECISIONS.colours, of=("result",)),
    Column("GENERATION", right=True, order=0, of=("generation",)),
)
#: Of an ``ItemLine``.
ITEM_COLUMNS = (
    Column("NAME", name=True, of=("name",)),
    Column("WORKER", name=True, of=("workers",), unit="list"),
    Column("STATE", colours={"RUNNING": "green", "FAILED": "red"}, of=("state",)),
    Column("SAID BY", name=True, order=0, of=("said_by",)),
    Column("GOES TO", name=True, order=1, of=("goes_to",)),
)
#: Of a ``ContradictionLine``, an ``UnassignedLine``, a ``WorkerLine`` and a ``ConnectorLine``.
CONTRADICTION_COLUMNS = (
    Column("CONTRADICTION", colours=CONTRADICTIONS.colours, of=("contradiction",)),
    Column("OF", name=True, of=("name",)),
    Column("WORKER", name=True, of=("worker",)),
    Column("FOR", right=True, of=("since_ms",), unit="since"),
    Column("WHY", name=True, of=("why",)),
)
UNASSIGNED_COLUMNS = (
    Column("UNASSIGNED", name=True, of=("name",)),
    Column("FOR", right=True, of=("since_ms",), unit="since"),
    Column("GOES TO", name=True, of=("goes_to",)),
    Column("IN", right=True, of=("at_ms",), unit="until"),
)
WORKER_COLUMNS = (
    Column("WORKER", name=True, of=("worker",)),
    Column("LEADER", of=("leader",), unit="leader"),
    Column("CONNECTORS", right=True, of=("connectors",), unit="count"),
    Column("TASKS", right=True, of=("tasks",), unit="count"),
    Column("HAS", name=True, of=("connectors", "tasks"), unit="names"),
)
CONNECTOR_COLUMNS = (
    Column("CONNECTOR", name=True, of=("name",)),
    Column("TYPE", of=("type",), page="Type"),
    Column("STATE", of=("state",)),
    Column("TASKS", right=True, of=("tasks",)),
    Column("TASKS.MAX", right=True, of=("tasks_max",)),
    Column("LAG", right=True, of=("lag",)),
    Column("OFFSETS", right=True, of=("offsets_at_ms",), unit="since"),
)


def _declared(vocabulary: Vocabulary) -> dict[str, object]:
    shown = ("word", "colour", "sign", "meaning")
    terms = [
        {name: value for name in shown if (value := getattr(term, name))}
        for term in vocabulary.terms
    ]
    return {"unassessed": vocabulary.unassessed, "terms": terms}


#: Sent to the page with each view: verdicts, the best first, and the columns of its tables.
DECLARED = {
    "verdicts": {
        "lag": _declared(LAG),
        "reassignments": _declared(REASSIGNMENTS),
        "outcomes": _declared(OUTCOMES),
        "decisions": _declared(DECISIONS),
        "contradictions": _declared(CONTRADICTIONS),
        "streams": _declared(STREAMS),
        "copies": _declared(COPIES),
    },
    "columns": {
        "reassignments": REASSIGNMENT_COLUMNS,
        "groups": [column for column in GROUP_COLUMNS if column.page],
        "partitions": [column for column in PARTITION_COLUMNS if column.page],
        "connectors": [column for column in CONNECTOR_COLUMNS if column.page],
    },
}

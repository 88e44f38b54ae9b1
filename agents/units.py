"""The units of figures in tables, as the terminal writes them.

The page writes most of them alike (``web/static/shell/format.js``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from math import floor
from typing import Literal

from caughtup.models.durations import counted, duration, size
from caughtup.models.records.transactions import HeldPartition
from caughtup.models.verdicts import LAG

Unit = Literal[
    "text",
    "known",
    "number",
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
    "time since",
    "transaction",
    "held",
    "partition",
    "route",
    "of",
    "left",
    "bytes/s",
    "records/s",
    "time to go",
    "state",
    "broker is",
]

#: Stands for an unknown figure, and before a lower bound.
UNKNOWN = "unknown"
AT_LEAST = "≥"


def formatted(unit: Unit, *values: object) -> str:
    """Return values formatted in a unit, empty if unknown.

    ``lag`` takes the lag and its lower bound, in offsets; ``age`` the age of the oldest unread
    record in seconds and the method of its estimate; ``committed`` the offset, whether
    there is one, and a share group's start offset; ``log end`` the end, the committed offset and the
    verdict; ``left`` bytes, and offsets in case bytes are unknown; ``of`` a part and the whole;
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


def _committed(offset: int | None, has: bool, share_start: int | None) -> str:
    """Return the committed offset; of a share group, which commits none, with its start offset."""
    if not has:
        return "never"
    start = "" if share_start is None else f" from {share_start}"
    return f"{UNKNOWN if offset is None else offset}{start}"


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


def _time_since(at_ms: int | None, now_ms: int) -> str:
    return "" if at_ms is None else duration(max(0, now_ms - at_ms) / 1000)


def _held(partitions: Sequence[HeldPartition]) -> str:
    """Return the first of the partitions, and the number of the others."""
    if not partitions:
        return ""
    more = f" and {len(partitions) - 1:,} more" if len(partitions) > 1 else ""
    return f"{partitions[0].topic_partition}{more}"


#: The units of times, which are relative to now.
TIMES: dict[Unit, Callable[..., str]] = {
    "since": seconds_since,
    "until": seconds_until,
    "seconds to go": _seconds_to_go,
    "time since": _time_since,
}
_UNITS: dict[Unit, Callable[..., str]] = {
    "text": lambda value: "" if value is None else str(value),
    "known": lambda value: UNKNOWN if value is None else str(value),
    "number": lambda value: UNKNOWN if value is None else f"{value:,}",
    "state": lambda word: LAG.unassessed if word is None else word,
    "lag": _lag,
    "age": _age,
    "committed": _committed,
    "log end": _log_end,
    "count": lambda some: str(len(some)),
    "names": lambda *some: " ".join(name for names in some for name in names),
    "list": ", ".join,
    "leader": lambda leads: "leader" if leads else "",
    "yes or no": lambda holds: "yes" if holds else "no",
    "share": lambda share: "" if share is None else f"{share:.0%}",
    "partition": lambda topic, partition: f"{topic}-{partition}",
    "transaction": lambda name, producer: f"producer id {producer}" if name is None else name,
    "held": _held,
    "route": _route,
    "of": _of,
    "left": _left,
    "records/s": lambda rate: UNKNOWN if rate is None else f"{floor(rate + 0.5):,}",
    "bytes/s": lambda rate: "" if rate is None else f"{size(rate)}/s",
    "time to go": _time_to_go,
    "broker is": _broker_is,
}

"""Columns, each declared once: what of a row is in it, how that is written, how it is drawn.

The terminal's tables draw them, and the page, which gets them with each view. A figure is written
by its unit; ``web/static/shell/format.js`` has the same units.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal

import msgspec

from caughtup.models.durations import counted, duration, size
from caughtup.models.verdicts import LAG, REASSIGNMENTS, Vocabulary

Unit = Literal["text", "partition", "route", "of", "left", "bytes/s", "time to go"]


class Column(msgspec.Struct, frozen=True, omit_defaults=True):
    """A column: its heading, and how it gives way where there is no room for it.

    ``name``: what is in it may be cut in its middle. ``order``: of several columns the one with
    the smallest is left out first; None: never. ``colours``: of cells, by what is in them.
    ``of``: the attributes of a row that are in it, written by ``unit``.
    """

    heading: str
    right: bool = False
    name: bool = False
    order: int | None = None
    colours: Mapping[str, str] = {}
    of: tuple[str, ...] = ()
    unit: Unit = "text"

    def cell(self, row: object) -> str:
        """Return what a row has in it; nothing where that isn't known."""
        return written(self.unit, *(getattr(row, name) for name in self.of))


def written(unit: Unit, *values: Any) -> str:
    """Return figures as people read them, in their unit; nothing where they aren't known.

    ``left`` takes bytes, and offsets where those aren't known; ``of`` takes some and all;
    ``time to go`` takes seconds, and whether that is never.
    """
    return _UNITS[unit](*values)


def _left(in_bytes: float | None, offsets: int | None) -> str:
    if in_bytes is not None:
        return size(in_bytes)
    return "unknown" if offsets is None else counted(offsets, "offset")


def _route(source: Sequence[int], target: Sequence[int]) -> str:
    return " → ".join(",".join(map(str, brokers)) for brokers in (source, target))


def _of(some: Collection[int], every: Collection[int]) -> str:
    return f"{len(set(some) & set(every))} of {len(every)}"


def _time_to_go(seconds: float | None, never: bool | None) -> str:
    if never:
        return "never"
    return "" if seconds is None else duration(seconds)


_UNITS: dict[Unit, Callable[..., str]] = {
    "text": lambda value: "" if value is None else str(value),
    "partition": lambda topic, partition: f"{topic}-{partition}",
    "route": _route,
    "of": _of,
    "left": _left,
    "bytes/s": lambda rate: "" if rate is None else f"{size(rate)}/s",
    "time to go": _time_to_go,
}

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


def _declared(vocabulary: Vocabulary) -> dict[str, Any]:
    terms = [
        {"word": term.word, "colour": term.colour, "sign": term.sign} for term in vocabulary.terms
    ]
    return {"unassessed": vocabulary.unassessed, "terms": terms}


#: What the page gets with each view: verdicts, the best first, and the columns of its tables.
DECLARED = {
    "verdicts": {"lag": _declared(LAG), "reassignments": _declared(REASSIGNMENTS)},
    "columns": {"reassignments": REASSIGNMENT_COLUMNS},
}

"""What ``caughtup reassignments`` prints for people: a table, and what is wrong with each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from caughtup.agents.views.reassignments import in_words
from caughtup.models.durations import duration, size

_CALM = frozenset({"moving", "tail", "completing", "measuring"})
_COLUMNS = ("partition", "from → to", "phase", "in sync", "left", "rate", "ends in", "verdict")
_TO_THE_RIGHT = frozenset({"left", "rate", "ends in"})


def of_kind(lines: Sequence[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    """Return the lines of one kind: ``partition``, ``throttle``, or ``missing``."""
    return [line for line in lines if line["kind"] == kind]


def rendered(lines: Sequence[dict[str, Any]], most: int, more: str = "") -> list[RenderableType]:
    """Draw ``most`` of the reassignments, the worst, and what is wrong with each.

    ``more``: what would tell more of one whose cause is known and whose verdict isn't.
    """
    ongoing = of_kind(lines, "partition")
    table = Table(title="partitions in movement", title_justify="left")
    for column in _COLUMNS:
        right = column in _TO_THE_RIGHT
        table.add_column(column, justify="right" if right else "left", overflow="fold")
    about: list[Text] = []
    for line in ongoing[:most]:
        table.add_row(*cells(line))
        if line["verdict"] not in _CALM or "cause" in line:
            about.append(_about(line, more))
    parts: list[RenderableType] = [table] if ongoing else [Text("no partition is in movement")]
    if len(ongoing) > most:
        parts.append(Text(f"{len(ongoing) - most:,} more, none of them worse"))
    for throttle in of_kind(lines, "throttle"):
        text = f"orphaned throttle on the {throttle['on']} {throttle['name']}: "
        about.append(Text(f"{text}{throttle['what']}\n  {throttle['advice']}"))
    return [*parts, *about]


def cells(line: dict[str, Any]) -> tuple[str, ...]:
    """Return the cells of a reassignment's row."""
    rate = line.get("rate_bytes_per_second")
    return (
        f"{line['topic']}-{line['partition']}",
        f"{_brokers(line['original'])} → {_brokers(line['target'])}",
        line["phase"],
        f"{len(set(line['isr']) & set(line['target']))} of {len(line['target'])}",
        _left(line),
        "" if rate is None else f"{size(rate)}/s",
        _ends_in(line),
        line["verdict"],
    )


def explained(line: dict[str, Any]) -> list[str]:
    """Explain why a reassignment has its verdict: the figures, and what can be done."""
    return [*filter(None, (in_words(line.get("evidence", {})), line.get("advice", "")))]


def _about(line: dict[str, Any], more: str) -> Text:
    cause = f" ({line['cause']})" if "cause" in line else ""
    said = [f"{line['topic']}-{line['partition']}: {line['verdict']}{cause}", *explained(line)]
    away = line.get("evidence", {}).get("away_seconds")
    if line["verdict"] == "measuring" and away is not None:
        said[0] += ", and no copy grows"
        seen = f"seen for {duration(away)} only, and a restart takes up to a minute"
        said.append(f"{seen}; {more}" if more else seen)
    return Text("\n  ".join(said))


def _left(line: dict[str, Any]) -> str:
    if "bytes_remaining" in line:
        return size(line["bytes_remaining"])
    return f"{line['offsets_remaining']:,} offsets" if "offsets_remaining" in line else "unknown"


def _ends_in(line: dict[str, Any]) -> str:
    if line.get("never"):
        return "never"
    return duration(line["eta_seconds"]) if "eta_seconds" in line else ""


def _brokers(brokers: Sequence[int]) -> str:
    return ",".join(map(str, brokers))

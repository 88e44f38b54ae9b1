"""What ``caughtup reassignments`` prints for people: a table, and what is wrong with each."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from caughtup.agents.columns import REASSIGNMENT_COLUMNS
from caughtup.models.durations import duration
from caughtup.models.reassignments.advice import in_words
from caughtup.models.records.reassignment_lines import Line, Reassignment, ThrottleLine
from caughtup.models.verdicts import CALM


def rendered(lines: Sequence[Line], most: int, more: str = "") -> list[RenderableType]:
    """Draw ``most`` of the reassignments, the worst, and what is wrong with each.

    ``more``: what would tell more of one whose cause is known and whose verdict isn't.
    """
    ongoing = [line for line in lines if isinstance(line, Reassignment)]
    table = Table(title="partitions in movement", title_justify="left")
    for column in REASSIGNMENT_COLUMNS:
        table.add_column(
            column.heading, justify="right" if column.right else "left", overflow="fold"
        )
    about: list[Text] = []
    for row in ongoing[:most]:
        table.add_row(*(column.cell(row) for column in REASSIGNMENT_COLUMNS))
        if row.verdict not in CALM or row.verdict == "unknown" or row.cause is not None:
            about.append(_about(row, more))
    parts: list[RenderableType] = [table] if ongoing else [Text("no partition is in movement")]
    if len(ongoing) > most:
        parts.append(Text(f"{len(ongoing) - most:,} more, none of them worse"))
    for line in lines:
        if isinstance(line, ThrottleLine):
            text = f"orphaned throttle on the {line.on} {line.name}: {line.what}"
            about.append(Text(f"{text}\n  {line.advice}"))
    return [*parts, *about]


def heading(row: Reassignment) -> str:
    """Return a reassignment's verdict with its cause."""
    return row.verdict if row.cause is None else f"{row.verdict} ({row.cause})"


def explained(row: Reassignment) -> list[str]:
    """Explain why a reassignment has its verdict: the figures, and what can be done."""
    return [*filter(None, (in_words(row.evidence or {}), row.advice))]


def _about(row: Reassignment, more: str) -> Text:
    said = [f"{row.topic_partition}: {heading(row)}", *explained(row)]
    away = (row.evidence or {}).get("away_seconds")
    if row.verdict == "measuring" and isinstance(away, float | int):
        said[0] += ", and no copy grows"
        seen = f"seen for {duration(away)} only, and a restart takes up to a minute"
        said.append(f"{seen}; {more}" if more else seen)
    return Text("\n  ".join(said))

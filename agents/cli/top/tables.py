"""Tables as values: their lines, filtered, sorted, and fitted to the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rich.cells import cell_len

from caughtup.agents.cli.lag.rows import Rank
from caughtup.agents.cli.text_tables import GAP, NOTHING, elided, fitted, printable
from caughtup.agents.columns import Column

#: The most lines that are shown; the filter finds others.
MOST = 1_000


class Line(NamedTuple):
    """A line of a table. ``key`` identifies it; ``ranks`` has its sort key for each order."""

    key: tuple[str | int, ...]
    cells: tuple[str, ...]
    ranks: Mapping[str, Rank]


class TopTable(NamedTuple):
    """A table with its sort orders, the first of which is the default.

    ``about`` are sentences above it, ``nothing`` the text of an empty table.
    """

    name: str
    columns: tuple[Column, ...]
    lines: Sequence[Line]
    orders: tuple[str, ...]
    nothing: str
    about: tuple[str, ...] = ()


class Drawn(NamedTuple):
    """A table on a terminal: texts padded to the width of their column."""

    keys: tuple[tuple[str | int, ...], ...]
    widths: tuple[int, ...]
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    #: For each column, the colours by the text of a cell.
    colours: tuple[Mapping[str, str], ...]


def wanted(table: TopTable, words: str, order: str) -> list[Line]:
    """Return the lines that contain all the words, sorted by one of the table's orders."""
    sought = words.casefold().split()
    found = [line for line in table.lines if _has(line, sought)] if sought else [*table.lines]
    found.sort(key=lambda line: line.key)
    found.sort(key=lambda line: line.ranks[order])
    return found


def _has(line: Line, words: Sequence[str]) -> bool:
    text = " ".join(line.cells).casefold()
    return all(word in text for word in words)


def drawn(table: TopTable, lines: Sequence[Line], room: int) -> Drawn:
    """Return lines for ``room`` cells, with names shortened and columns left out to fit."""
    cells = [[printable(cell) or NOTHING for cell in line.cells] for line in lines]
    shown, widths = fitted(table.columns, cells, room - len(GAP))
    columns = [table.columns[at] for at in shown]
    wide = [widths[at] for at in shown]
    rows = (
        tuple(
            _padded(row[at], column, width)
            for at, column, width in zip(shown, columns, wide, strict=True)
        )
        for row in cells
    )
    return Drawn(
        keys=tuple(line.key for line in lines),
        widths=tuple(width + len(GAP) for width in wide),
        headings=tuple(
            _padded(c.heading.upper(), c, width) for c, width in zip(columns, wide, strict=True)
        ),
        rows=tuple(rows),
        colours=tuple(column.colours for column in columns),
    )


def _padded(text: str, column: Column, width: int) -> str:
    text = elided(text, width)
    padding = " " * (width - cell_len(text))
    return (padding + text if column.right else text + padding) + GAP

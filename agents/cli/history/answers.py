"""A query's answer as a table, JSON lines, CSV, or bars in the terminal."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from shutil import get_terminal_size

import msgspec
from rich.cells import cell_len

from caughtup.agents.cli.history.tables import Answer, Row
from caughtup.agents.cli.text_tables import Output, elided, lines, printable
from caughtup.agents.columns import Column
from caughtup.agents.errors import UserError

_NUMBERS = (int, float, Decimal)
_BAR_CELLS, _LABEL_CELLS = 60, 48
#: Unicode's eighths of a cell.
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def formatted(answer: Answer, form: str, plotted: str, *, wide: bool) -> Iterator[str]:
    """Yield the lines of an answer; ``plotted`` is the column for bars, if the answer has it.

    Raises UserError if no column can be plotted.
    """
    names = answer.names
    if form == "json":
        for row in answer.rows:
            yield msgspec.json.encode(dict(zip(names, map(_plain, row), strict=True))).decode()
    elif form == "csv":
        yield from _csv([names])
        for row in answer.rows:
            yield from _csv([[_text(cell) for cell in row]])
    elif form == "plot":
        yield from _bars(names, list(answer.rows), plotted)
    else:
        rows = list(answer.rows)
        columns = [_column(name, [row[at] for row in rows]) for at, name in enumerate(names)]
        cells = [[_shown(cell) for cell in row] for row in rows]
        yield from lines(columns, cells, Output.of_stdout(wide=wide))


def _csv(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerows(rows)
    yield text.getvalue()


def _column(name: str, values: Sequence[object]) -> Column:
    known = [value for value in values if value is not None]
    is_number = bool(known) and all(isinstance(value, _NUMBERS) for value in known)
    return Column(name, right=is_number, name=not is_number)


def _bars(names: Sequence[str], rows: Sequence[Row], plotted: str) -> Iterator[str]:
    """Yield a bar for each row, of the column ``plotted``, else of the last with numbers."""
    numbers = [
        at
        for at in range(len(names))
        if any(isinstance(row[at], _NUMBERS) and not isinstance(row[at], bool) for row in rows)
    ]
    if not numbers:
        raise UserError("cannot draw the answer: none of its columns has numbers")
    drawn = (
        names.index(plotted)
        if plotted in names and names.index(plotted) in numbers
        else numbers[-1]
    )
    labels = [
        elided(
            " ".join(_shown(row[at]) for at in range(len(names)) if at not in numbers), _LABEL_CELLS
        )
        for row in rows
    ]
    width = max((cell_len(label) for label in labels), default=0)
    values = [row[drawn] for row in rows]
    greatest = max((float(value) for value in values if value is not None), default=0.0)
    figures = [_shown(value) or "unknown" for value in values]
    figure_width = max(map(len, figures), default=0)
    room = max(10, min(_BAR_CELLS, get_terminal_size().columns - width - figure_width - 4))
    yield f"{names[drawn]}:"
    for label, value, figure in zip(labels, values, figures, strict=True):
        share = 0.0 if value is None or greatest <= 0 else max(0.0, float(value)) / greatest
        pad = " " * (width - cell_len(label))
        yield f"{label}{pad}  {figure:>{figure_width}}  {bar(share, room)}".rstrip()


def bar(share: float, cells: int) -> str:
    """Return a bar over a share of ``cells``, to an eighth of a cell."""
    eighths = round(share * cells * 8)
    whole, rest = divmod(eighths, 8)
    return "█" * whole + (_EIGHTHS[rest] if rest else "")


def _shown(value: object) -> str:
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
    if isinstance(value, bool) or not isinstance(value, int):
        return _text(value)
    return f"{value:,}"


def _text(value: object) -> str:
    plain = _plain(value)
    if plain is None:
        return ""
    if isinstance(plain, bool):
        return "true" if plain else "false"
    return printable(plain if isinstance(plain, str) else str(plain))


def _plain(value: object) -> object:
    """Return a value for JSON: bytes in hexadecimal, times in UTC."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value

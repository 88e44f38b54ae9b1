"""Plain columns of text: full names in a pipe, shortened to fit on a terminal.

Each row is one line, whatever is in its names, for grep, head and awk.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from shutil import get_terminal_size
from typing import NamedTuple, TypeVar

import click
from rich.cells import cell_len

from caughtup.agents.columns import Column
from caughtup.agents.errors import UserError

GAP = "  "
#: Stands for an empty cell, so that all rows have the same number of words.
NOTHING = "-"
_ELLIPSIS = "…"
#: The least widths of shortened names: before columns are left out, and after.
_SHORTEST, _SHORTEST_OF_ALL = 16, 8


#: Clears a terminal, also what has scrolled off it.
_CLEAR = "\x1b[H\x1b[2J\x1b[3J"

Looked = TypeVar("Looked")


class Output(NamedTuple):
    """The terminal's ``width``, None if nothing is cut, and whether it gets colours."""

    width: int | None
    colours: bool

    @classmethod
    def of_stdout(cls, *, wide: bool) -> Output:
        """Return the properties of standard output; NO_COLOR and TERM=dumb disable colours."""
        terminal = sys.stdout.isatty()
        plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
        return cls(
            get_terminal_size().columns if terminal and not wide else None,
            terminal and not plain,
        )


def printable(text: str) -> str:
    """Return a text with its unprintable characters escaped."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )


def lines(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], output: Output
) -> Iterator[str]:
    """Yield the heading and the rows as lines."""
    cells = [[printable(cell) or NOTHING for cell in row] for row in rows]
    shown, widths = fitted(columns, cells, output.width)
    heading = _line([columns[at].heading for at in shown], columns, shown, widths, painted=False)
    yield click.style(heading, bold=True) if output.colours else heading
    for row in cells:
        yield _line([row[at] for at in shown], columns, shown, widths, painted=output.colours)


def fitted(
    columns: Sequence[Column], cells: Sequence[Sequence[str]], room: int | None
) -> tuple[list[int], list[int]]:
    """Return the indexes of the columns that fit into ``room`` cells (None: all), and the widths."""
    widths = [
        max(len(column.heading), *(cell_len(row[at]) for row in cells), 0)
        for at, column in enumerate(columns)
    ]
    shown = list(range(len(columns)))
    if room is None:
        return shown, widths
    optional = sorted(
        (at for at in shown if columns[at].order is not None),
        key=lambda at: columns[at].order or 0,
    )
    while optional and _least(columns, widths, shown, _SHORTEST) > room:
        shown.remove(optional.pop(0))
    fitted = list(widths)
    names = [at for at in shown if columns[at].name]
    for shortest in (_SHORTEST, _SHORTEST_OF_ALL):
        while _total(fitted, shown) > room:
            widest = max(names, key=lambda at: fitted[at], default=None)
            if widest is None or fitted[widest] <= shortest:
                break
            fitted[widest] -= 1
    return shown, fitted


def _least(columns: Sequence[Column], widths: list[int], shown: list[int], shortest: int) -> int:
    least = [
        min(width, shortest) if c.name else width for c, width in zip(columns, widths, strict=True)
    ]
    return _total(least, shown)


def _total(widths: Sequence[int], shown: Sequence[int]) -> int:
    return sum(widths[at] for at in shown) + len(GAP) * (len(shown) - 1)


def _line(
    cells: Sequence[str],
    columns: Sequence[Column],
    shown: Sequence[int],
    widths: Sequence[int],
    *,
    painted: bool,
) -> str:
    parts = []
    for cell, at in zip(cells, shown, strict=True):
        text = elided(cell, widths[at]) if columns[at].name else cell
        padding = " " * (widths[at] - cell_len(text))
        if painted and (colour := columns[at].colours.get(cell)):
            text = click.style(text, fg=colour)
        parts.append(padding + text if columns[at].right else text + padding)
    return GAP.join(parts).rstrip()


def elided(text: str, width: int) -> str:
    """Return a text of at most ``width`` cells, shortened in its middle."""
    if cell_len(text) <= width:
        return text
    left = (width - 1) // 2 + (width - 1) % 2
    return _start(text, left) + _ELLIPSIS + _start(text[::-1], width - 1 - left)[::-1]


def _start(text: str, width: int) -> str:
    taken = 0
    for at, character in enumerate(text):
        taken += cell_len(character)
        if taken > width:
            return text[:at]
    return text


def escape_unencodable() -> None:
    """Escape characters that the terminal's encoding lacks, instead of failing at them."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")


def watch(
    look: Callable[[], Looked],
    looked: Looked,
    shown: Callable[[Looked], Iterable[str]],
    seconds: float,
    *,
    json: bool,
) -> None:
    """Print the lines of a look, and look again every ``seconds``, until Ctrl-C.

    A terminal shows tables in place. A look that fails is reported, and the next one may succeed.
    """
    in_place = sys.stdout.isatty() and os.environ.get("TERM") != "dumb" and not json
    try:
        while True:
            text = list(shown(looked))
            if in_place:
                room = max(1, get_terminal_size().lines - 1)
                click.echo(_CLEAR + "\n".join(text[:room]))
            elif text:
                click.echo("\n".join(text) + ("" if json else "\n"))
            sys.stdout.flush()
            time.sleep(seconds)
            try:
                looked = look()
            except UserError as error:
                error.show()
    except KeyboardInterrupt:
        return

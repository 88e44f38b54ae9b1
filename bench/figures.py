"""What a benchmark measured, and how several of them print it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.table import Table

#: The figures of one measurement by name, as they are printed in JSON: each benchmark has its own.
Figures = dict[str, Any]


def printed(
    measured: Iterable[Figures],
    output: str,
    table: Callable[[Sequence[Figures]], Table],
    width: int | None = None,
) -> list[Figures]:
    """Print figures, each at once as JSON or all of them in a table, and return them.

    ``width``: the columns of the output that the table needs; None for the terminal's own.
    """
    figures = []
    for one in measured:
        figures.append(one)
        if output == "json":
            click.echo(msgspec.json.encode(one).decode())
    if output == "table":
        Console(width=width).print(table(figures))
    return figures

"""Print the six cases as a table: the document, Kafka, and whether caughtup agreed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from caughtup.demo.story.connect.rows import CaseRow
from caughtup.demo.story.connect.show import PlayedCases

_CAPTION = (
    "d is {seconds:g} s. As documented: each worker has as much of each kind. Match: caughtup "
    "decides the generation as its leader did. Foretold: what nobody had went to whom caughtup had "
    "said, within a second of when."
)


def lines(played: PlayedCases) -> Iterator[dict[str, Any]]:
    """Yield a JSON line for each round of a case."""
    for row in played.rows:
        line = row.line(match=played.matches(row.logged.number))
        came = played.came(row)
        yield line if came is None else {**line, "as_foretold": came}


def print_played(played: PlayedCases, max_delay_ms: int, console: Console) -> None:
    """Print the table and the problems."""
    table = Table(
        *("case", "what happens", "the document", "Kafka 4.3.1", "as documented"),
        *("match", "foretold"),
        title="The document's six cases on three workers",
        caption=_CAPTION.format(seconds=max_delay_ms / 1000),
    )
    for row in played.rows:
        table.add_row(
            *(row.step.number, row.event, escape(row.document), escape(row.kafka)),
            {True: "yes", False: "[yellow]no[/]", None: "not said"}[row.as_documented],
            "yes" if played.matches(row.logged.number) else "[red]NO[/]",
            _foretold(played, row),
        )
    console.print(table)
    numbers = [one.logged.number for one in played.again]
    matches = sum(map(played.matches, numbers))
    console.print(f"{matches} of {len(numbers)} generations decided as their leaders did.")
    after = sorted(played.watched.after_ms.values())
    if after:
        console.print(
            f"Decided {after[len(after) // 2] / 1000:.2f} s after they were in the log (median of "
            f"{len(after)}), at most {after[-1] / 1000:.2f} s."
        )
    for problem in problems(played):
        console.print(f"[red]{escape(problem)}[/]")


def problems(played: PlayedCases) -> Iterator[str]:
    """Yield a sentence for each problem."""
    for one in played.again:
        number = one.logged.number
        if not played.matches(number):
            result = played.watched.results.get(number, "nothing")
            why = one.differs or played.watched.whys.get(number, "")
            yield f"generation {number}: caughtup said {result}; {why}"
    for row in played.rows:
        if not row.as_decided:
            yield f"{row.step.number}: not what Kafka 4.3.1 is known to decide"


def _foretold(played: PlayedCases, row: CaseRow) -> str:
    came = played.came(row)
    if came is None:
        return ""
    late_ms = played.foretold[row.step.number].late_ms(row.logged)
    late = "" if late_ms is None else f" ({late_ms / 1000:+.2f} s)"
    return f"yes{late}" if came else f"[red]NO[/]{late}"

"""Print the story's result: both applications side by side, and the difference."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.table import Table

from caughtup.demo.story.growing import PROBING_SECONDS
from caughtup.demo.story.twins.cost import Cost

#: Kafka's default of probing.rebalance.interval.ms.
_DEFAULT_PROBING_MINUTES = 10


def side_by_side(costs: Sequence[Cost]) -> Table:
    """Return a table with a column for each application."""
    table = Table("since the fourth instance joined", title="What it cost")
    for each in costs:
        table.add_column(each.application, justify="right")
    for name, cell in _ROWS:
        table.add_row(name, *(cell(each) for each in costs))
    return table


def punch_line(follows: Cost, kafkas: Cost) -> str:
    """Return the result in a few sentences: what each of the two applications did."""
    said = f"{_sentence(follows)} {_sentence(kafkas)}"
    if probed := interval_waits(kafkas):
        said += (
            f" Of that it waited {probed} × {PROBING_SECONDS} s for"
            " probing.rebalance.interval.ms, which is"
            f" {_DEFAULT_PROBING_MINUTES} minutes unless somebody sets it."
        )
    return said


def interval_waits(each: Cost) -> int:
    """Count the rebalances that came after a whole probing.rebalance.interval.ms.

    A little less counts: the interval begins when the leader decides, a moment later than that by
    which a generation is dated.
    """
    return sum(waited >= 1000 * (PROBING_SECONDS - 2) for waited in each.waits_ms)


def _sentence(each: Cost) -> str:
    copies = f"{each.copies} {'copy' if each.copies == 1 else 'copies'} of state"
    rebalances = f"{each.rebalances} rebalance{'' if each.rebalances == 1 else 's'}"
    if each.balanced:
        return f"{each.application} built {copies} in {rebalances}: {each.seconds:.0f} s."
    return (
        f"{each.application} built {copies} in {rebalances} so far, and after"
        f" {each.seconds:.0f} s is not balanced yet."
    )


def _seconds(each: Cost) -> str:
    return f"{each.seconds:,.0f}" if each.balanced else f"not within {each.seconds:,.0f}"


def _waited(each: Cost) -> str:
    return f"{len(each.waits_ms)}, {each.waited_seconds:,.0f} s"


_ROWS: Sequence[tuple[str, Callable[[Cost], str]]] = (
    ("copies of state built", lambda each: f"{each.copies:,}"),
    (
        "copies that caughtup foretold",
        lambda each: "–" if each.foretold is None else f"{each.foretold:,}",
    ),
    ("offsets restored", lambda each: f"{each.offsets:,}"),
    ("rebalances", lambda each: f"{each.rebalances:,}"),
    ("of these waited for", _waited),
    (
        f"of these for the probing interval ({PROBING_SECONDS} s)",
        lambda each: str(interval_waits(each)),
    ),
    ("seconds until each instance has its share", _seconds),
)

"""``caughtup explain`` of a consumer group: who has what, who decided it, and what would even it out."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from caughtup.agents.clock import now_ms
from caughtup.agents.columns import MEMBER_COLUMNS, REBALANCE_COLUMNS, Column, cells
from caughtup.models.rebalances.rebalance import GroupRebalance
from caughtup.models.shown.consumer_group import ConsumerGroupExplanation
from caughtup.models.shown.sentences import decided_sentences, sentences

_MOST_REBALANCES = 10


def print_consumer_group(console: Console, group: ConsumerGroupExplanation) -> None:
    """Print a group's assignment, who decided it, and what one member more or fewer would change."""
    what = "generation" if group.group_type == "classic" else "epoch"
    console.print(f"{group.group}, {what} {group.generation}", style="bold")
    for line in decided_sentences(group):
        console.print(line)
    console.print(_table("Assigned", MEMBER_COLUMNS, group.members))
    print_rebalances(console, group.rebalances)
    for line in sentences(group, now_ms()):
        console.print(line)


def print_rebalances(console: Console, rebalances: Sequence[GroupRebalance]) -> None:
    """Print a group's last rebalances, the newest first, each with its causes and its cost."""
    if not rebalances:
        return
    console.print(_table("Last rebalances", REBALANCE_COLUMNS, rebalances[:_MOST_REBALANCES]))
    newest = rebalances[0]
    if newest.cause.why:
        console.print(f"The last one: {newest.cause.text}; {newest.cause.why}.")


def _table(title: str, columns: Sequence[Column], rows: Sequence[object]) -> Table:
    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column.heading.lower(), justify="right" if column.right else "left")
    now = now_ms()
    for row in rows:
        table.add_row(*cells(columns, row, now))
    return table

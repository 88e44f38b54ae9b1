"""``caughtup pipeline convert``: the folders that 0.1 wrote, as tables."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from caughtup.agents.cli.examples import examples
from caughtup.agents.cli.extras import missing_extra
from caughtup.agents.cli.options import config_option
from caughtup.agents.configuration.s3_access import store_environment
from caughtup.agents.errors import UserError
from caughtup.agents.progress import Progress
from caughtup.models.errors import CaughtupError


@click.command(
    short_help="Make Delta Lake tables of the history of 0.1.",
    epilog=examples(
        "caughtup pipeline convert --output file:///data/history --checkpoint file:///data/checkpoint"
    ),
)
@click.option("--output", required=True, metavar="URI", help="The directory that 0.1 wrote.")
@click.option("--checkpoint", required=True, metavar="URI", help="The checkpoint of 0.1.")
@config_option
def convert(output: str, checkpoint: str, config: Path | None) -> None:
    """Make Delta Lake tables of the folders of caughtup 0.1, in their place.

    No file is copied or changed: the tables take them in, and `history` goes on from the batch
    that was the last. Stop the history first; 0.1 refuses to write there afterwards.
    """
    try:
        from caughtup.pipelines.delta.store import store_of
        from caughtup.pipelines.history.convert import convert as converted
    except ImportError as error:
        raise missing_extra("spark", error) from error
    try:
        tables, old = (
            store_of(uri, environment=store_environment(uri, config))
            for uri in (output, checkpoint)
        )
        found = converted(tables, old, Progress().task)
    except CaughtupError as error:
        raise UserError(error.message) from error
    table = Table(title="Converted", title_justify="left")
    table.add_column("table")
    for heading in ("files", "rows"):
        table.add_column(heading, justify="right")
    for one in found:
        table.add_row(one.table, f"{one.files:,}", f"{one.rows:,}")
    Console(markup=False).print(table)

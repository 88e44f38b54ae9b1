"""``caughtup pipeline compact``: small files of the history's past days made one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click
import msgspec
from rich.console import Console
from rich.table import Table

from caughtup.agents.cli.examples import examples
from caughtup.agents.cli.pipeline.spark import start_spark
from caughtup.agents.cli.run import set_up_logging
from caughtup.agents.clock import now_ms
from caughtup.agents.errors import UserError
from caughtup.agents.progress import Progress
from caughtup.agents.views.reassignments import size
from caughtup.models.errors import CaughtupError

if TYPE_CHECKING:
    from caughtup.pipelines.compaction.job import Compacted, Compactions

_MEGABYTE = 1_000_000


@click.command(
    short_help="Make few files of many in the history.",
    epilog=examples("caughtup pipeline compact --output file:///data/history --dry-run"),
)
@click.option("--output", required=True, metavar="URI", help="The history's directory.")
@click.option(
    "--table",
    "tables",
    multiple=True,
    metavar="NAME",
    help="Only this table. May be repeated. [default: all]",
)
@click.option(
    "--keep-days",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    help="So many of the last days, today (UTC) included, are left alone.",
)
@click.option(
    "--target-megabytes",
    type=click.FloatRange(min=0, min_open=True),
    default=128,
    show_default=True,
    help="About how large a file becomes. What is half as large is left alone.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be done, and change nothing.")
@click.option("--master", help="The Spark master. [default: local[*], or spark-submit's]")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="A table for a person, or one JSON object a line.",
)
@click.pass_context
def compact(
    context: click.Context,
    output: str,
    tables: tuple[str, ...],
    keep_days: int,
    target_megabytes: float,
    dry_run: bool,
    master: str | None,
    form: str,
) -> None:
    """Make few files of the many that `history` has written for each past day.

    No row is ever missing. Queries that run meanwhile may see rows twice for a moment, or be told
    that a file has gone: ask again. Started again after it was killed, it ends what it began.
    """
    set_up_logging("INFO")
    try:
        found = _compact(output, tables, keep_days, target_megabytes, dry_run, master)
    except CaughtupError as error:
        raise UserError(error.message) from error
    if form == "json":
        for table in found.tables:
            click.echo(msgspec.json.encode(_line(table)).decode())
    else:
        Console(markup=False).print(_table(found.tables, dry_run))
    for problem in found.problems:
        click.echo(f"caughtup: {problem}", err=True)
    if found.problems:
        context.exit(1)


def _compact(
    output: str,
    tables: Sequence[str],
    keep_days: int,
    target_megabytes: float,
    dry_run: bool,
    master: str | None,
) -> Compactions:
    spark = start_spark("caughtup compact", master)
    from caughtup.pipelines.compaction.job import CompactOptions
    from caughtup.pipelines.compaction.job import compact as compacted

    options = CompactOptions(
        output,
        datetime.fromtimestamp(now_ms() / 1000, UTC).date(),
        tables,
        keep_days,
        max(1, round(target_megabytes * _MEGABYTE)),
        dry_run,
    )
    try:
        return compacted(spark, options, Progress().task)
    finally:
        spark.stop()


def _line(table: Compacted) -> dict[str, Any]:
    return {
        "table": table.table,
        "days": len(table.days),
        "files_before": table.files_before,
        "files_after": table.files_after,
        "bytes_before": table.bytes_before,
        "bytes_after": table.bytes_after,
    }


def _table(tables: Sequence[Compacted], dry_run: bool) -> Table:
    title = "Would be compacted" if dry_run else "Compacted"
    found = Table(title=title, title_justify="left")
    found.add_column("table")
    for heading in ("days", "files", "become", "size", "becomes"):
        found.add_column(heading, justify="right")
    for table in tables:
        sizes = (table.bytes_before, table.bytes_after)
        found.add_row(
            table.table,
            *(f"{figure:,}" for figure in (len(table.days), table.files_before, table.files_after)),
            *("" if bytes_ is None else size(bytes_) for bytes_ in sizes),
        )
    return found

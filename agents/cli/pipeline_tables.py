"""``caughtup pipeline compact`` and ``convert``: upkeep of the history's tables, without Spark."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec
from rich.console import Console
from rich.table import Table

from caughtup.agents.cli.commands import examples, missing_extra
from caughtup.agents.cli.options import config_option
from caughtup.agents.clock import now_ms
from caughtup.agents.configuration.s3_access import store_environment
from caughtup.agents.errors import UserError
from caughtup.agents.process.logs import set_up_logging
from caughtup.agents.progress import Progress
from caughtup.models.durations import size
from caughtup.models.errors import CaughtupError
from caughtup.pipelines.schema import VACUUM_HOURS

if TYPE_CHECKING:
    from caughtup.pipelines.delta.upkeep import TableUpkeep, Upkeep, UpkeepOptions

_DAYS = re.compile(r"([0-9]{1,5})d")


class Days(click.ParamType):
    """Days, such as ``90d``."""

    name = "days"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Return the days, at least 1."""
        if isinstance(value, int):
            return value
        found = _DAYS.fullmatch(str(value).strip())
        if not found or not int(found[1]):
            self.fail(f"{value!r} is not a number of days, such as 90d", param, ctx)
        return int(found[1])


keep_option = click.option(
    "--keep",
    type=Days(),
    metavar="DAYS",
    help="Delete rows that are older than this many days, such as 90d. [default: keep all]",
)


_MEGABYTE = 1_000_000


@click.command(
    short_help="Merge the history's small files into large ones.",
    epilog=examples("caughtup pipeline compact --output file:///data/history --dry-run"),
)
@click.option("--output", required=True, metavar="URI", help="The history's directory.")
@config_option
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
    help="Leave out this many of the last days, today (UTC) included.",
)
@click.option(
    "--target-megabytes",
    type=click.FloatRange(min=0, min_open=True),
    default=128,
    show_default=True,
    help="About how large a file becomes.",
)
@keep_option
@click.option(
    "--vacuum-hours",
    type=click.IntRange(min=1),
    default=VACUUM_HOURS,
    show_default=True,
    help="Remove files that have been in no table's newest version for this long.",
)
@click.option("--dry-run", is_flag=True, help="Print what would be done, and change nothing.")
@click.option("--master", hidden=True, help="Ignored: the command no longer needs Spark.")
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
    config: Path | None,
    tables: tuple[str, ...],
    keep_days: int,
    target_megabytes: float,
    keep: int | None,
    vacuum_hours: int,
    dry_run: bool,
    master: str | None,
    form: str,
) -> None:
    """Merge the history's small files into large ones, and remove files that no version needs.

    `history` does it once a day by itself, unless it runs with --no-upkeep. Readers and writers
    can go on meanwhile, and no row is missing or doubled at any time.
    """
    set_up_logging("INFO")
    try:
        from caughtup.pipelines.delta.upkeep import UpkeepOptions
    except ImportError as error:
        raise missing_extra("spark", error) from error
    options = UpkeepOptions(
        datetime.fromtimestamp(now_ms() / 1000, UTC).date(),
        tables,
        keep_days,
        max(1, round(target_megabytes * _MEGABYTE)),
        keep,
        vacuum_hours,
        dry_run,
    )
    try:
        found = _keep_up(output, store_environment(output, config), options)
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


def _keep_up(output: str, environment: Mapping[str, str], options: UpkeepOptions) -> Upkeep:
    from caughtup.pipelines.delta.store import store_of
    from caughtup.pipelines.delta.upkeep import keep_up
    from caughtup.pipelines.history.tables import LAYOUTS

    names = [layout.name for layout in LAYOUTS]
    root = store_of(output, environment=environment)
    return keep_up(root, names, options, Progress().task)


def _line(table: TableUpkeep) -> dict[str, object]:
    return {**asdict(table), "days": len(table.days)}


def _table(tables: Sequence[TableUpkeep], dry_run: bool) -> Table:
    found = Table(title="Would be done" if dry_run else "Done", title_justify="left")
    found.add_column("table")
    for heading in ("days", "files", "become", "size", "becomes", "of old days", "vacuumed"):
        found.add_column(heading, justify="right")
    for table in tables:
        files = (len(table.days), table.files_before, table.files_after)
        sizes = (table.bytes_before, table.bytes_after)
        found.add_row(
            table.table,
            *(f"{figure:,}" for figure in files),
            *("" if bytes_ is None else size(bytes_) for bytes_ in sizes),
            *(f"{figure:,}" for figure in (table.files_of_old_days, table.files_vacuumed)),
        )
    return found


@click.command(
    short_help="Make Delta Lake tables of the history that 0.1 wrote.",
    epilog=examples(
        "caughtup pipeline convert --output file:///data/history --checkpoint file:///data/checkpoint"
    ),
)
@click.option("--output", required=True, metavar="URI", help="The directory that 0.1 wrote.")
@click.option("--checkpoint", required=True, metavar="URI", help="The checkpoint of 0.1.")
@config_option
def convert(output: str, checkpoint: str, config: Path | None) -> None:
    """Make Delta Lake tables of the folders that caughtup 0.1 wrote, in the same place.

    No file is copied or changed: the tables refer to the existing files, and `history` continues
    after the last batch. Stop the history first; 0.1 refuses to write there afterwards.
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

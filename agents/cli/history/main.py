"""``caughtup history``: query the history's tables, on this machine and without Spark."""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from caughtup.agents.cli.commands import examples, missing_extra
from caughtup.agents.cli.history.questions import QUESTIONS
from caughtup.agents.cli.options import config_option
from caughtup.agents.cli.text_tables import Output, escape_unencodable, lines
from caughtup.agents.columns import Column
from caughtup.agents.configuration.s3_access import store_environment
from caughtup.agents.errors import UserError
from caughtup.models.errors import CaughtupError

if TYPE_CHECKING:
    from caughtup.agents.cli.history.tables import History

#: Exit status if the answer has no row.
NOTHING_FOUND = 3
_AGO = re.compile(r"([0-9]{1,6})([smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_ABOUT = (
    Column("table", name=True),
    Column("rows", right=True),
    Column("files", right=True),
    Column("MB", right=True),
    Column("version", right=True),
    Column("last commit"),
)


class Time(click.ParamType):
    """A time: ``2026-11-17``, ``2026-11-17T08:00``, or how long ago, such as ``90m`` or ``7d``."""

    name = "time"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        """Return the time in UTC."""
        if isinstance(value, datetime):
            return value
        text = str(value).strip()
        if ago := _AGO.fullmatch(text):
            return datetime.now(UTC) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        try:
            found = datetime.fromisoformat(text)
            return found.replace(tzinfo=found.tzinfo or UTC).astimezone(UTC)
        except (ValueError, OverflowError):
            self.fail(
                f"{text!r} is not a time, such as 2026-11-17, 2026-11-17T08:00, 90m or 7d",
                param,
                ctx,
            )


@click.command(
    short_help="Query the history's tables: what happened, when, and who caused it.",
    epilog=examples(
        "caughtup history --tables /srv/history",
        "caughtup history lag --group orders --since 2026-11-17 --until 2026-11-18 --format plot",
        "caughtup history rebalances --since 7d",
        "caughtup history 'SELECT count(*) FROM commits' --format json",
    ),
)
@click.argument("question", required=False, metavar="[QUESTION|SQL]")
@click.option(
    "--tables",
    "uri",
    envvar="CAUGHTUP_HISTORY",
    metavar="URI",
    help="Where the tables are: the --output of caughtup pipeline history. [default: "
    "CAUGHTUP_HISTORY]",
)
@config_option
@click.option("--group", metavar="GROUP", help="Only of this group.")
@click.option(
    "--since",
    type=Time(),
    default="24h",
    show_default=True,
    help="The earliest time (UTC), or how long ago.",
)
@click.option("--until", type=Time(), default="0s", help="The latest time (UTC). [default: now]")
@click.option(
    "--at",
    metavar="VERSION|TIME",
    help="Query the tables as they were at a version or at a time.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "csv", "plot"]),
    default="table",
    show_default=True,
    help="A table for a person, a JSON object a line, CSV, or a bar for each row.",
)
@click.option("--wide", "-w", is_flag=True, help="Whole names and all columns.")
def history(
    question: str | None,
    uri: str | None,
    config: Path | None,
    group: str | None,
    since: datetime,
    until: datetime,
    at: str | None,
    form: str,
    wide: bool,
) -> None:
    """Query the tables that caughtup pipeline history writes, on this machine and without Spark.

    QUESTION is one of lag (of a group over time), deployments (which cost the most copies),
    commits (a second, by group), rebalances (what caused them), warm-ups (the slowest); anything
    else is SQL, which may contain $since, $until and $group. Without either the command lists the
    tables. Exits with 3 when there is no row.
    """
    if uri is None:
        raise click.UsageError("say where the tables are: --tables URI, or CAUGHTUP_HISTORY=URI")
    try:
        from caughtup.agents.cli.history.answers import formatted
        from caughtup.agents.cli.history.tables import History
        from caughtup.pipelines.delta.store import store_of
    except ImportError as error:
        raise missing_extra("history", error) from None
    try:
        store = store_of(uri, environment=store_environment(uri, config))
        tables = History(store, _version(at))
    except CaughtupError as error:
        raise UserError(error.message) from None
    escape_unencodable()
    if question is None:
        _print_about(tables)
        return
    if since >= until:
        raise click.UsageError("--since must be before --until")
    known = QUESTIONS.get(question)
    if known is None and not re.search(r"\s", question.strip()):
        raise click.UsageError(
            f"{question!r} is not a question: the questions are {', '.join(QUESTIONS)}, or SQL"
        )
    if known is not None and known.needs_group and group is None:
        raise click.UsageError(f"{question} is about one group: name it with --group")
    sql = question if known is None else known.sql
    values = {"since": since, "until": until, "group": group}
    parameters = {name: value for name, value in values.items() if re.search(rf"\${name}\b", sql)}
    printed = -1 if form in {"table", "csv", "plot"} else 0  # for the heading
    for line in formatted(
        tables.ask(sql, parameters), form, known.plotted if known else "", wide=wide
    ):
        click.echo(line)
        printed += 1
    if printed <= 0:
        sys.exit(NOTHING_FOUND)


def _version(at: str | None) -> datetime | int | None:
    if at is None:
        return None
    return int(at) if at.isdecimal() else Time().convert(at, None, None)


def _print_about(tables: History) -> None:
    rows = [
        (
            one.name,
            "unknown" if one.rows is None else f"{one.rows:,}",
            f"{one.files:,}",
            f"{one.bytes / 1e6:,.1f}",
            str(one.version),
            ""
            if one.last_commit_ms is None
            else f"{datetime.fromtimestamp(one.last_commit_ms / 1000, UTC):%Y-%m-%d %H:%M:%S}",
        )
        for one in tables.about()
    ]
    for line in lines(_ABOUT, rows, Output.of_stdout(wide=False)):
        click.echo(line)
    click.echo("")
    for question in QUESTIONS.values():
        click.echo(f"  caughtup history {question.name:<12} {question.asks}")

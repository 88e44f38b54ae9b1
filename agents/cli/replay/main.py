"""``caughtup replay``: recorded generations decided again under other settings, on Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import click
import msgspec
from rich.console import Console

from caughtup.agents.cli.commands import examples
from caughtup.agents.cli.options import config_option
from caughtup.agents.cli.pipeline_jobs import running_spark
from caughtup.agents.cli.replay.report import report as write_report
from caughtup.agents.cli.replay.tables import ReplayPart, lines, notes, parts, table
from caughtup.agents.configuration.s3_access import store_environment
from caughtup.agents.errors import UserError
from caughtup.models.errors import CaughtupError
from caughtup.models.replay.outcome import ReplayRow
from caughtup.models.replay.settings import ReplaySetting, replay_settings


@click.command(
    short_help="Decide recorded generations again under other settings.",
    epilog=examples(
        "caughtup replay --from file:///data/generations --what max.warmup.replicas=2,4,8 --report replay.html"
    ),
)
@click.option(
    "--from",
    "source",
    required=True,
    metavar="URI",
    help="The table that `caughtup pipeline generations` writes.",
)
@config_option
@click.option(
    "--group",
    "groups",
    multiple=True,
    metavar="GROUP",
    help="Only this group. May be repeated. [default: all, summed up]",
)
@click.option(
    "--what",
    multiple=True,
    metavar="CONFIG=VALUE,…",
    help="Values to try, such as max.warmup.replicas=2,4,8. May be repeated: every combination.",
)
@click.option(
    "--assignor",
    "assignors",
    multiple=True,
    metavar="NAME",
    help="high_availability or minimal_movement. May be repeated. [default: high_availability]",
)
@click.option(
    "--bytes-per-offset",
    type=click.IntRange(1, 1 << 30),
    metavar="BYTES",
    help="Bytes per offset of the changelogs, to estimate the bytes copied.",
)
@click.option(
    "--report",
    type=click.Path(path_type=Path, dir_okay=False, writable=True),
    metavar="FILE",
    help="Write a page with plots into this HTML file.",
)
@click.option("--output", metavar="URI", help="Write every decision to a Parquet table here.")
@click.option("--master", help="The Spark master. [default: local[*], or spark-submit's]")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="A table for a person, or one JSON object a line.",
)
def replay(
    source: str,
    config: Path | None,
    groups: tuple[str, ...],
    what: tuple[str, ...],
    assignors: tuple[str, ...],
    bytes_per_offset: int | None,
    report: Path | None,
    output: str | None,
    master: str | None,
    form: str,
) -> None:
    """Decide recorded generations again, and play each change of members until it is balanced.

    Prints copies built, offsets copied, rebalances, time until balanced, cold hand-overs and
    imbalance under every setting, beside what happened.
    """
    try:
        settings = [None, *replay_settings(what, assignors)]
        environment = store_environment(source, config)
        rows = _replay(source, environment, groups, settings, output, master)
    except CaughtupError as error:
        raise UserError(error.message) from error
    if missing := sorted(set(groups) - {row.group for row in rows}):
        raise UserError(f"there are no generations of {missing[0]} at {source}")
    if not rows:
        raise UserError(f"there are no generations at {source}")
    found = parts(rows, settings, by_group=bool(groups), bytes_per_offset=bytes_per_offset)
    _print(found, form)
    if report is not None:
        _write(report, write_report(source, found))


def _replay(
    source: str,
    environment: Mapping[str, str],
    groups: Sequence[str],
    settings: Sequence[ReplaySetting | None],
    output: str | None,
    master: str | None,
) -> list[ReplayRow]:
    with running_spark("caughtup replay", master) as spark:
        from caughtup.pipelines.replay.job import collect_rows, recorded_generations, write_rows
        from caughtup.pipelines.replay.job import replay as replayed

        found = recorded_generations(spark, source, groups, environment)
        rows = replayed(spark, found, settings)
        return collect_rows(rows if output is None else write_rows(rows, output))


def _print(found: Sequence[ReplayPart], form: str) -> None:
    console = Console(markup=False)
    for part in found:
        if form == "json":
            for line in lines(part):
                click.echo(msgspec.json.encode(line).decode())
            continue
        console.print(table(part))
        for note in notes(part):
            console.print(note, style="dim")


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise UserError(f"cannot write {path}: {problem.strerror}") from problem

"""``caughtup bench replay``: a fleet of generated groups replayed on one processor and on two."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec
from rich.console import Console
from rich.table import Table

from caughtup.agents.cli.commands import examples, not_in_checkout
from caughtup.agents.cli.options import format_option
from caughtup.agents.cli.pipeline_jobs import running_spark
from caughtup.agents.errors import UserError
from caughtup.bench.figures import Figures
from caughtup.bench.movement.changes import CHANGES, Change, Variety
from caughtup.bench.options import threads_option
from caughtup.bench.replay.histories import generated_history, write_histories
from caughtup.bench.usage import cpu_seconds
from caughtup.models.assignment.scenario import parse_scenario
from caughtup.models.assignors.registry import decide
from caughtup.models.errors import CaughtupError
from caughtup.models.replay.recorded import RecordedGeneration
from caughtup.models.replay.settings import replay_settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: The mixture of a hundred groups: many small ones, some with a hundred tasks, one with 400.
_MIX = (
    *(CHANGES[0],) * 89,
    *(CHANGES[1], CHANGES[3], CHANGES[4], CHANGES[5], CHANGES[1]) * 2,
    CHANGES[2],
)
#: The recorded generations of each group: the change, and the rebalance after it.
_GENERATIONS = 2
#: The number of decisions that are compared with those made in this process.
_CHECKED = 200
#: The groups in one file.
_GROUPS_A_FILE = 500
_SETTINGS = (
    *replay_settings(["max.warmup.replicas=4,8"], ["high_availability"]),
    *replay_settings([], ["minimal_movement"]),
)


@click.command(
    short_help="Replay a fleet on one processor and on two.",
    epilog=examples("caughtup bench replay --groups 100"),
)
@click.option(
    "--groups",
    type=click.IntRange(min=1),
    default=10_000,
    show_default=True,
    help="How many groups.",
)
@click.option(
    "--makes",
    type=click.IntRange(min=1),
    default=200,
    show_default=True,
    help="How many of the groups are different; the others repeat them.",
)
@threads_option
@format_option
def replay(groups: int, makes: int, threads: tuple[int, ...], output: str) -> None:
    """Generate groups whose members change, and time their replay under four settings.

    The time is from reading the table to writing the decisions, in a Spark session that is warm;
    the figures also have the machine's load just before and the CPU time of all of Spark's
    processes. A few hundred of the decisions are then compared with those of `caughtup assign` on
    this machine.
    """
    figures: list[dict[str, object]] = []
    directory = Path(tempfile.mkdtemp(prefix="caughtup-bench-replay-"))
    try:
        generations = _write_fleet(directory / "generations", groups, makes)
        for count in threads:
            figures.append(_measure(directory, count, groups, generations))
            if output == "json":
                click.echo(msgspec.json.encode(figures[-1]).decode())
    except ImportError as error:
        raise not_in_checkout(error) from error
    except CaughtupError as error:
        raise UserError(error.message) from error
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    if output == "table":
        Console().print(replay_table(figures))


def replay_table(figures: Sequence[Figures]) -> Table:
    """Return the figures as a table; the speed-up is relative to the first."""
    first = figures[0]
    title = f"{first['groups']:,} groups under {first['settings']} settings"
    checked = sum(one["checked"] for one in figures)
    identical = sum(one["identical"] for one in figures)
    caption = (
        "Generated groups; load: runnable processes just before. "
        f"{identical:,} of {checked:,} sampled decisions are the same as those of `caughtup assign`."
    )
    table = Table(title=title, caption=caption)
    for name in ("threads", "seconds", "CPU s", "groups a second", "decisions", "speed-up", "load"):
        table.add_column(name, justify="right")
    for one in figures:
        table.add_row(
            f"{one['threads']}",
            f"{one['seconds']:,.1f}",
            f"{one['cpu_seconds']:,.1f}",
            f"{one['groups_per_second']:,.1f}",
            f"{one['decisions']:,}",
            f"{first['seconds'] / one['seconds']:.2f}",
            f"{one['load']:.1f}",
        )
    return table


def _write_fleet(directory: Path, groups: int, makes: int) -> int:
    """Write the fleet's table; return its number of generations."""
    made = [_make(seed) for seed in range(min(groups, makes))]
    generations, batch = 0, []
    for number in range(groups):
        batch.append(list(_named(f"group-{number:06}", made[number % len(made)])))
        if len(batch) == _GROUPS_A_FILE or number + 1 == groups:
            generations += write_histories(directory, batch)
            batch = []
    return generations


def _make(seed: int) -> list[RecordedGeneration]:
    # 37 and 100 are coprime, so that any few makes have about the same mixture as all.
    change: Change = _MIX[seed * 37 % len(_MIX)]
    variety = Variety(standbys=seed % 2, unequal=seed % 3 == 0, tags=False, racks=False)
    return generated_history("", change, variety, seed, _GENERATIONS)


def _named(group: str, history: Sequence[RecordedGeneration]) -> Iterator[RecordedGeneration]:
    for one in history:
        name = f"{group}/{one.generation}"
        yield replace(one, group=group, scenario={**one.scenario, "name": name})


def _measure(directory: Path, threads: int, groups: int, generations: int) -> dict[str, object]:
    with running_spark("caughtup bench replay", f"local[{threads}]") as spark:
        from caughtup.pipelines.replay.job import recorded_generations, write_rows
        from caughtup.pipelines.replay.job import replay as replayed

        source = str(directory / "generations")
        few = recorded_generations(spark, source, [f"group-{n:06}" for n in range(min(groups, 8))])
        write_rows(replayed(spark, few, _SETTINGS), str(directory / f"warm-up-{threads}"))
        load, cpu = os.getloadavg()[0], cpu_seconds()
        began = time.perf_counter()
        table = recorded_generations(spark, source)
        rows = write_rows(replayed(spark, table, _SETTINGS), str(directory / f"replay-{threads}"))
        seconds, cpu = time.perf_counter() - began, cpu_seconds() - cpu
        decisions = rows.where("decision IS NOT NULL").count()
        checked, identical = _check(table, rows)
    return {
        "threads": threads,
        "groups": groups,
        "generations": generations,
        "settings": len(_SETTINGS),
        "seconds": seconds,
        "cpu_seconds": cpu,
        "groups_per_second": groups / seconds,
        "decisions": decisions,
        "checked": checked,
        "identical": identical,
        "load": load,
    }


def _check(table: DataFrame, rows: DataFrame) -> tuple[int, int]:
    """Compare decisions of a replay with those of ``caughtup assign``; count compared and equal.

    The sample depends only on the groups' names, and is the same each time.
    """
    from pyspark.sql import functions as F  # noqa: N812 (Spark's own way to import it)

    by_name = F.hash("group", "generation", "setting")
    drawn = rows.orderBy(by_name, "group", "generation", "setting").limit(_CHECKED)
    found = drawn.select("group", "generation", "setting", "decision").collect()
    names = sorted({row["group"] for row in found})
    recorded = table.where(F.col("group").isin(names)).select("group", "generation", "scenario")
    scenarios = {(row["group"], row["generation"]): row["scenario"] for row in recorded.collect()}
    settings = {str(setting): setting for setting in _SETTINGS}
    identical = 0
    for row in found:
        scenario = msgspec.json.decode(scenarios[row["group"], row["generation"]])
        decision = decide(parse_scenario(settings[row["setting"]].of(scenario))).to_dict()
        identical += msgspec.json.decode(row["decision"] or "null") == decision
    return len(found), identical

"""``caughtup bench follow``: an application that grows, with the follower and without."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from caughtup.agents.cli.commands import examples, not_in_checkout
from caughtup.agents.cli.options import format_option
from caughtup.agents.errors import UserError
from caughtup.agents.progress import Progress
from caughtup.bench.figures import Figures, printed
from caughtup.models.errors import CaughtupError

_LEAST_TASKS = 8
#: How long the load is measured before anything changes.
_CALM_SECONDS = 15.0
_FOLLOWER = "the follower"
_KAFKA = "Kafka's own assignor"
#: The time-out for each task: Kafka's assignor moves two copies in each probing interval, 1 minute.
_SECONDS_PER_TASK = 120.0


def _even(_context: click.Context, _option: click.Parameter, tasks: int) -> int:
    if tasks % 2:
        raise click.BadParameter(f"{tasks} is odd: each of two subtopologies has as many tasks.")
    return tasks


@click.command(
    short_help="Grow an application with the follower and without it.",
    epilog=examples("caughtup bench follow"),
)
@click.option(
    "--tasks",
    type=click.IntRange(min=_LEAST_TASKS),
    default=24,
    show_default=True,
    callback=_even,
    help="Tasks with state, an even number.",
)
@click.option(
    "--records",
    type=click.IntRange(min=1),
    default=50_000,
    show_default=True,
    help="State of each task, in records.",
)
@click.option(
    "--rate",
    type=click.FloatRange(min=1),
    default=500,
    show_default=True,
    help="Records a second that are produced during the run.",
)
@format_option
def follow(tasks: int, records: int, rate: float, output: str) -> None:
    """Start a fourth instance of an application under load, and wait until it has its share.

    The benchmark runs a real application of three instances with state twice, on an embedded
    cluster of two brokers with the service beside it: once the application follows the service's
    recommendations, once Kafka's own assignor decides. max.warmup.replicas is 2, and
    probing.rebalance.interval.ms has its least value, a minute. The exit status is 1 if the
    application that follows builds more copies than were recommended when the fourth instance
    joined, hands a task over cold, or makes a decision that exact mode does not reproduce.
    """
    try:
        figures = printed(measure_follow(tasks, records, rate), output, follow_table)
    except ImportError as error:
        raise not_in_checkout(error) from error
    except CaughtupError as error:
        raise UserError(error.message) from error
    if any(figure["broken"] for figure in figures):
        raise SystemExit(1)


def measure_follow(tasks: int, records: int, rate: float) -> Iterator[dict[str, object]]:
    """Measure the application that follows, then the other; ``broken``: the promises not kept.

    Raises CaughtupError when a step times out.
    """
    from caughtup.demo.story.growing import FOLLOWING
    from caughtup.followers.kafka_streams.jar import NAME, build_jar

    with tempfile.TemporaryDirectory(prefix="caughtup-bench-") as directory:
        jar = build_jar(Path(directory, NAME))
        for by, properties, class_path in (
            (_FOLLOWER, FOLLOWING, [jar]),
            (_KAFKA, {}, []),
        ):
            figure = {"by": by, **_grow(by, tasks, records, rate, properties, class_path)}
            yield {**figure, "broken": list(broken_promises(figure)) if by == _FOLLOWER else []}


def broken_promises(figure: Figures) -> Iterator[str]:
    """Yield the names of promises for an application that follows that do not hold."""
    if figure["copies_built"] > figure["copies_recommended"]:
        yield "copies"
    if figure["cold_hand_overs"]:
        yield "no cold hand-over"
    if figure["uncommitted"]:
        yield "every task continues"
    if figure["exact"]["mismatch"]:
        yield "no mismatch"


def follow_table(figures: Sequence[Figures]) -> Table:
    """Return the figures side by side as a table."""
    tasks = figures[0]["tasks"]
    table = Table("", title=f"From three instances to four, {tasks} tasks with state")
    for figure in figures:
        table.add_column(figure["by"], justify="right")
    for name, cell in _ROWS:
        table.add_row(name, *(cell(figure) for figure in figures))
    return table


def _seconds(figure: Mapping[str, object]) -> str:
    return f"{figure['seconds']:,.0f}"


def _waits(figure: Figures) -> str:
    waits = figure["interval_waits"]
    return f"{waits} × {figure['interval_seconds']} = {waits * figure['interval_seconds']}"


def _copy_seconds(figure: Mapping[str, object]) -> str:
    seconds = figure["copy_seconds"]
    return "" if seconds is None else f"{seconds:.1f}"


def _exact(figure: Figures) -> str:
    return " / ".join(
        str(figure["exact"][result]) for result in ("match", "mismatch", "undetermined")
    )


_ROWS = (
    ("seconds until all have their share", _seconds),
    ("of these waited for probing.rebalance.interval.ms", _waits),
    ("generations until then", lambda figure: str(figure["generations"])),
    ("copies built", lambda figure: str(figure["copies_built"])),
    ("copies recommended at the join", lambda figure: str(figure["copies_recommended"])),
    (
        "copies by Kafka's assignor, foretold at the join",
        lambda figure: str(figure["copies_kafka"]),
    ),
    ("seconds that a copy takes, median", _copy_seconds),
    ("tasks handed over cold", lambda figure: str(figure["cold_hand_overs"])),
    (
        "longest time without a commit of a partition (s)",
        lambda figure: f"{figure['longest_pause_seconds']:.1f}",
    ),
    ("the same before the join (s)", lambda figure: f"{figure['calm_pause_seconds']:.1f}"),
    ("exact mode: match / mismatch / undetermined", _exact),
    ("promises", lambda figure: ", ".join(figure["broken"]) or "kept"),
)


def _grow(
    by: str,
    tasks: int,
    records: int,
    rate: float,
    properties: Mapping[str, str],
    class_path: Sequence[Path],
) -> dict[str, object]:
    from caughtup.demo.story.growing import Growing, now_ms
    from caughtup.demo.story.growth import measure_growth

    console = Console(stderr=True, highlight=False)
    with Growing(tasks=tasks, properties=properties, class_path=class_path) as stage:
        console.print(f"{by}: starting three instances, {records:,} records of state a task")
        stage.set_up(records)
        with stage.load(rate):
            console.print(f"{by}: {rate:,.0f} records a second from now on")
            calm_ms = now_ms()
            time.sleep(_CALM_SECONDS)
            console.print(f"{by}: starting a fourth instance")
            with Progress().task("Tasks of the fourth instance", tasks // 4) as advance:
                started_ms, balanced_ms = stage.grow(_SECONDS_PER_TASK * tasks, advance)
            figure = measure_growth(stage, calm_ms, started_ms, balanced_ms)
        console.print(f"{by}: balanced after {figure['seconds']:,.0f} s")
    return figure

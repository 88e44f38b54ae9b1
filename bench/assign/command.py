"""``caughtup bench assign``: our decisions beside those of Kafka's own assignors, and their times."""

from __future__ import annotations

from pathlib import Path

import click

from caughtup.agents.cli.commands import examples
from caughtup.agents.cli.options import format_option
from caughtup.agents.errors import UserError
from caughtup.bench.assign.connect import connect_table, measure_connect
from caughtup.bench.assign.consumers import CONSUMER_GROUPS, consumers_table, measure_consumers
from caughtup.bench.assign.group_sizes import SCALE_TEST_SIZES, GroupSize
from caughtup.bench.assign.growth import growth_table, measure_growth
from caughtup.bench.assign.pairs import measure_pairs, pairs_table
from caughtup.bench.assign.plot import plot
from caughtup.bench.figures import printed
from caughtup.models.connect.assign_line import INCREMENTAL
from caughtup.models.errors import CaughtupError


class _GroupSizeType(click.ParamType):
    name = "shape"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> GroupSize:
        try:
            return value if isinstance(value, GroupSize) else GroupSize.parse(str(value))
        except ValueError as problem:
            self.fail(str(problem), param, ctx)


@click.command(
    short_help="Compare the speed of decisions with the published jar's.",
    epilog=examples("caughtup bench assign"),
)
@click.option(
    "--assignor",
    type=click.Choice([*sorted(SCALE_TEST_SIZES), INCREMENTAL, CONSUMER_GROUPS]),
    default="high_availability",
    show_default=True,
    help="The task assignor; Connect's, on 200 workers and 2,000 tasks; or all those of consumer "
    "groups, on 1,000 members and 10,000 partitions.",
)
@click.option(
    "--shape",
    "sizes",
    type=_GroupSizeType(),
    multiple=True,
    metavar="PxCxTxS",
    help="Partitions, clients, threads of each client, standbys. May be repeated. "
    "[default: those of Kafka's scale test]",
)
@click.option(
    "--repeats",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="How often each of the two decides a scenario, in turns.",
)
@click.option(
    "--warm-up",
    type=click.FloatRange(min=0),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="How long the JVM warms up on a scenario before it is timed; it decides it at least twice.",
)
@click.option(
    "--growth",
    is_flag=True,
    help="Measure only caughtup's time and memory, for 1,000 to 1,000,000 tasks × clients.",
)
@click.option(
    "--plot",
    "picture",
    type=click.Path(path_type=Path, dir_okay=False, writable=True),
    metavar="FILE",
    help="With --growth, draw the figures into this SVG file.",
)
@format_option
def assign(
    assignor: str,
    sizes: tuple[GroupSize, ...],
    repeats: int,
    warm_up: float,
    growth: bool,
    picture: Path | None,
    output: str,
) -> None:
    """Measure decisions beside those of Kafka's published assignors, in a JVM that is warm.

    For each shape, a group starts, and then decides again with the first decision carried out.
    Only the decision is timed, on both sides; the exit status is 1 if any decision differs from
    Kafka's. minimal_movement, which Kafka does not have, is timed beside
    HighAvailabilityTaskAssignor. With connect_incremental, a group of Connect workers starts, goes
    on, loses a worker and gets another one. With consumer_groups, a group starts, gets a member and
    loses one, with each of the clients' and the coordinator's assignors.
    """
    if picture is not None and not growth:
        raise click.UsageError("--plot needs --growth")
    if sizes and growth:
        raise click.UsageError("--shape cannot be combined with --growth, which has its own shapes")
    if assignor in (INCREMENTAL, CONSUMER_GROUPS) and (sizes or growth):
        raise click.UsageError(f"--shape and --growth cannot be combined with {assignor}")
    try:
        if assignor == INCREMENTAL:
            figures = printed(measure_connect(repeats, warm_up), output, connect_table)
        elif assignor == CONSUMER_GROUPS:
            figures = printed(measure_consumers(repeats, warm_up), output, consumers_table)
        elif growth:
            figures = printed(measure_growth(assignor, repeats), output, growth_table)
        else:
            pairs = measure_pairs(assignor, sizes or SCALE_TEST_SIZES[assignor], repeats, warm_up)
            figures = printed(pairs, output, pairs_table)
    except CaughtupError as error:
        raise UserError(error.message) from error
    if picture is not None:
        _write(picture, plot(figures))
    if any(figure.get("same") is False for figure in figures):
        raise SystemExit(1)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text)
    except OSError as problem:
        raise UserError(f"cannot write {path}: {problem.strerror}") from problem

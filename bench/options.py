"""Options that benchmarks share: numbers of groups, partitions and threads, and their kind."""

from __future__ import annotations

from pathlib import Path

import click

_POSITIVE = click.IntRange(min=1)

groups_option = click.option(
    "--groups", type=_POSITIVE, default=500, show_default=True, help="How many groups commit."
)
partitions_option = click.option(
    "--partitions",
    type=_POSITIVE,
    default=100,
    show_default=True,
    help="Partitions that each group commits.",
)
threads_option = click.option(
    "--threads",
    type=_POSITIVE,
    multiple=True,
    default=(1, 2),
    show_default=True,
    help="Spark's threads. May be repeated.",
)
transactional_option = click.option(
    "--transactional",
    type=click.IntRange(0, 100),
    default=0,
    show_default=True,
    help="The percentage of groups that commit in transactions.",
)
active_option = click.option(
    "--active", type=_POSITIVE, help="Group-partitions that commit. [default: all]"
)
commits_option = click.option(
    "--commits", type=_POSITIVE, default=10_000, show_default=True, help="Commits a second."
)
beside_option = click.option(
    "--beside",
    type=click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path),
    metavar="CHECKOUT",
    help="Another checkout, whose service is measured in turns with this one's.",
)
rounds_option = click.option(
    "--rounds",
    type=_POSITIVE,
    default=1,
    show_default=True,
    help="How often each service is measured; the figures are medians.",
)

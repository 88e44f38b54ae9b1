"""``caughtup why``: why a group lags, from one look at the cluster or from a service."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import click
import msgspec

from caughtup.agents.cli.commands import examples
from caughtup.agents.cli.options import (
    NOTHING_MATCHED,
    Connection,
    connection_options,
    format_option,
    service_of,
    service_options,
    settings_of,
)
from caughtup.agents.cli.text_tables import escape_unencodable, printable
from caughtup.agents.clock import now_ms
from caughtup.agents.looks.cluster import ClusterLooks
from caughtup.agents.progress import Progress
from caughtup.agents.settings import Settings
from caughtup.models.durations import counted
from caughtup.models.why.explain import why as explained
from caughtup.models.why.links import Why

#: The most links that are printed: with the verdict and what is not known, ten lines.
_MOST_PRINTED = 7


@click.command(
    short_help="Say why a group lags: the true cause first.",
    epilog=examples(
        "caughtup why -b broker:9092 orders",
        "caughtup why --service http://127.0.0.1:8080 orders",
        "caughtup why --service http://127.0.0.1:8080 orders --format json",
    ),
)
@click.argument("group")
@service_options
@connection_options
@format_option
def why(group: str, output: str, connection: Connection) -> None:
    """Say why GROUP lags, in at most ten lines: the true cause first, then what follows from it,
    each with how sure that is, and at the end what is not known.

    Causes are open transactions, partitions without a leader or in a reassignment, brokers that are
    gone, failed tasks of Connect, missing members, rebalances, tasks that restore, and consumers
    that read too slowly. Looks at the cluster as it is now and exits; with 3 if there is no such
    group. One look does not show rates and rebalances of the past: --service asks a service, which
    has observed for longer.
    """
    service = service_of(connection)
    if service is not None:
        found: Why | None = service.why(group)
    else:
        found = look_and_explain(settings_of(connection), group)
    escape_unencodable()
    if found is None:
        click.echo(f"caughtup: {printable(group)} is not known on this cluster", err=True)
        sys.exit(NOTHING_MATCHED)
    if output == "json":
        click.echo(msgspec.json.encode(found).decode())
        return
    for line in text_lines(found):
        click.echo(line)


def look_and_explain(settings: Settings, group: str) -> Why | None:
    """Return why a group is as it is, by one look at the cluster; None if it doesn't exist."""
    looks = ClusterLooks(settings, [group], connect=True, reassignments=True)
    try:
        return explained(looks.look(Progress()), group, now_ms())
    finally:
        looks.close()


def text_lines(found: Why) -> Iterator[str]:
    """Yield the answer as at most ten lines."""
    yield printable(f"{found.group}: {found.verdict}")
    if not found.links:
        yield "No cause is known."
    for number, link in enumerate(found.links[:_MOST_PRINTED], 1):
        sure = "" if link.sure == "certain" else f" ({link.sure})"
        yield printable(f"{number}. {link.text}{sure}")
    more = len(found.links[_MOST_PRINTED:]) + found.left_out
    if more:
        yield f"{counted(more, 'further cause')}: --format json has what fits into 4 kB."
    if found.not_known:
        yield printable(f"Not known: {'; '.join(found.not_known)}.")

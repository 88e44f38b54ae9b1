"""``caughtup top``: groups, tasks and reassignments live on the whole terminal."""

from __future__ import annotations

import sys

import click

from caughtup.agents.cli.commands import examples, missing_extra
from caughtup.agents.cli.options import (
    Connection,
    connection_options,
    service_of,
    service_options,
    settings_of,
)
from caughtup.agents.errors import UserError


@click.command(
    short_help="Watch groups, tasks and reassignments on the whole terminal.",
    epilog=examples(
        "caughtup top --service http://127.0.0.1:8080",
        "caughtup top -b broker:9092 --every 10",
    ),
)
@click.option(
    "--every",
    type=click.FloatRange(min=0.5, max=3600),
    metavar="SECONDS",
    help="Seconds between two reads. [default: 2 from a service, 5 from the cluster]",
)
@service_options
@connection_options
def top(every: float | None, connection: Connection) -> None:
    """Watch groups, tasks, reassignments and Connect on the whole terminal, until q.

    Asks a service (--service), which knows verdicts and rates at once, or looks at the cluster
    itself. Keys: 1 to 4 choose the table, / filters, s sorts, Enter opens a line, Escape goes
    back, r looks at once. When nothing answers, the last data stay, with their age.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UserError(
            "caughtup top needs a terminal; caughtup lag and caughtup reassignments do not"
        )
    try:
        from caughtup.agents.cli.top.screen import TopApp
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "textual":
            raise
        raise missing_extra("top", error) from None
    from caughtup.agents.cli.top.sources import FromLooks, FromService

    service = service_of(connection)
    if service is None:
        app = TopApp(FromLooks(settings_of(connection)), every or 5.0)
    else:
        app = TopApp(FromService(service), every or 2.0)
    app.run()
    if app.broken is not None:
        raise app.broken
    sys.exit(app.return_code or 0)

"""``caughtup safe``: whether an instance can be stopped now, for hooks and scripts."""

from __future__ import annotations

import sys

import click
import msgspec

from caughtup.agents.cli.commands import examples
from caughtup.agents.cli.options import (
    Connection,
    Span,
    connection_options,
    format_option,
    service_of,
    service_options,
)
from caughtup.agents.cli.simulate.groups import rate_option, read_application, refuse
from caughtup.models.durations import duration
from caughtup.models.errors import CaughtupError
from caughtup.models.what_if.safety import WITHIN_MS, safe_to_stop

UNSAFE = 1


@click.command(
    short_help="Check whether an instance can be stopped now.",
    epilog=examples(
        "caughtup safe orders --stop orders-2 --service http://127.0.0.1:8080",
        "caughtup safe orders --stop orders-2 --within 30s --restore-rate 20000",
    ),
)
@click.argument("group")
@click.option("--stop", "client", required=True, metavar="CLIENT", help="The instance.")
@click.option(
    "--within",
    type=Span(),
    show_default="what the service saw in the last six hours; without one 60s",
    help="The longest time for which a task may stand still.",
)
@click.option(
    "--leave-group",
    is_flag=True,
    help="The application leaves the group when it is closed. By default Kafka Streams does not "
    "leave, and its tasks stand still for the session timeout.",
)
@rate_option
@service_options
@connection_options
@format_option
def safe(
    group: str,
    client: str,
    within: float | None,
    leave_group: bool,
    restore_rate: tuple[float, float] | None,
    output: str,
    connection: Connection,
) -> None:
    """Check whether CLIENT of a Kafka Streams application can be stopped now, so that no task
    stands still for longer than --within; if not, why not, and when it can.

    Plays the stop in virtual time with the group as it is. Exits 0 if it is safe, 1 if it is not or
    that is unknown, 3 when there is no such GROUP or CLIENT. A service knows how fast copies
    restore; one look at the cluster does not show it.
    """
    service = service_of(connection)
    if service is not None:
        if restore_rate is not None:
            raise click.UsageError("a service measures the rates itself: leave --restore-rate out")
        found = service.safe(group, client, within, leave_group=leave_group)
    else:
        try:
            application = read_application(group, connection, restore_rate)
            allowed_ms = WITHIN_MS if within is None else round(within * 1_000)
            found = safe_to_stop(application, client, within_ms=allowed_ms, leave_group=leave_group)
        except CaughtupError as error:
            refuse(error.message)
    if output == "json":
        click.echo(msgspec.json.encode(found).decode())
    else:
        click.echo(f"{'safe' if found.safe else 'not safe'}: {found.reason}")
        if not found.safe and found.safe_in_ms is not None:
            click.echo(f"safe in {duration(found.safe_in_ms / 1_000)}")
        if configs := found.open_configs:
            values = ", ".join(f"{name} ({text})" for name, text in sorted(configs.items()))
            click.echo(
                f"Not known for certain: {values}. Set them in the settings: `caughtup configs --toml` prints them"
            )
        if within is None:
            allowed = found.within_ms / 1_000
            seen = found.within_from == "record"
            record = ", as one did in the last six hours" if seen else ""
            click.echo(
                f"A task may stand still for {duration(allowed)}{record}; change that with --within."
            )
    sys.exit(0 if found.safe else UNSAFE)

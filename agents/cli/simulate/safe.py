"""``caughtup safe``: whether an instance can be stopped now, for hooks and scripts."""

from __future__ import annotations

import sys
from typing import Any

import click
import msgspec

from caughtup.agents.cli.examples import examples
from caughtup.agents.cli.options import Span, connection_options, format_option
from caughtup.agents.cli.service.options import service_of, service_options
from caughtup.agents.cli.simulate.options import rate_option, read_group, refuse
from caughtup.agents.views.safety import asked_of, safety_fields
from caughtup.models.durations import duration
from caughtup.models.errors import CaughtupError

#: A task may stand still for so long, unless told otherwise: a session timeout and a rebalance.
WITHIN_SECONDS = 60.0
UNSAFE = 1


@click.command(
    short_help="Tell whether an instance can be stopped now.",
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
    show_default="60s",
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
    **connection: Any,
) -> None:
    """Tell whether CLIENT of a Kafka Streams application can be stopped now, so that no task
    stands still for longer than --within; if not, why not, and when it can.

    Plays the stop in virtual time with the group as it is. Exits 0 if it is safe, 1 if it isn't or
    nobody knows, 3 when there is no such GROUP or CLIENT. A service has seen how fast copies
    restore; one look at the cluster hasn't.
    """
    allowed = WITHIN_SECONDS if within is None else within
    service = service_of(connection)
    if service is not None:
        if restore_rate is not None:
            raise click.UsageError("a service knows the rates itself: leave --restore-rate out")
        found = service.safe(group, client, allowed, leave_group=leave_group)
    else:
        try:
            asked = read_group(group, connection, restore_rate)
            found = safety_fields(asked_of(asked, client, allowed, leave_group=leave_group))
        except CaughtupError as error:
            refuse(error.message)
    if output == "json":
        click.echo(msgspec.json.encode(found).decode())
    else:
        click.echo(f"{'safe' if found['safe'] else 'not safe'}: {found['reason']}")
        if not found["safe"] and found["safe_in_ms"] is not None:
            click.echo(f"safe in {duration(found['safe_in_ms'] / 1_000)}")
        if within is None:
            click.echo(f"A task may stand still for {duration(allowed)}: --within says otherwise.")
    sys.exit(0 if found["safe"] else UNSAFE)

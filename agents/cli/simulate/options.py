"""What ``simulate`` and ``safe`` are asked: the group as it is, and how fast things go."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from caughtup.agents.cli.lag.main import NOTHING_MATCHED
from caughtup.agents.cli.options import settings_of
from caughtup.agents.clock import now_ms
from caughtup.agents.looks import read_snapshot
from caughtup.agents.progress import Progress
from caughtup.models.assignment.configs import read_configs
from caughtup.models.errors import ScenarioError
from caughtup.models.simulation.streams.topology import AssignmentProtocol
from caughtup.models.what_if.consumer_group import consumer_group_of
from caughtup.models.what_if.question import application_of_group
from caughtup.models.what_if.setting import Playable

_WHOLE = re.compile(r"-?[0-9]{1,19}")


class Rate(click.ParamType):
    """Offsets a second: one figure, or the least and the greatest with two dots between."""

    name = "rate"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, float]:
        """Return the least and the greatest rate. Refuses what is none."""
        if isinstance(value, tuple):
            return value
        try:
            rates = [float(part.replace("_", "")) for part in str(value).split("..")]
        except ValueError:
            rates = []
        if len(rates) not in {1, 2} or not all(0 < rate < 1e15 for rate in rates):
            self.fail(f"{value!r} is not a rate, such as 20000 or 10000..50000", param, ctx)
        return min(rates), max(rates)


rate_option = click.option(
    "--restore-rate",
    type=Rate(),
    metavar="RATE[..RATE]",
    help="Offsets a second that a stream thread restores. One look at the cluster "
    "cannot measure it. Without it, times do not include restoring, and the output says so.",
)


def read_application(
    name: str, connection: dict[str, Any], restore: tuple[float, float] | None
) -> Playable:
    """Read a group from the cluster. Ends the command where it is no Streams application."""
    state = read_snapshot(settings_of(connection), Progress(), [name])
    application = application_of_group(state, name, now_ms(), restore)
    if application is None:
        refuse(
            f"{name} is no Kafka Streams application of this cluster, or the group is rebalancing now"
        )
    return application


def read_playable(
    name: str,
    connection: dict[str, Any],
    restore: tuple[float, float] | None,
    protocol: AssignmentProtocol | None,
) -> Playable:
    """Read a group from the cluster: an application, or consumers that their coordinator assigns.

    Ends the command where it is neither. ``protocol``: which one somebody wants it played on.
    """
    state = read_snapshot(settings_of(connection), Progress(), [name])
    moment_ms = now_ms()
    found = application_of_group(state, name, moment_ms, restore) or consumer_group_of(
        state, name, moment_ms, as_if=protocol is AssignmentProtocol.CONSUMER
    )
    if found is None:
        refuse(
            f"cannot play {name}: it has no members, is rebalancing now, or is neither a Kafka "
            "Streams application nor a consumer group (KIP-848); a classic group of consumers is "
            "played with --protocol consumer"
        )
    return found


def refuse(what: str) -> NoReturn:
    """End the command with one line."""
    click.echo(f"caughtup: {what}", err=True)
    sys.exit(NOTHING_MATCHED)


def changed_configs(given: Sequence[str]) -> tuple[tuple[str, Any], ...]:
    """Read ``NAME=VALUE`` pairs: whole numbers as such, lists by commas.

    Raises UsageError, also for what Kafka refuses, before anything is read from a cluster.
    """
    found: list[tuple[str, Any]] = []
    for one in given:
        name, equals, value = one.partition("=")
        if not equals:
            raise click.UsageError(f"--set {one}: write NAME=VALUE, as num.standby.replicas=1")
        if name == "rack.aware.assignment.tags":
            found.append((name, [tag for tag in value.split(",") if tag]))
        else:
            found.append((name, int(value) if _WHOLE.fullmatch(value) else value))
    try:
        read_configs(dict(found))
    except ScenarioError as error:
        raise click.UsageError(f"--set: {error.message}") from None
    return tuple(found)

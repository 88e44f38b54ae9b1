"""What ``simulate`` and ``safe`` are asked: the group as it is, and how fast things go."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from caughtup.agents.cli.lag.main import NOTHING_MATCHED
from caughtup.agents.cli.options import settings_of
from caughtup.agents.cli.snapshot import read_snapshot
from caughtup.agents.clock import now_ms
from caughtup.agents.progress import Progress
from caughtup.models.security.kafka import Client
from caughtup.models.simulation.streams.topology import Protocol
from caughtup.models.what_if.consumer_group import consumer_group_of
from caughtup.models.what_if.question import Group, group_of
from caughtup.models.what_if.setting import Playable


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
            self.fail(f"{value!r} is no rate: 20000 and 10000..50000 are", param, ctx)
        return min(rates), max(rates)


rate_option = click.option(
    "--restore-rate",
    type=Rate(),
    metavar="RATE[..RATE]",
    help="Offsets a second that a stream thread restores. One look at the cluster can't see it: "
    "without it seconds of restoring are left out, and said to be.",
)


def read_group(name: str, connection: dict[str, Any], restore: tuple[float, float] | None) -> Group:
    """Read a group from the cluster. Ends the command where it is no Streams application."""
    state = read_snapshot(settings_of(connection, (Client.LIBRDKAFKA,)), Progress(), [name])
    group = group_of(state, name, now_ms(), restore)
    if group is None:
        refuse(
            f"{name} is no Kafka Streams application of this cluster whose leader assigns its "
            "tasks, or it is just being rebalanced"
        )
    return group


def read_playable(
    name: str,
    connection: dict[str, Any],
    restore: tuple[float, float] | None,
    protocol: Protocol | None,
) -> Playable:
    """Read a group from the cluster: an application, or consumers that their coordinator assigns.

    Ends the command where it is neither. ``protocol``: which one somebody wants it played on.
    """
    state = read_snapshot(settings_of(connection, (Client.LIBRDKAFKA,)), Progress(), [name])
    moment_ms = now_ms()
    found = group_of(state, name, moment_ms, restore) or consumer_group_of(
        state, name, moment_ms, as_if=protocol is Protocol.CONSUMER
    )
    if found is None:
        refuse(
            f"{name} is no Kafka Streams application of this cluster whose leader assigns its "
            "tasks, or it is just being rebalanced; nor is it a consumer group (of consumers on "
            "the classic protocol one may be made: --protocol consumer)"
        )
    return found


def refuse(what: str) -> NoReturn:
    """End the command with one line."""
    click.echo(f"caughtup: {what}", err=True)
    sys.exit(NOTHING_MATCHED)


def changed_configs(given: Sequence[str]) -> tuple[tuple[str, Any], ...]:
    """Read ``NAME=VALUE`` pairs: whole numbers as such, lists by commas. Raises UsageError."""
    found: list[tuple[str, Any]] = []
    for one in given:
        name, equals, value = one.partition("=")
        if not equals:
            raise click.UsageError(f"--set {one}: write NAME=VALUE, as num.standby.replicas=1")
        if name == "rack.aware.assignment.tags":
            found.append((name, [tag for tag in value.split(",") if tag]))
        else:
            found.append((name, int(value) if value.lstrip("-").isdigit() else value))
    return tuple(found)

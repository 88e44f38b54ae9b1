"""The group that ``simulate`` and ``safe`` start from: read from a cluster or from a file."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

import click

from caughtup.agents.cli.options import NOTHING_MATCHED, Connection, settings_of
from caughtup.agents.cli.strict_json import decode
from caughtup.agents.clock import now_ms
from caughtup.agents.looks.cluster import read_snapshot
from caughtup.agents.progress import Progress
from caughtup.models.assignment.compact import CompactScenario, read_compact
from caughtup.models.assignment.configs import read_configs
from caughtup.models.errors import CaughtupError, ScenarioError
from caughtup.models.simulation.streams.topology import AssignmentProtocol
from caughtup.models.what_if.beginning import Speeds
from caughtup.models.what_if.consumer_group import consumer_group_of
from caughtup.models.what_if.question import application_of_group
from caughtup.models.what_if.setting import Playable, RecordedGroup

_WHOLE = re.compile(r"-?[0-9]{1,19}")


class Rate(click.ParamType):
    """Offsets a second: one figure, or the least and the greatest with two dots between."""

    name = "rate"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, float]:
        """Return the least and the greatest rate."""
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
    name: str, connection: Connection, restore: tuple[float, float] | None
) -> Playable:
    """Return an application read from the cluster. Exits if it is no Streams application."""
    state = read_snapshot(settings_of(connection), Progress(), [name])
    application = application_of_group(state, name, now_ms(), restore)
    if application is None:
        refuse(
            f"{name} is not a Kafka Streams application of this cluster, or the group is rebalancing now"
        )
    return application


def read_playable(
    name: str,
    connection: Connection,
    restore: tuple[float, float] | None,
    protocol: AssignmentProtocol | None,
) -> Playable:
    """Return a group read from the cluster: an application, or a consumer group (KIP-848).

    Exits if it is neither. With ``protocol`` CONSUMER, a classic consumer group is accepted.
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
    """Print an error, and exit with NOTHING_MATCHED."""
    click.echo(f"caughtup: {what}", err=True)
    sys.exit(NOTHING_MATCHED)


def changed_configs(given: Sequence[str]) -> tuple[tuple[str, object], ...]:
    """Return the configs in ``NAME=VALUE`` pairs, with whole numbers as int.

    Raises UsageError, also for values that Kafka refuses.
    """
    found: list[tuple[str, object]] = []
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


#: The most bytes of a file.
LARGEST_FILE = 256 * 1024 * 1024


def read_recorded_group(
    path: Path, name: str | None, restore: tuple[float, float] | None
) -> RecordedGroup:
    """Return the last scenario in a file, or the last of the group ``name``.

    A line is a scenario, or a row of recorded generations with a field ``scenario``. A scenario is
    a group's if it is named after it, also with a generation (``orders/17``). Raises CaughtupError
    for a bad line, and for a file without a scenario.
    """
    if path.stat().st_size > LARGEST_FILE:
        raise CaughtupError("too_large", f"{path} is larger than {LARGEST_FILE:,} bytes")
    found: dict[str, object] | None = None
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        if not line.strip():
            continue
        for one in _scenarios(line, f"{path}, line {number}"):
            if name is None or name in _names(one):
                found = one
    if found is None:
        raise CaughtupError("no_scenario", f"{path} has no scenario{f' of {name}' if name else ''}")
    return RecordedGroup(_read(found), Speeds(restore, {}))


def _scenarios(line: bytes, place: str) -> Iterator[dict[str, object]]:
    """Yield the scenario in a line, if it has one."""
    data, fault = decode(line)
    if fault:
        raise CaughtupError(fault.code, f"{place}: {fault.message}")
    if not isinstance(data, dict):
        raise CaughtupError("bad_scenario", f"{place}: is not an object")
    inner = data.get("scenario", data)
    if isinstance(inner, str):
        inner, fault = decode(inner.encode(errors="surrogatepass"))
        if fault:
            raise CaughtupError(fault.code, f"{place}, scenario: {fault.message}")
    if isinstance(inner, dict):
        yield inner


def _names(scenario: dict[str, object]) -> set[str]:
    """Return a scenario's name, with and without the generation."""
    name = scenario.get("name")
    if not isinstance(name, str):
        return set()
    group, slash, generation = name.rpartition("/")
    return {name, group} if slash and generation.isdigit() else {name}


def _read(scenario: dict[str, object]) -> CompactScenario:
    read = read_compact(scenario)
    read.expanded()  # raises for what an assignor would refuse
    return read

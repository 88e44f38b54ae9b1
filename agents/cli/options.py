"""Options that commands share: how to reach the cluster or a service, and what to print."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from caughtup.agents.configuration.loading import Loaded, read_settings
from caughtup.agents.settings import Settings
from caughtup.models.security.kafka import SERVICE, KafkaClient, exposures
from caughtup.models.security.kafka_names import is_secret

if TYPE_CHECKING:
    from caughtup.agents.cli.service_client import ServiceClient

#: Exit status if no group matched.
NOTHING_MATCHED = 3
Command = TypeVar("Command", bound=Callable[..., object])


@dataclass(frozen=True)
class Connection:
    """The options of ``connection_options`` and, where a command has them, ``service_options``."""

    bootstrap_servers: str | None = None
    config: Path | None = None
    properties: tuple[str, ...] = ()
    service: str | None = None
    token_file: Path | None = None
    service_ca: Path | None = None


class Span(click.ParamType):
    """A span of time, such as ``10s``, ``2m`` or ``1h``, in seconds; a number alone is seconds."""

    name = "time"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the seconds, at most a day."""
        if isinstance(value, float):
            return value
        found = _SPAN.fullmatch(str(value).strip())
        seconds = float(found[1]) * _UNITS[found[2]] if found else 0.0
        if not 0 < seconds <= 86_400:
            self.fail(f"{value!r} is not a time up to a day, such as 10s, 2m or 1h", param, ctx)
        return seconds


_SPAN = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,3})?) ?(s|m|h|)")
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}

format_option = click.option(
    "--format",
    "output",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="A table for a person, or one JSON object a line.",
)


config_option = click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The settings file. [default: caughtup.toml if there is one]",
)


def connection_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add ``--bootstrap-servers``, ``--config`` and ``--kafka`` to a command.

    The command gets them, and those of ``service_options``, as one ``connection``.
    """

    @wraps(command)
    def connecting(
        bootstrap_servers: str | None,
        config: Path | None,
        properties: tuple[str, ...],
        service: str | None = None,
        token_file: Path | None = None,
        service_ca: Path | None = None,
        **others: object,
    ) -> None:
        cluster = (bootstrap_servers, config, properties)
        command(connection=Connection(*cluster, service, token_file, service_ca), **others)

    for option in (
        click.option(
            "--kafka",
            "-X",
            "properties",
            multiple=True,
            metavar="NAME=VALUE",
            help="A librdkafka property, such as security.protocol=SSL. May be repeated.",
        ),
        config_option,
        click.option(
            "--bootstrap-servers",
            "--bootstrap-server",
            "-b",
            metavar="HOST:PORT,…",
            help="Where to find the cluster. [default: 127.0.0.1:9092]",
        ),
    ):
        connecting = option(connecting)
    return connecting


def watch_options(seconds: float) -> Callable[[Command], Command]:
    """Return a decorator that adds ``--watch`` and ``--every``, with a default in seconds."""

    def add(command: Command) -> Command:
        every = click.option(
            "--every",
            type=click.FloatRange(min=0.5, max=3600),
            default=seconds,
            show_default=True,
            metavar="SECONDS",
            help="Seconds between two updates of --watch.",
        )
        watch = click.option(
            "--watch", is_flag=True, help="Update the output again and again until Ctrl-C."
        )
        return watch(every(command))

    return add


def settings_of(
    connection: Connection, clients: Iterable[KafkaClient] = SERVICE, **more: str | None
) -> Settings:
    """Return the settings from a command's options. Raises UserError if they are invalid.

    ``clients`` are the Kafka clients that the command uses: a property that one of them does not
    support is refused. Unsafe settings get a warning on standard error.
    """
    return loaded_from(connection, clients, **more).settings


def loaded_from(
    connection: Connection, clients: Iterable[KafkaClient] = SERVICE, **more: str | None
) -> Loaded:
    """Return the settings, and where each was given; otherwise as ``settings_of``."""
    properties = {}
    for entry in connection.properties:
        name, equals, value = entry.partition("=")
        if not equals:
            # Not repeated: it may be a secret without its name.
            raise click.BadParameter("NAME=VALUE is expected", param_hint="--kafka")
        properties[name.strip()] = value
    loaded = read_settings(
        connection.config,
        clients=clients,
        kafka=properties,
        bootstrap_servers=connection.bootstrap_servers,
        **more,
    )
    for name in filter(is_secret, properties):
        variable = f"CAUGHTUP_KAFKA_{name.upper().replace('.', '_')}"
        _warn(
            f"{name} on the command line is visible to every user of this machine: "
            f"put it into the settings file, or into {variable}"
        )
    for unsafe in exposures(loaded.settings.kafka):
        _warn(unsafe)
    return loaded


def _warn(message: str) -> None:
    click.echo(f"caughtup: warning: {message}", err=True)


def service_options(command: Command) -> Command:
    """Add ``--service``, ``--token-file`` and ``--service-ca`` to a command."""
    for option in (
        click.option(
            "--service-ca",
            type=click.Path(path_type=Path, dir_okay=False),
            metavar="FILE",
            help="The authority that signs the service's certificate (PEM). [default: the authorities that this system trusts]",
        ),
        click.option(
            "--token-file",
            type=click.Path(path_type=Path, dir_okay=False),
            metavar="FILE",
            help="A file with the service's token, the one in its web_token_file.",
        ),
        click.option(
            "--service",
            metavar="URL",
            help="Ask the service at this address, such as http://127.0.0.1:8080, instead of the "
            "cluster: it has observed the past, a single look at the cluster has not.",
        ),
    ):
        command = option(command)
    return command


def service_of(connection: Connection) -> ServiceClient | None:
    """Return a client of the service in the options, None without ``--service``.

    Raises UsageError for contradictory options, UserError for a bad address, token or certificate.
    """
    token_file, ca = connection.token_file, connection.service_ca
    if connection.service is None:
        for option, given in (("--token-file", token_file), ("--service-ca", ca)):
            if given is not None:
                raise click.UsageError(f"{option} needs a service: name it with --service URL")
        return None
    for option, unused in (
        ("--bootstrap-servers", connection.bootstrap_servers),
        ("--config", connection.config),
        ("--kafka", connection.properties),
    ):
        if unused:
            raise click.UsageError(
                f"--service asks a service instead of the cluster: leave {option} out"
            )
    from caughtup.agents.cli.service_client import ServiceClient

    return ServiceClient(connection.service, token_file, ca)


def matching_groups(groups: Iterable[str], wanted: Sequence[str]) -> list[str]:
    """Return the groups that match a name or a pattern such as ``orders-*``; all for none."""
    if not wanted:
        return list(groups)
    return [g for g in groups if any(g == name or fnmatchcase(g, name) for name in wanted)]

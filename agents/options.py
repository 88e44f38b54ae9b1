"""Options that commands share: how to reach the cluster, and what to print."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from caughtup.agents.settings import Settings, load_settings

Command = TypeVar("Command", bound=Callable[..., Any])

format_option = click.option(
    "--format",
    "output",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="A table for a person, or one JSON object a line.",
)


def connection_options(command: Command) -> Command:
    """Add ``--bootstrap-servers``, ``--config`` and ``--kafka`` to a command."""
    for option in (
        click.option(
            "--kafka",
            "-X",
            "properties",
            multiple=True,
            metavar="NAME=VALUE",
            help="A librdkafka property, such as security.protocol=SSL. May be repeated.",
        ),
        click.option(
            "--config",
            type=click.Path(path_type=Path, dir_okay=False),
            help="The settings file. [default: caughtup.toml if there is one]",
        ),
        click.option(
            "--bootstrap-servers",
            metavar="HOST:PORT,…",
            help="Where to find the cluster. [default: 127.0.0.1:9092]",
        ),
    ):
        command = option(command)
    return command


def settings_of(connection: dict[str, Any], **more: Any) -> Settings:
    """Make the settings of a command's options; UserError when they don't hold together."""
    given: dict[str, Any] = {"bootstrap_servers": connection["bootstrap_servers"], **more}
    properties = {}
    for entry in connection["properties"]:
        name, equals, value = entry.partition("=")
        if not equals:
            raise click.BadParameter(f"{entry!r} is not NAME=VALUE", param_hint="--kafka")
        properties[name] = value
    settings = load_settings(connection["config"], **given)
    if properties:
        settings = settings.model_copy(update={"kafka": {**settings.kafka, **properties}})
    return settings

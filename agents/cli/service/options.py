"""Options of commands that may ask a service instead of the cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from caughtup.agents.cli.options import Command
from caughtup.agents.cli.service.client import ServiceClient

#: What a look at the cluster takes, and a service has settings of its own for.
_OF_THE_CLUSTER = {
    "bootstrap_servers": "--bootstrap-servers",
    "config": "--config",
    "properties": "--kafka",
}
_OF_THE_SERVICE = {"token_file": "--token-file", "service_ca": "--service-ca"}


def service_options(command: Command) -> Command:
    """Add ``--service``, ``--token-file`` and ``--service-ca`` to a command."""
    for option in (
        click.option(
            "--service-ca",
            type=click.Path(path_type=Path, dir_okay=False),
            metavar="FILE",
            help="Who signs the service's certificate (PEM). [default: whom this system trusts]",
        ),
        click.option(
            "--token-file",
            type=click.Path(path_type=Path, dir_okay=False),
            metavar="FILE",
            help="The token that the service wants: a file with what its web_token_file has.",
        ),
        click.option(
            "--service",
            metavar="URL",
            help="Ask the service that runs there, such as http://127.0.0.1:8080, and not the "
            "cluster: it knows the past, one look does not.",
        ),
    ):
        command = option(command)
    return command


def service_of(connection: dict[str, Any]) -> ServiceClient | None:
    """Return who asks the service that the options name, None if they name none.

    Takes the options out of ``connection``. Raises UsageError when they contradict, UserError for
    an address, a token or a certificate that is none.
    """
    url, token_file, ca = (connection.pop(name) for name in ("service", *_OF_THE_SERVICE))
    if url is None:
        given = dict(zip(_OF_THE_SERVICE.values(), (token_file, ca), strict=True))
        for option in (option for option, value in given.items() if value is not None):
            raise click.UsageError(f"{option} needs a service: name it with --service URL")
        return None
    for name, option in _OF_THE_CLUSTER.items():
        if connection[name]:
            raise click.UsageError(
                f"--service asks a service instead of the cluster: leave {option} out"
            )
    return ServiceClient(url, token_file, ca)

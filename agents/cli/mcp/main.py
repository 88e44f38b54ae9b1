"""``caughtup mcp``: the Model Context Protocol on standard input and output, or over HTTP."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import click

from caughtup.agents.cli.commands import examples, missing_extra
from caughtup.agents.cli.options import (
    Connection,
    connection_options,
    service_of,
    service_options,
    settings_of,
)

#: The packages of the extra that a missing installation lacks first.
_EXTRA = frozenset({"mcp", "mcp_types", "uvicorn", "starlette"})
_LOOPBACK = "127.0.0.1"


@click.command(
    short_help="Answer programs that speak the Model Context Protocol (MCP).",
    epilog=examples(
        "caughtup mcp --service http://127.0.0.1:8080",
        "caughtup mcp -b broker:9092",
        "caughtup mcp --service http://127.0.0.1:8080 --http 127.0.0.1:8090",
    ),
)
@click.option(
    "--http",
    "address",
    metavar="[HOST:]PORT",
    help="Serve HTTP there, at /mcp, instead of standard input and output. Without HOST it listens "
    "on 127.0.0.1 only.",
)
@service_options
@connection_options
def mcp(address: str | None, connection: Connection) -> None:
    """Answer programs that speak the Model Context Protocol (MCP), such as assistants: which groups
    lag, why, their partitions and rebalances, and the partitions in movement.

    It only reads. It asks a service (--service), which has observed for longer, or looks at the
    cluster itself for each question. Each answer is JSON of at most 4 kB, the worst first, with a
    count of what is left out. With --http, clients have to send the page's token as Bearer, if
    there is one: that of --token-file, or without --service the settings' web_token_file. It needs
    the extra mcp.
    """
    place = None if address is None else _place(address)
    try:
        from caughtup.agents.cli.mcp import http, server
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _EXTRA:
            raise
        raise missing_extra("mcp", error) from None
    from caughtup.agents.cli.mcp.sources import AnswersOfLooks, AnswersOfService, AnswerSource

    service = service_of(connection)
    token_file, hosts = connection.token_file, tuple[str, ...]()
    source: AnswerSource
    if service is not None:
        source = AnswersOfService(service)
    else:
        settings = settings_of(connection)
        token_file, hosts = settings.web_token_file, settings.web_allowed_hosts
        source = AnswersOfLooks(settings)
    # One thread: a look at the cluster is not to be taken twice at the same time.
    with ThreadPoolExecutor(1, "caughtup-mcp") as executor:
        made = server.make_server(source, executor)
        try:
            if place is None:
                made.run("stdio")
            else:
                http.serve(made, *place, token_file, hosts)
        finally:
            executor.submit(source.close).result()


def _place(address: str) -> tuple[str, int]:
    """Return the host and port of ``[HOST:]PORT``."""
    host, _, port = address.rpartition(":")
    if not (port.isascii() and port.isdecimal() and int(port) < 65_536):
        raise click.BadParameter(f"{address!r} is not [HOST:]PORT", param_hint="--http")
    return host.removeprefix("[").removesuffix("]") or _LOOPBACK, int(port)

"""``caughtup mcp --http``: the tools over HTTP, behind the page's token and its checks of names."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from urllib.parse import urlsplit

import click
import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import ASGIApp, Receive, Scope, Send

from caughtup.agents.errors import UserError
from caughtup.agents.web.access import AllowedHosts, Token
from caughtup.agents.web.addresses import authority, is_loopback

#: Where the tools are, and the most bytes of a request.
PATH, _MOST_REQUEST_BYTES = "/mcp", 64 << 10
_MOST_CONNECTIONS = 50


class Door:
    """Refuses requests for other hosts, from pages of other hosts, and without the token."""

    def __init__(self, app: ASGIApp, hosts: AllowedHosts, token: Token | None) -> None:
        self._app = app
        self._hosts = hosts
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it with one line."""
        refusal = self._refusal(scope) if scope["type"] == "http" else None
        if refusal is None:
            await self._app(scope, receive, send)
            return
        status, text = refusal
        headers = [(b"content-type", b"text/plain; charset=utf-8")]
        if status == 401:
            headers.append((b"www-authenticate", b'Bearer realm="caughtup"'))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": text.encode()})

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        given = {name: value.decode("latin-1") for name, value in scope["headers"]}
        if not self._hosts.allows(given.get(b"host")):
            return 421, "this is not a host of this server\n"
        origin = given.get(b"origin")
        if origin is not None and not self._hosts.allows(_host_of(origin)):
            return 403, "pages of other hosts may not ask\n"
        if self._token is not None and not self._token.is_authorized(
            given.get(b"authorization", "")
        ):
            return 401, "send the token as Bearer\n"
        return None


def _host_of(origin: str) -> str:
    """Return the host of an Origin header; for none, a name that no server has."""
    try:
        return urlsplit(origin).netloc or "?"
    except ValueError:
        return "?"


def serve(
    server: MCPServer,
    host: str,
    port: int,
    token_file: Path | None = None,
    allowed_hosts: tuple[str, ...] = (),
) -> None:
    """Serve the tools until the process is told to end. Raises UserError when the port is taken."""
    token = None if token_file is None else Token(token_file, frozenset())
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        json_response=True,
        stateless_http=True,
        max_request_body_size=_MOST_REQUEST_BYTES,
        # The door checks names, with the page's own rules.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        host=host,
    )
    door = Door(app, AllowedHosts(host, allowed_hosts), token)
    listening = _listen(host, port)
    place = authority(host, listening.getsockname()[1])
    click.echo(f"caughtup: the tools: http://{place}{PATH}", err=True)
    if token is None and not is_loopback(host):
        click.echo(
            f"caughtup: warning: anybody who reaches {place} can read everything about groups and "
            "hosts: set a token",
            err=True,
        )
    config = uvicorn.Config(
        door,
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="on",
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_graceful_shutdown=1,
    )
    with listening:
        asyncio.run(uvicorn.Server(config).serve(sockets=[listening]))


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(_MOST_CONNECTIONS)
    except OSError as error:
        raise UserError(
            f"cannot listen on {authority(host, port)} ({error.strerror}): "
            "choose another with --http"
        ) from None
    return listening

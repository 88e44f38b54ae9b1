"""Which Host headers are answered: a page elsewhere can point a name of its own at this address.

A browser sends the name it believes it talks to. DNS rebinding needs a name that somebody else
owns, so addresses are fine, and of names those that are this machine's or that a setting lists.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Collection
from ipaddress import IPv6Address, ip_address

from aiohttp import web
from aiohttp.typedefs import Handler

log = logging.getLogger(__name__)


#: In the list of allowed names: any name is.
_ANY = "*"
#: Refused names that are logged, each once: somebody else chooses them.
_LOGGED = 10
_SHOWN_CHARACTERS = 80


class AllowedHosts:
    """The names under which the service is asked, beside every address."""

    def __init__(self, bound: str, allowed: Collection[str]) -> None:
        """``bound`` is where the service listens, ``allowed`` what ``web_allowed_hosts`` says."""
        own = {"localhost", bound, socket.gethostname(), socket.getfqdn(), *allowed}
        self._names = {_plain(name) for name in own}
        self._refused: set[str] = set()

    def allows(self, host: str | None) -> bool:
        """Return whether a Host header is answered; no browser leaves it out."""
        if host is None or _ANY in self._names:
            return True
        name = host_name(host)
        return name is not None and (is_address(name) or _plain(name) in self._names)

    @web.middleware
    async def check(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer 421 in one line to a name that isn't allowed."""
        host = request.headers.get("Host")
        if self.allows(host):
            return await handler(request)
        shown = repr(host)[:_SHOWN_CHARACTERS]
        if len(self._refused) < _LOGGED and shown not in self._refused:
            self._refused.add(shown)
            log.warning("refused a request to the host %s: not in web_allowed_hosts", shown)
        raise web.HTTPMisdirectedRequest(
            text=f"{shown} is not a host of this service: add its name to web_allowed_hosts\n"
        )


def host_name(host: str) -> str | None:
    """Return the name or address of a Host header without its port, None if it is neither."""
    if host.startswith("["):
        address, bracket, port = host[1:].partition("]")
        if bracket and (not port or port.startswith(":")) and is_address(address):
            return address
        return None
    name, _, port = host.partition(":")
    return name if not port or port.isdecimal() else None


def authority(host: str, port: int) -> str:
    """Write a name or an address with a port, as a URL has it."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_address(name: str) -> bool:
    """Return whether a name is an IPv4 or IPv6 address."""
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches an address or name that is listened on."""
    if host == "localhost":
        return True
    if not is_address(host):
        return False
    address = ip_address(host)
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_loopback


def _plain(name: str) -> str:
    return name.lower().removesuffix(".")

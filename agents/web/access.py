"""Access to the web port: TLS, allowed Host headers, and the token if one is set.

A browser sends the name it believes it talks to. DNS rebinding needs a name that an attacker owns,
so addresses are allowed, and names only if they are this machine's or in a setting. Prometheus
sends the token as a bearer token, a browser as a password.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
import logging
import socket
import ssl
from collections.abc import Collection
from pathlib import Path

from aiohttp import web
from aiohttp.typedefs import Handler

from caughtup.agents.configuration.watched_files import WatchedFiles
from caughtup.agents.errors import UserError
from caughtup.agents.settings import Settings
from caughtup.agents.web.addresses import host_name, is_address

log = logging.getLogger(__name__)


def web_tls(settings: Settings) -> ssl.SSLContext | None:
    """Return the server's context, None without TLS. Raises UserError for bad files."""
    if settings.web_tls_certificate is None:
        return None
    return _ReloadedCertificate(settings.web_tls_certificate, settings.web_tls_key).server_context


class _ReloadedCertificate:
    """A certificate that is read again if its files changed, checked on each handshake."""

    def __init__(self, certificate: Path, key: Path | None) -> None:
        self._files = (certificate, key)
        self._watched = WatchedFiles([path for path in self._files if path is not None])
        try:
            self.server_context = self._current = self._load()
        except (OSError, ValueError) as error:
            raise UserError(
                f"setting web_tls_certificate: {_certificate_error(error, certificate)}"
            ) from None
        # A new context for each change: loading a mismatched pair of files into the context in
        # use would leave it with half of them.
        self.server_context.sni_callback = self._choose

    def _choose(self, connection: ssl.SSLObject, name: str | None, context: object) -> None:
        del name, context
        if self._watched.changed():
            try:
                self._current = self._load()
                log.info("now using the new web_tls_certificate: %s", self._files[0])
            except (OSError, ValueError) as error:
                reason = _certificate_error(error, self._files[0])
                log.warning("web_tls_certificate has changed but cannot be used: %s", reason)
        connection.context = self._current

    def _load(self) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        # Otherwise OpenSSL asks for the password of an encrypted key on the terminal.
        context.load_cert_chain(*self._files, password=_no_password)
        return context


class PeerTrust:
    """Whom a connection to another instance trusts; ``certificate`` is read again when it changes.

    It first trusts an instance with the same certificate, at any address: its key proves that it is
    one. Otherwise an instance whose certificate names its host, and was issued by a CA of the system or
    is vouched for by a certificate in this file.
    """

    def __init__(self, certificate: Path | None) -> None:
        self._certificate = certificate
        self._watched = WatchedFiles([] if certificate is None else [certificate])
        self._one = asyncio.Lock()
        self._contexts: tuple[ssl.SSLContext, ...] = ()

    async def contexts(self) -> tuple[ssl.SSLContext, ...]:
        """Return the contexts to connect with, to be tried in this order.

        Raises OSError or ValueError if the file could never be read.
        """
        async with self._one:  # reading the system's CAs takes some 40 ms: in a thread, once
            if not self._contexts:
                self._contexts = await asyncio.to_thread(self._load)
            elif self._watched.changed():
                try:
                    self._contexts = await asyncio.to_thread(self._load)
                except (OSError, ValueError) as error:
                    reason = _certificate_error(error, self._certificate)
                    log.warning("web_tls_certificate has changed but cannot be trusted: %s", reason)
            return self._contexts

    def _load(self) -> tuple[ssl.SSLContext, ...]:
        issued = ssl.create_default_context()
        if self._certificate is None:
            return (issued,)
        issued.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        issued.load_verify_locations(cafile=self._certificate)
        same = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        same.check_hostname = False
        same.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        same.load_verify_locations(cadata=_first_certificate(self._certificate.read_text()))
        return (same, issued)


_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"


def _first_certificate(chain: str) -> str:
    """Return the first certificate of a chain in PEM, which is not a CA's. Raises ValueError."""
    begin = chain.index(_BEGIN)
    return chain[begin : chain.index(_END, begin) + len(_END)]


def _no_password() -> str:
    raise ValueError("the key is encrypted; an unencrypted one is needed")


def _certificate_error(error: Exception, certificate: Path | None) -> str:
    if isinstance(error, ssl.SSLError):
        return f"{certificate}: {error.reason or 'no certificate and key in PEM'}"
    if isinstance(error, OSError):
        return f"{error.filename or certificate}: {error.strerror}"
    return f"{certificate}: {error}"


#: Allows any name.
_ANY = "*"
#: The most refused names that are logged, each once: clients choose them.
_LOGGED = 10
_SHOWN_CHARACTERS = 80


class AllowedHosts:
    """The names that a Host header may have, beside every address."""

    def __init__(self, bound: str, allowed: Collection[str]) -> None:
        """``bound`` is the address that is listened on, ``allowed`` the setting ``web_allowed_hosts``."""
        own = {"localhost", bound, socket.gethostname(), socket.getfqdn(), *allowed}
        self._names = {_normalized(name) for name in own}
        self._refused: set[str] = set()

    def allows(self, host: str | None) -> bool:
        """Return whether a Host header is allowed; it may be absent, as no browser omits it."""
        if host is None or _ANY in self._names:
            return True
        name = host_name(host)
        return name is not None and (is_address(name) or _normalized(name) in self._names)

    @web.middleware
    async def check(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer 421 with one line for a name that isn't allowed."""
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


def _normalized(name: str) -> str:
    return name.lower().removesuffix(".")


_CHALLENGES = ('Basic realm="caughtup", charset="UTF-8"', 'Bearer realm="caughtup"')


class Token:
    """The token in a file, read again when the file changes."""

    def __init__(self, path: Path, open_paths: frozenset[str]) -> None:
        """``open_paths`` need no token. Raises UserError if it can't be read."""
        self._path = path
        self._open_paths = open_paths
        self._watched = WatchedFiles([path])
        try:
            self._token = _read_token(path)
        except ValueError as error:
            raise UserError(f"setting web_token_file: {path}: {error}") from None

    @web.middleware
    async def check(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer 401 to a request without it."""
        if request.path not in self._open_paths and not self.is_authorized(
            request.headers.get("Authorization", "")
        ):
            refusal = web.HTTPUnauthorized(
                text="send the token of web_token_file, as Bearer or as a password\n"
            )
            for challenge in _CHALLENGES:
                refusal.headers.add("WWW-Authenticate", challenge)
            raise refusal
        return await handler(request)

    def is_authorized(self, authorization: str) -> bool:
        """Return whether an Authorization header holds the token, in constant time."""
        self._reload()
        return hmac.compare_digest(_token_in(authorization), self._token)

    def bearer(self) -> str:
        """Return the Authorization header that holds the token."""
        self._reload()
        return f"Bearer {self._token.decode(errors='surrogateescape')}"

    def _reload(self) -> None:
        if not self._watched.changed():
            return
        try:
            self._token = _read_token(self._path)
        except ValueError as error:
            log.warning("web_token_file has changed but cannot be used: %s: %s", self._path, error)


def _token_in(authorization: str) -> bytes:
    """Return the token in an Authorization header; empty, which no token is, without one."""
    scheme, _, rest = authorization.partition(" ")
    raw = rest.strip().encode(errors="surrogateescape")
    if scheme.lower() == "bearer":
        return raw
    if scheme.lower() != "basic":
        return b""
    try:
        return base64.b64decode(raw, validate=True).partition(b":")[2]
    except binascii.Error:
        return b""


def _read_token(path: Path) -> bytes:
    try:
        token = path.read_bytes().strip()
    except OSError as error:
        raise ValueError(error.strerror) from None
    if not token:
        raise ValueError("the file is empty")
    return token

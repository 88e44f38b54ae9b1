"""The token that whoever asks for the page or the metrics has to know, where one is set.

Prometheus sends it as a bearer token; a browser asks for a password, which is the token, too.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import logging
from pathlib import Path

from aiohttp import web
from aiohttp.typedefs import Handler

from caughtup.agents.configuration.watched_files import WatchedFiles
from caughtup.agents.errors import UserError

log = logging.getLogger(__name__)


_CHALLENGES = ('Basic realm="caughtup", charset="UTF-8"', 'Bearer realm="caughtup"')


class Token:
    """The token in a file, read again when the file changes."""

    def __init__(self, path: Path, open_paths: frozenset[str]) -> None:
        """``open_paths`` are answered without it. Raises UserError when there is none to read."""
        self._path = path
        self._open_paths = open_paths
        self._watched = WatchedFiles([path])
        try:
            self._token = _read(path)
        except ValueError as error:
            raise UserError(f"setting web_token_file: {path}: {error}") from None

    @web.middleware
    async def check(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer 401 to whoever doesn't send it."""
        if request.path not in self._open_paths and not self.is_right(
            request.headers.get("Authorization", "")
        ):
            refusal = web.HTTPUnauthorized(
                text="send the token of web_token_file, as Bearer or as a password\n"
            )
            for challenge in _CHALLENGES:
                refusal.headers.add("WWW-Authenticate", challenge)
            raise refusal
        return await handler(request)

    def is_right(self, authorization: str) -> bool:
        """Return whether an Authorization header holds the token, in constant time."""
        self._renew()
        return hmac.compare_digest(_given(authorization), self._token)

    def _renew(self) -> None:
        if not self._watched.changed():
            return
        try:
            self._token = _read(self._path)
        except ValueError as error:
            log.warning("web_token_file has changed but cannot be used: %s: %s", self._path, error)


def _given(authorization: str) -> bytes:
    """Return the token in a header; nothing, which is no token, where there is none."""
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


def _read(path: Path) -> bytes:
    try:
        token = path.read_bytes().strip()
    except OSError as error:
        raise ValueError(error.strerror) from None
    if not token:
        raise ValueError("the file is empty")
    return token

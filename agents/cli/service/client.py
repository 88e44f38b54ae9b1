"""A client of a service's web side: one request a connection, and whatever fails in one line."""

from __future__ import annotations

import ssl
from collections.abc import Collection, Iterator, Mapping, Sequence
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection, IncompleteRead
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import click
import msgspec

from caughtup.agents.cli.service.failures import not_there, refusal, unreachable
from caughtup.agents.errors import NotThereError, UserError
from caughtup.agents.web.hosts import is_loopback
from caughtup.agents.web.page.whole import WholeView
from caughtup.models.records.config_lines import ChangelogsLine, ConfigLine
from caughtup.models.records.config_lines import Line as ConfigsLine
from caughtup.models.records.reassignment_lines import Line
from caughtup.models.shown.connect_lines import Line as ConnectLine
from caughtup.models.shown.lag import Line as LagLine
from caughtup.models.what_if.safety import Safety

#: A service answers within seconds, however much it has to say: it says it as it goes.
TIMEOUT_SECONDS = 20.0
#: The most that an answer and a line of it may hold: a cluster of a million partitions has less.
_MOST_BYTES, _MOST_LINE_BYTES = 1 << 30, 1 << 24
_PIECE_BYTES = 1 << 16
#: A request's line may have 8 KiB.
_MOST_QUERY = 6_000
#: Kinds of lines; a newer service may have others.
_REASSIGNMENT_KINDS = ("partition", "throttle", "missing")
_CONNECT_KINDS = ("worker", "unassigned", "contradiction", "connector", "group")
_decode_whole = msgspec.json.Decoder(WholeView).decode


class ServiceClient:
    """Asks the service at an address. Every call raises UserError when it gets no answer.

    Nothing is followed or gone through: neither redirects nor proxies, which would see the token.
    """

    def __init__(self, url: str, token_file: Path | None = None, ca: Path | None = None) -> None:
        """``token_file``: what has the token. ``ca``: who signs the service's certificate (PEM)."""
        parts = _parts(url)
        self._host, self._port = parts.hostname or "", parts.port
        self._path = parts.path.rstrip("/")
        self.url = f"{parts.scheme}://{parts.netloc}{self._path}"
        self._token_file = token_file
        self._tls = _tls(ca) if parts.scheme == "https" else None
        self._token()  # whether there is one is told before anything is asked
        if token_file is not None and self._tls is None and not is_loopback(self._host):
            click.echo(
                "caughtup: warning: without https:// anybody on the way reads the token", err=True
            )

    def state(self) -> WholeView:
        """Return the whole cluster as the service knows it."""
        try:
            return _decode_whole(b"".join(self._pieces("/api/state")))
        except msgspec.DecodeError:
            raise self._no_service() from None

    def lag(self, groups: Sequence[str] | None = None) -> Iterator[LagLine]:
        """Yield the lines of groups, a group's together; None: of all."""
        paths = ["/api/lag"]
        if groups is not None:
            paths = [f"/api/lag?{'&'.join(some)}" for some in _requests(groups)]
        for path in paths:
            for line in self._lines(path):
                yield self._typed(line, LagLine)

    def reassignments(self) -> list[Line]:
        """Return the lines of what is in movement, and of throttles left over."""
        return self._of_kinds("/api/reassignments", _REASSIGNMENT_KINDS, Line)

    def connect(self) -> list[ConnectLine]:
        """Return the lines of all Connect groups."""
        return self._of_kinds("/api/connect", _CONNECT_KINDS, ConnectLine)

    def configs(self) -> list[ConfigsLine]:
        """Return the lines of what is known of all applications' configs."""
        return [
            self._typed(line, ConfigLine if "name" in line else ChangelogsLine)
            for line in self._lines("/api/configs")
        ]

    def safe(
        self, group: str, client: str, within_seconds: float | None, *, leave_group: bool
    ) -> Safety:
        """Return whether an instance can be stopped now: see ``caughtup safe``.

        ``within_seconds``: None for what the application has lived with, as the service saw it.
        """
        asked = f"stop={quote(client, safe='')}"
        asked += "" if within_seconds is None else f"&within={within_seconds:g}"
        asked += "&leave_group=true" if leave_group else ""
        path = f"/api/groups/{quote(group, safe='')}/safe?{asked}"
        found: Safety = self._typed(self._decoded(b"".join(self._pieces(path))), Safety)
        return found

    def _of_kinds(self, path: str, kinds: Collection[str], kind: Any) -> list[Any]:
        """Return typed lines; those of kinds that only a newer service has are passed over."""
        return [self._typed(line, kind) for line in self._lines(path) if _is_of(line, kinds)]

    def _lines(self, path: str) -> Iterator[dict[str, Any]]:
        rest = b""
        for piece in self._pieces(path):
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                yield self._decoded(line)
            if len(rest) > _MOST_LINE_BYTES:
                break
        if rest:
            raise self._unreachable(IncompleteRead(rest))

    def _typed(self, line: dict[str, Any], kind: Any) -> Any:
        """Return a line as its type; what a newer service says besides is left out."""
        try:
            return msgspec.convert(line, kind)
        except msgspec.ValidationError:
            raise self._no_service() from None

    def _decoded(self, text: bytes) -> dict[str, Any]:
        try:
            return msgspec.json.decode(text, type=dict[str, Any])
        except msgspec.DecodeError:
            raise self._no_service() from None

    def _no_service(self) -> UserError:
        wrong = "answers, but not as a caughtup service does: is its port right?"
        return UserError(f"{self.url} {wrong}")

    def _pieces(self, path: str) -> Iterator[bytes]:
        """Yield an answer as it comes; raises UserError where it isn't whole."""
        answer, left = self._ask(path), _MOST_BYTES
        try:
            while left > 0 and (piece := answer.read(_PIECE_BYTES)):
                left -= len(piece)
                yield piece
            if answer.length or left <= 0:
                raise IncompleteRead(b"")
        except (OSError, HTTPException) as error:
            raise self._unreachable(error) from None
        finally:
            answer.close()

    def _ask(self, path: str) -> HTTPResponse:
        host, port, seconds = self._host, self._port, TIMEOUT_SECONDS
        connection = (
            HTTPConnection(host, port, timeout=seconds)
            if self._tls is None
            else HTTPSConnection(host, port, timeout=seconds, context=self._tls)
        )
        token = self._token()
        headers = {"Connection": "close"}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        try:
            connection.request("GET", self._path + path, headers=headers)
            answer = connection.getresponse()
            if answer.status == 200:
                return answer
            said = answer.read(1_000).decode(errors="replace")
        except (OSError, HTTPException) as error:
            connection.close()
            raise self._unreachable(error) from None
        connection.close()
        if missing := not_there(answer.status, said):
            raise NotThereError(missing)
        raise UserError(refusal(self.url, answer.status, said, self._token_file))

    def _token(self) -> str | None:
        """Return the token, which may have been rotated since the last request."""
        if self._token_file is None:
            return None
        try:
            token = self._token_file.read_bytes().strip().decode("latin-1")
        except OSError as error:
            raise UserError(f"--token-file: {self._token_file}: {error.strerror}") from None
        if not token or set(token) & set("\0\r\n"):
            raise UserError(
                f"--token-file: {self._token_file}: the file has no token; a token is one line"
            )
        return token

    def _unreachable(self, error: Exception) -> UserError:
        return UserError(unreachable(self.url, error, self._tls is not None))


def _is_of(line: Mapping[str, Any], kinds: Collection[str]) -> bool:
    """Return whether a line is of a known kind, or of none."""
    return "kind" not in line or line["kind"] in kinds


def _parts(url: str) -> Any:
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises for one that is none
    except ValueError:
        raise UserError(
            f"--service: {url!r} is not an address; http://HOST:PORT is expected"
        ) from None
    if parts.username is not None or parts.password is not None:
        # Everybody on this machine sees a command line; so it isn't repeated here either.
        raise UserError(
            "--service: an address must not contain a password; name the token with --token-file"
        )
    plain = not (parts.query or parts.fragment) and parts.netloc.isascii() and url.isprintable()
    if parts.scheme not in ("http", "https") or not parts.hostname or not plain or " " in url:
        raise UserError(f"--service: {url!r} is not an address; http://HOST:PORT is expected")
    return parts


def _tls(ca: Path | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=None if ca is None else str(ca))
    except ssl.SSLError:
        raise UserError(f"--service-ca: {ca}: the file has no certificates in PEM") from None
    except OSError as error:
        raise UserError(f"--service-ca: {ca}: {error.strerror}") from None


def _requests(groups: Sequence[str]) -> Iterator[list[str]]:
    """Yield the groups as parts of a query, as many together as a request has room for."""
    some: list[str] = []
    size = 0
    for part in (f"group={quote(group, safe='')}" for group in groups):
        if some and size + len(part) > _MOST_QUERY:
            yield some
            some, size = [], 0
        some.append(part)
        size += len(part) + 1
    if some:
        yield some

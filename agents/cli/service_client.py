"""A client of a service's web port: one request a connection, and each failure explained in a line."""

from __future__ import annotations

import ssl
from collections.abc import Collection, Iterator, Mapping, Sequence
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection, IncompleteRead
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, quote, urlsplit

import click
import msgspec

from caughtup.agents.cli.service_answers import GroupAnswer, OverviewAnswer
from caughtup.agents.cli.service_failures import not_there, refusal, unreachable
from caughtup.agents.errors import NotThereError, UserError
from caughtup.agents.web.addresses import MISSING, is_loopback
from caughtup.agents.web.page.parts import WholeView
from caughtup.models.rebalances.rebalance import CAUSES
from caughtup.models.records.config_lines import ChangelogsLine, ConfigLine
from caughtup.models.records.config_lines import Line as ConfigsLine
from caughtup.models.records.reassignment_lines import Line
from caughtup.models.records.transactions import OpenTransaction
from caughtup.models.shown.connect_lines import Line as ConnectLine
from caughtup.models.shown.consumer_group import ConsumerGroupExplanation
from caughtup.models.shown.lag import Line as LagLine
from caughtup.models.what_if.safety import Safety
from caughtup.models.why.links import KINDS, Why

#: The time-out of each read: a service sends long answers as it makes them.
TIMEOUT_SECONDS = 20.0
#: The most bytes of an answer and of a line: a cluster of a million partitions needs fewer.
_MOST_BYTES, _MOST_LINE_BYTES = 1 << 30, 1 << 24
_PIECE_BYTES = 1 << 16
#: The most characters of a query; aiohttp accepts request lines of 8 KiB.
_MOST_QUERY = 6_000
#: The known kinds of lines; a newer service may send others.
_REASSIGNMENT_KINDS = ("partition", "throttle", "missing")
_CONNECT_KINDS = ("worker", "unassigned", "contradiction", "connector", "group")
_decode_whole = msgspec.json.Decoder(WholeView).decode


class ServiceClient:
    """Requests from the service at a URL. Every call raises UserError without an answer.

    It follows no redirects and uses no proxies, which would see the token.
    """

    def __init__(self, url: str, token_file: Path | None = None, ca: Path | None = None) -> None:
        """``ca`` is a file with the CA of the service's certificate (PEM)."""
        parts = _parts(url)
        self._host, self._port = parts.hostname or "", parts.port
        self._path = parts.path.rstrip("/")
        self.url = f"{parts.scheme}://{parts.netloc}{self._path}"
        self._token_file = token_file
        self._tls = _tls(ca) if parts.scheme == "https" else None
        self._token()  # a bad file is reported before any request
        if token_file is not None and self._tls is None and not is_loopback(self._host):
            click.echo(
                "caughtup: warning: without https:// the token crosses the network unencrypted",
                err=True,
            )

    def state(self) -> WholeView:
        """Return the service's state of the whole cluster."""
        try:
            return _decode_whole(b"".join(self._pieces("/api/state")))
        except msgspec.DecodeError:
            raise self._no_service() from None

    def lag(self, groups: Sequence[str] | None = None) -> Iterator[LagLine]:
        """Yield the lines of groups, group by group, None for all groups."""
        paths = ["/api/lag"]
        if groups is not None:
            paths = [f"/api/lag?{'&'.join(some)}" for some in _requests(groups)]
        for path in paths:
            for line in self._lines(path):
                yield self._typed(line, LagLine)

    def reassignments(self) -> list[Line]:
        """Return the lines of reassignments, and of orphaned throttles."""
        lines = self._of_kinds("/api/reassignments", _REASSIGNMENT_KINDS)
        return [self._typed(line, Line) for line in lines]

    def transactions(self) -> list[OpenTransaction]:
        """Return the open transactions that hold something back."""
        return [self._typed(line, OpenTransaction) for line in self._lines("/api/transactions")]

    def connect(self) -> list[ConnectLine]:
        """Return the lines of all Connect groups."""
        lines = self._of_kinds("/api/connect", _CONNECT_KINDS)
        return [self._typed(line, ConnectLine) for line in lines]

    def configs(self) -> list[ConfigsLine]:
        """Return the lines of all applications' configs."""
        return [
            self._typed(line, ConfigLine if "name" in line else ChangelogsLine)
            for line in self._lines("/api/configs")
        ]

    def safe(
        self, group: str, client: str, within_seconds: float | None, *, leave_group: bool
    ) -> Safety:
        """Return whether an instance can be stopped now: see ``caughtup safe``.

        ``within_seconds`` is None for the longest pause that the service saw.
        """
        asked = f"stop={quote(client, safe='')}"
        asked += "" if within_seconds is None else f"&within={within_seconds:g}"
        asked += "&leave_group=true" if leave_group else ""
        path = f"/api/groups/{quote(group, safe='')}/safe?{asked}"
        found: Safety = self._typed(self._whole(path), Safety)
        return found

    def why(self, group: str) -> Why:
        """Return why a group is as it is, without links of kinds that only a newer service knows."""
        path = f"/api/groups/{quote(group, safe='')}/why"
        answer = self._whole(path)
        answer["links"] = _known(answer.get("links"), KINDS)
        found: Why = self._typed(answer, Why)
        return found

    def explanation(self, group: str) -> ConsumerGroupExplanation:
        """Return who has what in a group of consumers, and why, see ``_with_known_causes``."""
        answer = self._whole(f"/api/groups/{quote(group, safe='')}/explanation")
        _with_known_causes(answer)
        found: ConsumerGroupExplanation = self._typed(answer, ConsumerGroupExplanation)
        return found

    def group(self, group: str) -> GroupAnswer:
        """Return a group's line, its worst partitions, and its last rebalances, see ``_with_known_causes``."""
        answer = self._whole(f"/api/view?group={quote(group, safe='')}")
        _with_known_causes(answer)
        found: GroupAnswer = self._typed(answer, GroupAnswer)
        return found

    def overview(self) -> OverviewAnswer:
        """Return the lines of groups, the worst first, and how many the service left out."""
        found: OverviewAnswer = self._typed(self._whole("/api/view?view=overview"), OverviewAnswer)
        return found

    def _of_kinds(self, path: str, kinds: Collection[str]) -> Iterator[Mapping[str, object]]:
        """Yield the lines of known kinds, or without one."""
        return (line for line in self._lines(path) if _is_of(line, kinds))

    def _lines(self, path: str) -> Iterator[dict[str, object]]:
        rest = b""
        for piece in self._pieces(path):
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                yield self._decoded(line)
            if len(rest) > _MOST_LINE_BYTES:
                break
        if rest:
            raise self._unreachable(IncompleteRead(rest))

    def _typed(self, line: Mapping[str, object], kind: Any) -> Any:
        """Return a line as its type; unknown fields are ignored."""
        try:
            return msgspec.convert(line, kind)
        except msgspec.ValidationError:
            raise self._no_service() from None

    def _whole(self, path: str) -> dict[str, object]:
        """Return the answer to a request, which is one JSON object."""
        return self._decoded(b"".join(self._pieces(path)))

    def _decoded(self, text: bytes) -> dict[str, object]:
        try:
            return msgspec.json.decode(text, type=dict[str, object])
        except msgspec.DecodeError:
            raise self._no_service() from None

    def _no_service(self) -> UserError:
        wrong = "answers, but not as a caughtup service does: check the port"
        return UserError(f"{self.url} {wrong}")

    def _pieces(self, path: str) -> Iterator[bytes]:
        """Yield an answer's bytes as they arrive; raises UserError if it is incomplete."""
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
                if missing := answer.headers.get(MISSING):
                    click.echo(f"{self.url}: without the groups of {missing}: no answer", err=True)
                return answer
            body = answer.read(1_000).decode(errors="replace")
        except (OSError, HTTPException) as error:
            connection.close()
            raise self._unreachable(error) from None
        connection.close()
        if missing := not_there(answer.status, body):
            raise NotThereError(missing)
        raise UserError(refusal(self.url, answer.status, body, self._token_file))

    def _token(self) -> str | None:
        """Return the token, read again as it may have been rotated."""
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


def _is_of(line: Mapping[str, object], kinds: Collection[str]) -> bool:
    """Return whether a line has a known kind, or none."""
    return "kind" not in line or line["kind"] in kinds


def _known(values: object, kinds: Collection[str]) -> object:
    """Return a list without the values of kinds that only a newer service knows."""
    if not isinstance(values, list):
        return values
    return [one for one in values if not isinstance(one, dict) or one.get("kind") in kinds]


def _with_known_causes(answer: dict[str, object]) -> None:
    """Leave out causes of rebalances that only a newer service knows, and rebalances without another."""
    rebalances = answer.get("rebalances")
    if isinstance(rebalances, list):
        for one in rebalances:
            if isinstance(one, dict):
                one["causes"] = _known(one.get("causes"), CAUSES)
        answer["rebalances"] = [
            one for one in rebalances if not isinstance(one, dict) or one["causes"]
        ]


def _parts(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises ValueError for a bad port
    except ValueError:
        raise UserError(
            f"--service: {url!r} is not an address; http://HOST:PORT is expected"
        ) from None
    if parts.username is not None or parts.password is not None:
        # Not repeated: the URL has a password.
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
    """Yield lists of query parameters for groups, each within the limit of a request."""
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

"""Ask the other instances, if several share the groups: about a group of theirs, and for their lines."""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import NamedTuple

import aiohttp
from aiohttp import hdrs, web
from aiohttp.typedefs import Handler
from yarl import URL

from caughtup.agents.process.fault_log import LogLimit
from caughtup.agents.settings import Settings
from caughtup.agents.web.access import PeerTrust, Token
from caughtup.agents.web.addresses import FORWARDED
from caughtup.agents.web.answer import error_response, write_pieces
from caughtup.agents.web.door.connections import connection_of
from caughtup.agents.web.door.questions import Slots
from caughtup.agents.web.door.refusals import Refusals
from caughtup.models.sharing import HeldPartitions, Peer

log = logging.getLogger(__name__)

_CONNECT_SECONDS, _READ_SECONDS = 2.0, 60.0
#: From asking for lines to the first byte: the answer begins after that of the slowest instance. How
#: long all bytes of a page or a view may take, and all those of a list: as long as a list's client may.
_BEGIN_SECONDS, _WHOLE_SECONDS, _LIST_SECONDS = 5.0, 10.0, 300.0
_RETRY_SECONDS = 2
#: Event streams are forwarded, too, of which an instance serves as many. They last: what is asked of
#: an instance for views and lists has connections of its own.
_MOST_FORWARDED, _MOST_ASKED = 50, 32
#: The most bytes of pages and views that are being received, of all instances.
_MOST_RECEIVED = 256 << 20
_PIECE_BYTES = 1 << 16
#: Any member of the group chooses its address: without user, path and query.
_ADDRESS = re.compile(r"https?://[\w.:%\[\]-]{1,300}", re.ASCII)
#: The endpoints whose query names a group.
_BY_QUERY = frozenset(
    {"/api/lag", "/api/connect", "/api/configs", "/api/view", "/api/events", "/api/state"}
)
#: The headers that are passed on, to the other instance and back.
_ASKED = (hdrs.ACCEPT, hdrs.ACCEPT_ENCODING)
_ANSWERED = (
    hdrs.CONTENT_TYPE,
    hdrs.CONTENT_ENCODING,
    hdrs.CONTENT_LENGTH,
    hdrs.LINK,
    hdrs.RETRY_AFTER,
)
#: What an answer that is passed on may be, and the pages that it may name.
_KINDS = frozenset({"application/json", "application/x-ndjson", "text/event-stream", "text/plain"})
_OWN_LINK = re.compile(r"</api/[^<>]*>; rel=\"next\"")
_LOOP = 508
#: Why an instance has no answer for another, by status.
_REFUSALS = {
    401: "it refuses the token: give all instances the same web_token_file",
    421: "it does not know the host {host}: add it to web_allowed_hosts there",
    _LOOP: "{host}:{port} is this instance itself: set web_address there",
}
#: What asking raises: ValueError for a host that cannot be one.
_FAILURES = (aiohttp.ClientError, OSError, ValueError)
_WHY_CHARACTERS = 300


class _Pool(NamedTuple):
    """Connections to the other instances: how many to each, and how long one waits."""

    most_of_instance: int
    timeout: aiohttp.ClientTimeout


_FORWARDING = _Pool(
    _MOST_FORWARDED, aiohttp.ClientTimeout(connect=_CONNECT_SECONDS, sock_read=_READ_SECONDS)
)
_ASKING = _Pool(
    _MOST_ASKED,
    aiohttp.ClientTimeout(total=_LIST_SECONDS, connect=_CONNECT_SECONDS, sock_read=_WHOLE_SECONDS),
)


class NoAnswerError(Exception):
    """An instance does not answer: why, in words."""


class TheirAnswer(NamedTuple):
    """What an instance answers, and whether it names a next page."""

    body: bytes
    has_more: bool


class TheirLines(NamedTuple):
    """The lines of the other instances, and the names of those that don't answer."""

    lines: AsyncIterator[bytes]
    missing: list[str]


class Peers:
    """Forwards requests about one group to the instance that has it, and asks all for their lines.

    ``token`` is sent along: instances have the same. It goes over TLS if this instance has TLS.
    """

    def __init__(
        self, settings: Settings, held: HeldPartitions, token: Token | None, refusals: Refusals
    ) -> None:
        own = settings.web_address or ""
        self._has_tls = settings.web_tls_certificate is not None or own.startswith("https:")
        self._trust = PeerTrust(settings.web_tls_certificate)
        self._held = held
        self._token = token
        self._slots = Slots("forwarded requests", refusals, _MOST_FORWARDED, _RETRY_SECONDS)
        self._sessions: dict[_Pool, aiohttp.ClientSession] = {}
        self._logged = LogLimit()
        self._id = secrets.token_hex(8)
        self._received = 0

    async def close(self) -> None:
        """Close all connections."""
        for session in self._sessions.values():
            await session.close()

    @web.middleware
    async def check(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Forward a request about a group that another instance has; handle any other here."""
        asker = request.headers.get(FORWARDED)
        if asker == self._id:
            return error_response(_LOOP, "an instance asks itself")
        group = None if asker is not None else named_group(request)
        peer = None if group is None else self._held.peer_of(group)
        if peer is None:
            return await handler(request)
        with self._slots.taken(request):
            return await self._forward(request, peer)

    @asynccontextmanager
    async def lines_for(
        self, request: web.Request, *, of_all: bool = True
    ) -> AsyncIterator[TheirLines]:
        """Ask all other instances what a request for lines asks for, unless one of them asks.

        ``of_all``: False asks none of them. Each has answered when the context begins, or counts as
        missing. The lines are read one instance after another, sorted by name; reading them raises
        ClientError if one breaks off.
        """
        peers = self._held.peers() if of_all and FORWARDED not in request.headers else []
        async with AsyncExitStack() as stack:
            asked = await asyncio.gather(
                *(self._lines_of(stack, request.rel_url, peer) for peer in peers)
            )
            answers = [answer for answer in asked if answer is not None]
            pairs = zip(peers, asked, strict=True)
            missing = [peer.label for peer, answer in pairs if answer is None]

            async def lines() -> AsyncIterator[bytes]:
                for answer in answers:
                    async for piece in answer.content.iter_chunked(_PIECE_BYTES):
                        yield piece

            yield TheirLines(lines(), missing)

    async def read(self, peer: Peer, path: URL, most_bytes: int) -> TheirAnswer:
        """Return an instance's answer to a relative URL. Raises NoAnswerError, and logs why."""
        body = bytearray()
        try:
            async with asyncio.timeout(_WHOLE_SECONDS), AsyncExitStack() as stack:
                answer = await self._ask(stack, path, peer)
                async for piece in answer.content.iter_chunked(_PIECE_BYTES):
                    body += piece
                    self._received += len(piece)
                    if len(body) > most_bytes:
                        raise NoAnswerError(f"its answer has more than {most_bytes >> 20} MB")
                    if self._received > _MOST_RECEIVED:
                        raise NoAnswerError("too much is being received of all instances")
                return TheirAnswer(bytes(body), hdrs.LINK in answer.headers)
        except _FAILURES as error:
            problem = NoAnswerError(_words(error))
        except NoAnswerError as error:
            problem = error
        finally:
            self._received -= len(body)
        self._note(peer, str(problem))
        raise problem

    async def pages(
        self, request: web.Request, most_bytes: int
    ) -> tuple[list[TheirAnswer], list[str]]:
        """Return the other instances' answers, and the names of those that don't answer.

        Unless one of them asks: then there are none.
        """
        peers = [] if FORWARDED in request.headers else self._held.peers()
        asked = await asyncio.gather(
            *(self.read(peer, request.rel_url, most_bytes) for peer in peers),
            return_exceptions=True,
        )
        answers, missing = [], []
        for peer, answer in zip(peers, asked, strict=True):
            if isinstance(answer, NoAnswerError):
                missing.append(peer.label)
            elif isinstance(answer, BaseException):
                raise answer
            else:
                answers.append(answer)
        return answers, missing

    async def _lines_of(
        self, stack: AsyncExitStack, path: URL, peer: Peer
    ) -> aiohttp.ClientResponse | None:
        """Return an instance's answer, open until the stack ends; None if there is none."""
        try:
            return await self._ask(stack, path, peer)
        except NoAnswerError as error:
            self._note(peer, str(error))
            return None

    async def _ask(self, stack: AsyncExitStack, path: URL, peer: Peer) -> aiohttp.ClientResponse:
        """Return an instance's answer, open until the stack ends. Raises NoAnswerError."""
        url = _url(path, peer)
        headers = self._headers(url) | {hdrs.ACCEPT_ENCODING: "identity"}
        try:
            async with asyncio.timeout(_BEGIN_SECONDS):
                answer = await self._send(stack, _ASKING, hdrs.METH_GET, url, headers)
        except _FAILURES as error:
            raise NoAnswerError(_words(error)) from None
        if answer.status != web.HTTPOk.status_code:
            raise NoAnswerError(_refusal(answer) or f"it answers {answer.status}")
        return answer

    def _note(self, peer: Peer, why: str) -> None:
        if (more := self._logged.more(peer.label)) is not None:
            log.warning("asking %s: %s%s", peer.label, why, more)

    async def _forward(self, request: web.Request, peer: Peer) -> web.StreamResponse:
        response: web.StreamResponse | None = None
        try:
            url = _url(request.rel_url, peer)
            headers = self._headers(url) | {hdrs.ACCEPT_ENCODING: "identity"}
            headers |= {name: request.headers[name] for name in _ASKED if name in request.headers}
            async with AsyncExitStack() as stack:
                answer = await self._send(stack, _FORWARDING, request.method, url, headers)
                if (refusal := _refusal(answer) or _not_ours(answer)) is not None:
                    raise NoAnswerError(refusal)
                response = web.StreamResponse(status=answer.status, headers=_passed(answer))
                await response.prepare(request)
                if request.method != hdrs.METH_HEAD:
                    async for piece in answer.content.iter_chunked(_PIECE_BYTES):
                        await write_pieces(response, piece)
                return response
        except (*_FAILURES, NoAnswerError) as error:
            why = _words(error)
            if response is None or not response.prepared:
                self._note(peer, why)
                return _unanswered(peer, why)
            if (connection := connection_of(request)) is not None:
                connection.cut()  # an orderly end would look like the end of the answer
            return response

    def _headers(self, url: URL) -> dict[str, str]:
        """Return the headers of a request to an instance. Raises NoAnswerError if it lacks TLS."""
        headers = {FORWARDED: self._id}
        if self._token is None:
            return headers
        if self._has_tls and url.scheme != "https":
            raise NoAnswerError("the token is not sent without TLS: set web_tls_certificate there")
        return headers | {hdrs.AUTHORIZATION: self._token.bearer()}

    async def _send(
        self, stack: AsyncExitStack, pool: _Pool, method: str, url: URL, headers: dict[str, str]
    ) -> aiohttp.ClientResponse:
        """Return the answer to a request, open until the stack ends. Raises one of _FAILURES."""
        contexts = await self._trust.contexts() if url.scheme == "https" else (True,)
        for context in contexts:
            sent = self._session(pool).request(
                method, url, headers=headers, allow_redirects=False, ssl=context
            )
            try:
                return await stack.enter_async_context(sent)
            except aiohttp.ClientConnectorCertificateError:
                if context is contexts[-1]:
                    raise
        raise AssertionError  # there is at least one

    def _session(self, pool: _Pool) -> aiohttp.ClientSession:
        """Return the session with a pool's connections."""
        if pool not in self._sessions:
            self._sessions[pool] = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, limit_per_host=pool.most_of_instance),
                timeout=pool.timeout,
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
            )
        return self._sessions[pool]


def named_group(request: web.Request) -> str | None:
    """Return the one group that a request is about, None if it is about none or several."""
    if (group := request.match_info.get("group")) is not None:
        return group
    named = request.query.getall("group", []) if request.path in _BY_QUERY else []
    return named[0] if len(set(named)) == 1 else None


def _url(path: URL, peer: Peer) -> URL:
    """Return the URL of a relative one at an instance. Raises NoAnswerError without an address."""
    try:
        if _ADDRESS.fullmatch(peer.address) and URL(peer.address).host:
            return URL(f"{peer.address}{path}", encoded=True)
    except ValueError:  # a port that is none, a bracket without another
        pass
    raise NoAnswerError("it has no web address: set web_address there")


def _refusal(answer: aiohttp.ClientResponse) -> str | None:
    """Return why an instance refuses another, with the setting that mends it; None if it doesn't."""
    url = answer.url
    words = _REFUSALS.get(answer.status)
    return None if words is None else words.format(host=url.host, port=url.port)


def _not_ours(answer: aiohttp.ClientResponse) -> str | None:
    """Return why an answer is not of this service; None if it may be."""
    if 300 <= answer.status < 400:
        return f"it answers {answer.status}"
    return None if answer.content_type in _KINDS else f"it answers with {answer.content_type!r}"


def _passed(answer: aiohttp.ClientResponse) -> dict[str, str]:
    """Return the headers of an answer that are passed on."""
    passed: dict[str, str] = {
        name: answer.headers[name] for name in _ANSWERED if name in answer.headers
    }
    if not _OWN_LINK.fullmatch(passed.get(hdrs.LINK, "")):
        passed.pop(hdrs.LINK, None)
    return passed


def _words(error: Exception) -> str:
    """Return an error in one line: another instance may have written it."""
    otherwise = "no answer in time" if isinstance(error, TimeoutError) else type(error).__name__
    line = " ".join(str(error).split()) or otherwise
    return "".join(each if each.isprintable() else "?" for each in line[:_WHY_CHARACTERS])


def _unanswered(peer: Peer, why: str) -> web.Response:
    response = error_response(
        503,
        f"the instance {peer.label} has this group, and doesn't answer ({why}): ask it, or again",
    )
    response.headers[hdrs.RETRY_AFTER] = str(_RETRY_SECONDS)
    return response

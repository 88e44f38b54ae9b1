"""Ask the other instances, if several share the groups: about a group of theirs, and for their lines."""

from __future__ import annotations

import asyncio
import logging
import re
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple

import aiohttp
from aiohttp import hdrs, web
from aiohttp.typedefs import Handler
from yarl import URL

from caughtup.agents.process.fault_log import LogLimit
from caughtup.agents.settings import Settings
from caughtup.agents.web.addresses import FORWARDED, is_loopback
from caughtup.agents.web.answer import error_response, write_pieces
from caughtup.agents.web.door.connections import connection_of
from caughtup.agents.web.door.questions import Slots
from caughtup.agents.web.door.refusals import Refusals
from caughtup.models.sharing import HeldPartitions, Peer

if TYPE_CHECKING:
    from caughtup.agents.web.access import Token

log = logging.getLogger(__name__)

_CONNECT_SECONDS, _READ_SECONDS = 2.0, 60.0
#: From asking for lines to the first byte: the answer begins after that of the slowest instance.
_BEGIN_SECONDS = 5.0
_RETRY_SECONDS = 2
#: Event streams are forwarded, too, of which an instance serves as many.
_MOST_FORWARDED = 50
_PIECE_BYTES = 1 << 16
#: Any member of the group chooses its address: without user, path and query.
_ADDRESS = re.compile(r"https?://[^\s/@?#\\]{1,300}", re.ASCII)
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

    ``token`` is sent along: instances have the same. It goes over TLS, to loopback, or to wherever
    this instance itself would have it sent without TLS.
    """

    def __init__(
        self, settings: Settings, held: HeldPartitions, token: Token | None, refusals: Refusals
    ) -> None:
        self._certificate = settings.web_tls_certificate
        self._held = held
        self._token = token
        self._slots = Slots("forwarded requests", refusals, _MOST_FORWARDED, _RETRY_SECONDS)
        self._session: aiohttp.ClientSession | None = None
        self._logged = LogLimit()

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()

    @web.middleware
    async def check(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Forward a request about a group that another instance has; handle any other here."""
        group = None if FORWARDED in request.headers else named_group(request)
        peer = None if group is None else self._held.peer_of(group)
        if peer is None:
            return await handler(request)
        url = _url(request.rel_url, peer)
        if url is None:
            return _unanswered(peer, "it has no web address: set web_address there")
        with self._slots.taken(request):
            return await self._forward(request, peer, url)

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
            missing = [peer.name for peer, answer in pairs if answer is None]

            async def lines() -> AsyncIterator[bytes]:
                for answer in answers:
                    async for piece in answer.content.iter_chunked(_PIECE_BYTES):
                        yield piece

            yield TheirLines(lines(), missing)

    async def read(self, peer: Peer, path: URL, most_bytes: int) -> TheirAnswer:
        """Return an instance's answer to a relative URL. Raises NoAnswerError, and logs why."""
        try:
            async with AsyncExitStack() as stack:
                answer = await self._ask(stack, path, peer)
                body = bytearray()
                async for piece in answer.content.iter_chunked(_PIECE_BYTES):
                    body += piece
                    if len(body) > most_bytes:
                        raise NoAnswerError(f"its answer has more than {most_bytes >> 20} MB")
                return TheirAnswer(bytes(body), hdrs.LINK in answer.headers)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            problem = NoAnswerError(str(error) or type(error).__name__)
        except NoAnswerError as error:
            problem = error
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
                missing.append(peer.name)
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
        if (url := _url(path, peer)) is None:
            raise NoAnswerError("it has no web address")
        headers = {FORWARDED: "1", hdrs.ACCEPT_ENCODING: "identity", **self._authorization(url)}
        try:
            asked = self._client().get(url, headers=headers, allow_redirects=False)
            async with asyncio.timeout(_BEGIN_SECONDS):
                answer = await stack.enter_async_context(asked)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise NoAnswerError(str(error) or type(error).__name__) from None
        if answer.status != web.HTTPOk.status_code:
            raise NoAnswerError(f"it answers {answer.status}")
        return answer

    def _note(self, peer: Peer, why: str) -> None:
        if (more := self._logged.more(peer.name)) is not None:
            log.warning("asking %s: %s%s", peer.name, why, more)

    async def _forward(self, request: web.Request, peer: Peer, url: URL) -> web.StreamResponse:
        headers = {FORWARDED: "1", **self._authorization(url)}
        headers |= {str(name): request.headers[name] for name in _ASKED if name in request.headers}
        response: web.StreamResponse | None = None
        try:
            async with self._client().request(
                request.method, url, headers=headers, allow_redirects=False
            ) as answer:
                passed = {
                    name: answer.headers[name] for name in _ANSWERED if name in answer.headers
                }
                response = web.StreamResponse(status=answer.status, headers=passed)
                await response.prepare(request)
                if request.method != hdrs.METH_HEAD:
                    async for piece in answer.content.iter_chunked(_PIECE_BYTES):
                        await write_pieces(response, piece)
                return response
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            why = str(error) or type(error).__name__
            if response is None or not response.prepared:
                self._note(peer, why)
                return _unanswered(peer, why)
            if (connection := connection_of(request)) is not None:
                connection.cut()  # an orderly end would look like the end of the answer
            return response

    def _authorization(self, url: URL) -> dict[str, str]:
        if self._token is None:
            return {}
        is_safe = url.scheme == "https" or self._certificate is None or is_loopback(url.host or "")
        return {hdrs.AUTHORIZATION: self._token.bearer()} if is_safe else {}

    def _client(self) -> aiohttp.ClientSession:
        if self._session is None:
            tls = ssl.create_default_context()
            if self._certificate is not None:  # instances often have the same
                tls.load_verify_locations(cafile=self._certificate)
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(ssl=tls, limit=_MOST_FORWARDED),
                timeout=aiohttp.ClientTimeout(connect=_CONNECT_SECONDS, sock_read=_READ_SECONDS),
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
            )
        return self._session


def named_group(request: web.Request) -> str | None:
    """Return the one group that a request is about, None if it is about none or several."""
    if (group := request.match_info.get("group")) is not None:
        return group
    named = request.query.getall("group", []) if request.path in _BY_QUERY else []
    return named[0] if len(set(named)) == 1 else None


def _url(path: URL, peer: Peer) -> URL | None:
    """Return the URL of a relative one at an instance; None if that has no valid address."""
    if not _ADDRESS.fullmatch(peer.address):
        return None
    try:
        base = URL(peer.address)
        return URL(f"{peer.address}{path}", encoded=True) if base.host else None
    except ValueError:  # a port that is none, a bracket without another
        return None


def _unanswered(peer: Peer, why: str) -> web.Response:
    response = error_response(
        503,
        f"the instance {peer.name} has this group, and doesn't answer ({why}): ask it, or again",
    )
    response.headers[hdrs.RETRY_AFTER] = str(_RETRY_SECONDS)
    return response

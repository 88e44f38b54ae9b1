"""``/api/lag``, ``/api/configs`` and others: the JSON lines of commands, from the service's state."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Container, Iterable, Iterator
from contextlib import aclosing
from itertools import islice

import msgspec
from aiohttp import web

from caughtup.agents.process.turns import in_turns
from caughtup.agents.web.addresses import FORWARDED, MISSING
from caughtup.agents.web.answer import error_response, parse_count, send_chunks, send_stream
from caughtup.agents.web.door.questions import Slots
from caughtup.agents.web.door.refusals import Refusals
from caughtup.agents.web.peers import Peers
from caughtup.models.records.fields import Part
from caughtup.models.shown.applications import application_lines
from caughtup.models.shown.connect import connect_lines
from caughtup.models.shown.lag import lag_lines
from caughtup.models.state.cluster import ClusterState

_KIND = {"Content-Type": "application/x-ndjson"}
_FAULTS = "page"
#: The most answers that are sent at once, and the most lines of a page.
_LISTINGS, _MOST_LINES = 8, 10_000


class Lines:
    """Serves JSON lines, made from the state as they are sent, followed by those of other instances."""

    def __init__(
        self, state: ClusterState, clock: Callable[[], int], refusals: Refusals, peers: Peers
    ) -> None:
        self._state = state
        self._peers = peers
        self._clock = clock
        self._slots = Slots("listings", refusals, _LISTINGS, retry_seconds=5)

    def add_routes(self, app: web.Application) -> None:
        """Register the endpoints."""
        app.router.add_get("/api/lag", self._lag)
        app.router.add_get("/api/reassignments", self._reassignments)
        app.router.add_get("/api/transactions", self._transactions)
        app.router.add_get("/api/connect", self._connect)
        app.router.add_get("/api/configs", self._configs)

    async def _lag(self, request: web.Request) -> web.StreamResponse:
        """Answer with the lines of ``?group=NAME&group=…``, in that order; without it, of all groups.

        ``?limit=N`` limits the lines; the header Link then has the next page's address.
        """
        named, known = request.query.getall("group", []), self._state.group_names()
        groups = list(dict.fromkeys(named)) if named else known
        if "limit" in request.query or "cursor" in request.query:
            return await self._page_of_lag(request, groups, set(known))
        return await self._answer(request, self._lag_lines(groups, set(known)))

    async def _page_of_lag(
        self, request: web.Request, groups: list[str], known: Container[str]
    ) -> web.StreamResponse:
        """Answer with a page; its cursor is ``N:GROUP``: N lines of the group were sent before."""
        if self._state.held.others and len(groups) != 1 and FORWARDED not in request.headers:
            return error_response(400, "instances share the groups: name one group, or no limit")
        limit = parse_count(request.query.get("limit", str(_MOST_LINES)), _MOST_LINES)
        if limit is None:
            return error_response(400, f"say how many lines with ?limit=N, from 1 to {_MOST_LINES}")
        count, _, first = request.query.get("cursor", "0:").partition(":")
        if not (count.isascii() and count.isdecimal() and len(count) < 10):
            return error_response(400, "give the cursor that the previous answer named")
        if first in groups:
            groups = groups[groups.index(first) :]
        else:  # it was deleted meanwhile: go on with those after it
            count, groups = "0", [group for group in groups if group > first]
        page = _Page(limit, int(count))
        with self._slots.taken(request):
            pieces = page.lines(self._lag_lines([group], known) for group in groups)
            chunks = [chunk async for chunk in in_turns(pieces)]
            headers = dict(_KIND)
            if page.at is not None:
                place, sent = page.at
                cursor = f"{sent}:{groups[place]}"
                following = {"limit": str(limit), "cursor": cursor}
                following_url = request.rel_url.update_query(following)
                headers["Link"] = f'<{following_url}>; rel="next"'
            return await send_chunks(request, headers, chunks)

    async def _reassignments(self, request: web.Request) -> web.StreamResponse:
        return await self._answer(request, self._reassignment_lines(), of_all=False)

    async def _transactions(self, request: web.Request) -> web.StreamResponse:
        return await self._answer(request, self._transaction_lines())

    async def _connect(self, request: web.Request) -> web.StreamResponse:
        """Answer with the lines of ``?group=NAME``; without it, of all Connect groups."""
        known = self._state.connect.groups
        groups = dict.fromkeys(request.query.getall("group", [])) or sorted(known)
        return await self._answer(request, self._connect_lines(list(groups)))

    async def _configs(self, request: web.Request) -> web.StreamResponse:
        """Answer with the configs of ``?group=NAME``; without it, of all applications."""
        known = self._state.applications
        groups = dict.fromkeys(request.query.getall("group", [])) or sorted(known)
        return await self._answer(request, self._config_lines(g for g in groups if g in known))

    def _config_lines(self, groups: Iterable[str]) -> Iterator[Part]:
        for group in groups:
            with self._state.faults.isolated(_FAULTS, group, self._clock()):
                yield from application_lines(self._state, group)

    def _connect_lines(self, groups: Iterable[str]) -> Iterator[Part]:
        for group in groups:
            with self._state.faults.isolated(_FAULTS, group, self._clock()):
                yield from connect_lines(self._state, group, self._clock())

    def _lag_lines(self, groups: Iterable[str], known: Container[str]) -> Iterator[Part]:
        for group in (group for group in groups if group in known):
            with self._state.faults.isolated(_FAULTS, group, self._clock()):
                yield from lag_lines(self._state, group)

    def _reassignment_lines(self) -> Iterator[Part]:
        state, now_ms = self._state, self._clock()
        with state.faults.isolated(_FAULTS, "reassignments", now_ms):
            yield from state.reassignment_watch.lines(state.reassignments, now_ms)

    def _transaction_lines(self) -> Iterator[Part]:
        state, now_ms = self._state, self._clock()
        with state.faults.isolated(_FAULTS, "transactions", now_ms):
            yield from state.open_transactions(now_ms)

    async def _answer(
        self,
        request: web.Request,
        lines: Iterator[Part],
        *,
        of_all: bool = True,
    ) -> web.StreamResponse:
        """Answer with lines; ``of_all``: followed by those of the other instances."""
        pieces = map(_line, lines)
        with self._slots.taken(request):
            asked = self._peers.lines_for(request, of_all=of_all)
            async with asked as theirs, aclosing(in_turns(pieces)) as ours:
                headers = _KIND | ({MISSING: ", ".join(theirs.missing)} if theirs.missing else {})
                chunks = _one_after_the_other(ours, theirs.lines)
                return await send_stream(request, headers, chunks, self._failed)

    def _failed(self, error: Exception) -> None:
        self._state.faults.note(_FAULTS, "lines", error, self._clock())


class _Page:
    """A limited number of lines of consecutive groups, after those of the first sent before."""

    def __init__(self, limit: int, sent: int) -> None:
        self._left = limit
        self._sent = sent
        #: Where the next page begins: the index of a group and the number of its lines that were
        #: sent; None if this is the last page.
        self.at: tuple[int, int] | None = None

    def lines(self, groups: Iterable[Iterator[Part]]) -> Iterator[bytes]:
        """Yield the page's lines, and set ``at`` if there are more."""
        for place, lines in enumerate(groups):
            sent, self._sent = self._sent, 0
            for line in islice(lines, sent, None):
                if not self._left:
                    self.at = place, sent
                    return
                self._left -= 1
                sent += 1
                yield _line(line)


async def _one_after_the_other(*streams: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    for stream in streams:
        async for chunk in stream:
            yield chunk


def _line(line: Part) -> bytes:
    return msgspec.json.encode(line) + b"\n"

"""``/api/lag``, ``/api/configs`` and others: the JSON lines of commands, from the service's state."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Container, Generator, Iterable, Iterator
from contextlib import aclosing, contextmanager
from itertools import islice
from operator import itemgetter

import msgspec
from aiohttp import web

from caughtup.agents.process.turns import done_in_turns, in_turns
from caughtup.agents.web.addresses import FORWARDED, MISSING
from caughtup.agents.web.answer import error_response, parse_count, send_chunks, send_stream
from caughtup.agents.web.door.connections import connection_of
from caughtup.agents.web.door.questions import Slots
from caughtup.agents.web.door.refusals import Refusals
from caughtup.agents.web.peers import Peers, TheirAnswer
from caughtup.models.records.fields import Part
from caughtup.models.sharing import MOST_INSTANCES
from caughtup.models.shown.applications import application_lines
from caughtup.models.shown.connect import connect_lines
from caughtup.models.shown.lag import lag_lines
from caughtup.models.state.cluster import ClusterState

_KIND = {"Content-Type": "application/x-ndjson"}
_FAULTS = "page"
#: The most answers that are sent at once to clients, and to other instances for theirs; the most
#: lines of a page.
_LISTINGS, _LISTINGS_OF_INSTANCES, _MOST_LINES = 8, 2 * MOST_INSTANCES, 10_000
#: The most bytes of another instance's page.
_PAGE_BYTES = 16 << 20


class _OfGroup(Part):
    group: str


#: The most partitions that an answer's header names.
_FEW = 10
_GROUP = msgspec.json.Decoder(_OfGroup)


class Lines:
    """Serves JSON lines, made from the state as they are sent, followed by those of other instances."""

    def __init__(
        self, state: ClusterState, clock: Callable[[], int], refusals: Refusals, peers: Peers
    ) -> None:
        self._state = state
        self._peers = peers
        self._clock = clock
        self._slots = Slots("listings", refusals, _LISTINGS, retry_seconds=5)
        # Not among the former: clients of all instances would refuse each other's lines.
        self._slots_of_instances = Slots(
            "listings", refusals, _LISTINGS_OF_INSTANCES, retry_seconds=5
        )

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
        limit = parse_count(request.query.get("limit", str(_MOST_LINES)), _MOST_LINES)
        if limit is None:
            return error_response(400, f"say how many lines with ?limit=N, from 1 to {_MOST_LINES}")
        count, _, first = request.query.get("cursor", "0:").partition(":")
        if not (count.isascii() and count.isdecimal() and len(count) < 10):
            return error_response(400, "give the cursor that the previous answer named")
        if first in groups:
            groups = groups[groups.index(first) :]
        else:  # another instance has it, or it was deleted meanwhile: go on with those after it
            groups = [group for group in groups if group > first]
        page = _Page(limit, first, int(count))
        with self._slot(request):
            theirs, missing = await self._peers.pages(request, _PAGE_BYTES)
            pieces = page.lines((group, self._lag_lines([group], known)) for group in groups)
            chunks = [chunk async for chunk in in_turns(pieces)]
            if theirs:
                asked = request.query.getall("group", [])
                chunks = await done_in_turns(page.merged_steps(chunks, theirs, asked))
            headers = self._headers(request, missing)
            if page.has_more:
                following = {"limit": str(limit), "cursor": page.cursor}
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
        with self._slot(request):
            asked = self._peers.lines_for(request, of_all=of_all)
            async with asked as theirs, aclosing(in_turns(pieces)) as ours:
                headers = self._headers(request, theirs.missing if of_all else None)
                chunks = _one_after_the_other(ours, theirs.lines)
                return await send_stream(request, headers, chunks, self._failed)

    @contextmanager
    def _slot(self, request: web.Request) -> Iterator[None]:
        """Hold a slot of a client's, or of an instance's, which may read as slowly as its client."""
        is_instance = FORWARDED in request.headers
        with (self._slots_of_instances if is_instance else self._slots).taken(request):
            if is_instance and (connection := connection_of(request)) is not None:
                connection.to_instance = True
            yield

    def _headers(self, request: web.Request, missing: list[str] | None) -> dict[str, str]:
        """Return an answer's headers. ``missing``: instances that lack; None if all know the lines."""
        unheld = self._state.held.unheld() if FORWARDED not in request.headers else []
        if missing is not None and unheld:
            few = ", ".join(map(str, unheld[:_FEW]))
            more = f" and {len(unheld) - _FEW} more" if len(unheld) > _FEW else ""
            missing = [*missing, f"no instance yet (partition {few}{more})"]
        return _KIND | ({MISSING: ", ".join(missing)} if missing else {})

    def _failed(self, error: Exception) -> None:
        self._state.faults.note(_FAULTS, "lines", error, self._clock())


class _Page:
    """A limited number of lines of consecutive groups; ``sent`` of ``first`` were sent before."""

    def __init__(self, limit: int, first: str, sent: int) -> None:
        self._limit = limit
        self._first, self._before = first, sent
        self._last, self._sent = first, sent
        self.has_more = False

    @property
    def cursor(self) -> str:
        """The cursor of the next page."""
        return f"{self._sent}:{self._last}"

    def lines(self, groups: Iterable[tuple[str, Iterator[Part]]]) -> Iterator[bytes]:
        """Yield the page's lines of groups, each with all its lines."""
        left = self._limit
        for group, lines in groups:
            for line in islice(lines, self._before if group == self._first else 0, None):
                if not left:
                    self.has_more = True
                    return
                left -= 1
                self._sent = self._sent + 1 if group == self._last else 1
                self._last = group
                yield _line(line)

    def merged_steps(
        self, chunks: list[bytes], theirs: list[TheirAnswer], named: list[str]
    ) -> Generator[None, None, list[bytes]]:
        """Return the first lines of this instance's page and of the same page of others.

        They are in the order of the groups' names, or of ``named``. Lines of others that are none,
        or that this page cannot have, are left out.
        """
        places = {group: place for place, group in enumerate(dict.fromkeys(named))}
        begin = places.get(self._first, 0), self._first
        lines = []
        for body in (b"".join(chunks), *(answer.body for answer in theirs)):
            *whole, rest = body.split(b"\n", self._limit)
            self.has_more |= bool(rest)
            for line in whole:
                yield
                try:
                    group = _GROUP.decode(line).group
                except (msgspec.DecodeError, RecursionError):
                    continue
                place = places.get(group, 0), group
                if (group in places or not places) and place >= begin:
                    lines.append((place, line + b"\n"))
        lines.sort(key=itemgetter(0))
        kept = lines[: self._limit]
        self.has_more |= len(kept) < len(lines) or any(answer.has_more for answer in theirs)
        self.has_more &= bool(kept)  # the next page would be this one
        if kept:
            self._last = kept[-1][0][1]
            self._sent = sum(group == self._last for (_, group), _ in kept)
            self._sent += self._before if self._last == self._first else 0
        return [line for _, line in kept]


async def _one_after_the_other(*streams: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    for stream in streams:
        async for chunk in stream:
            yield chunk


def _line(line: Part) -> bytes:
    return msgspec.json.encode(line) + b"\n"

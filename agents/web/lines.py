"""``/api/lag``, ``/api/configs`` and others: what commands print as JSON, an object a line.

A look at the cluster knows no rhythm and no past; the service does, and answers with the same
lines.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import aclosing
from itertools import islice

import msgspec
from aiohttp import web

from caughtup.agents.process.turns import in_turns
from caughtup.agents.web.answer import count_asked, refused, send_made, send_whole
from caughtup.agents.web.door.questions import Slots
from caughtup.agents.web.door.refusals import Refusals
from caughtup.models.records.fields import Part
from caughtup.models.shown.applications import application_lines
from caughtup.models.shown.connect import connect_lines
from caughtup.models.shown.lag import lag_lines
from caughtup.models.state.cluster import ClusterState

_KIND = {"Content-Type": "application/x-ndjson"}
_FAULTS = "page"
#: Answers that are sent at once, and the most lines of a page of them.
_LISTINGS, _MOST_LINES = 8, 10_000


class Lines:
    """Answers with lines of the state as it is, made as they are sent."""

    def __init__(self, state: ClusterState, clock: Callable[[], int], refusals: Refusals) -> None:
        self._state = state
        self._clock = clock
        self._slots = Slots("listings", refusals, _LISTINGS, retry_seconds=5)

    def add_routes(self, app: web.Application) -> None:
        """Add what it answers to an application."""
        app.router.add_get("/api/lag", self._lag)
        app.router.add_get("/api/reassignments", self._reassignments)
        app.router.add_get("/api/connect", self._connect)
        app.router.add_get("/api/configs", self._configs)

    async def _lag(self, request: web.Request) -> web.StreamResponse:
        """Answer with the lines of groups, in the order of ``?group=NAME&group=…``; else of all.

        With ``?limit=N`` no more lines than these; the header Link names the next page.
        """
        named, known = request.query.getall("group", []), self._state.group_names()
        groups = list(dict.fromkeys(named)) if named else known
        if "limit" in request.query or "cursor" in request.query:
            return await self._page_of_lag(request, groups, set(known))
        return await self._answer(request, self._lag_of(groups, set(known)))

    async def _page_of_lag(
        self, request: web.Request, groups: list[str], known: Container[str]
    ) -> web.StreamResponse:
        """Answer with a page: a cursor is a group, and how many of its lines went before."""
        limit = count_asked(request.query.get("limit", str(_MOST_LINES)), _MOST_LINES)
        if limit is None:
            return refused(400, f"say how many lines with ?limit=N, from 1 to {_MOST_LINES}")
        count, _, first = request.query.get("cursor", "0:").partition(":")
        if not (count.isascii() and count.isdecimal() and len(count) < 10):
            return refused(400, "give the cursor as the page before names it")
        if first in groups:
            groups = groups[groups.index(first) :]
        else:  # it has gone meanwhile: those after it
            count, groups = "0", [group for group in groups if group > first]
        page = _Page(limit, int(count))
        with self._slots.taken(request):
            pieces = page.lines(self._lag_of([group], known) for group in groups)
            chunks = [chunk async for chunk in in_turns(pieces)]
            headers = dict(_KIND)
            if page.at is not None:
                place, given = page.at
                cursor = f"{given}:{groups[place]}"
                following = {"limit": str(limit), "cursor": cursor}
                following_url = request.rel_url.update_query(following)
                headers["Link"] = f'<{following_url}>; rel="next"'
            return await send_made(request, headers, chunks)

    async def _reassignments(self, request: web.Request) -> web.StreamResponse:
        return await self._answer(request, self._moving())

    async def _connect(self, request: web.Request) -> web.StreamResponse:
        """Answer with the lines of Connect groups: those of ``?group=NAME``, else of all."""
        known = self._state.connect.groups
        groups = dict.fromkeys(request.query.getall("group", [])) or sorted(known)
        return await self._answer(request, self._connect_of(list(groups)))

    async def _configs(self, request: web.Request) -> web.StreamResponse:
        """Answer with what is known of applications' configs: of ``?group=NAME``, else of all."""
        known = self._state.applications
        groups = dict.fromkeys(request.query.getall("group", [])) or sorted(known)
        return await self._answer(request, self._configs_of(g for g in groups if g in known))

    def _configs_of(self, groups: Iterable[str]) -> Iterator[Part]:
        for group in groups:
            with self._state.faults.isolated(_FAULTS, group, self._clock()):
                yield from application_lines(self._state, group)

    def _connect_of(self, groups: Iterable[str]) -> Iterator[Part]:
        for group in groups:
            with self._state.faults.isolated(_FAULTS, group, self._clock()):
                yield from connect_lines(self._state, group, self._clock())

    def _lag_of(self, groups: Iterable[str], known: Container[str]) -> Iterator[Part]:
        for group in (group for group in groups if group in known):
            with self._state.faults.isolated(_FAULTS, group, self._clock()):
                yield from lag_lines(self._state, group)

    def _moving(self) -> Iterator[Part]:
        state, now_ms = self._state, self._clock()
        with state.faults.isolated(_FAULTS, "reassignments", now_ms):
            yield from state.reassignment_watch.lines(state.reassignments, now_ms)

    async def _answer(
        self,
        request: web.Request,
        lines: Iterator[Part],
    ) -> web.StreamResponse:
        pieces = map(_line, lines)
        with self._slots.taken(request):
            async with aclosing(in_turns(pieces)) as chunks:
                return await send_whole(request, _KIND, chunks, self._failed)

    def _failed(self, error: Exception) -> None:
        self._state.faults.note(_FAULTS, "lines", error, self._clock())


class _Page:
    """So many lines of one group after the other; the first has given some before."""

    def __init__(self, limit: int, given: int) -> None:
        self._left = limit
        self._given = given
        #: Where the next page begins: at which of the groups, and how many of its lines went
        #: before; None where there is none.
        self.at: tuple[int, int] | None = None

    def lines(self, groups: Iterable[Iterator[Part]]) -> Iterator[bytes]:
        """Yield the page's lines, and nothing for each that only says that there are more."""
        for place, lines in enumerate(groups):
            given, self._given = self._given, 0
            for line in islice(lines, given, None):
                if not self._left:
                    self.at = place, given
                    return
                self._left -= 1
                given += 1
                yield _line(line)


def _line(line: Part) -> bytes:
    return msgspec.json.encode(line) + b"\n"

"""``/api/lag``, ``/api/configs`` and others: what commands print as JSON, an object a line.

A look at the cluster knows no rhythm and no past; the service does, and answers with the same
lines.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import aclosing
from typing import Any

import msgspec
from aiohttp import web

from caughtup.agents.process.turns import in_turns
from caughtup.agents.views.configs import application_lines
from caughtup.agents.views.connect_lines import connect_lines
from caughtup.agents.views.lag_lines import lag_lines
from caughtup.agents.views.reassignment_lines import reassignment_lines
from caughtup.agents.web.answer import send_whole
from caughtup.models.state.cluster import ClusterState

_KIND = {"Content-Type": "application/x-ndjson"}
_FAULTS = "page"


class Lines:
    """Answers with lines of the state as it is, made as they are sent."""

    def __init__(self, state: ClusterState, clock: Callable[[], int]) -> None:
        self._state = state
        self._clock = clock

    def add_routes(self, app: web.Application) -> None:
        """Add what it answers to an application."""
        app.router.add_get("/api/lag", self._lag)
        app.router.add_get("/api/reassignments", self._reassignments)
        app.router.add_get("/api/connect", self._connect)
        app.router.add_get("/api/configs", self._configs)

    async def _lag(self, request: web.Request) -> web.StreamResponse:
        """Answer with the lines of groups, in the order of ``?group=NAME&group=…``; else of all."""
        named, known = request.query.getall("group", []), self._state.group_names()
        groups = dict.fromkeys(named) if named else known
        return await self._answer(request, self._lag_of(groups, set(known)))

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

    def _configs_of(self, groups: Iterable[str]) -> Iterator[dict[str, Any]]:
        for group in groups:
            with self._state.faults.isolated(_FAULTS, group, self._clock()):
                yield from application_lines(self._state, group)

    def _connect_of(self, groups: Iterable[str]) -> Iterator[dict[str, Any]]:
        for group in groups:
            with self._state.faults.isolated(_FAULTS, group, self._clock()):
                yield from connect_lines(self._state, group, self._clock())

    def _lag_of(self, groups: Iterable[str], known: Container[str]) -> Iterator[dict[str, Any]]:
        for group in (group for group in groups if group in known):
            with self._state.faults.isolated(_FAULTS, group, self._clock()):
                yield from lag_lines(self._state, group)

    def _moving(self) -> Iterator[dict[str, Any]]:
        tracker, watch = self._state.reassignments, self._state.reassignment_watch
        with self._state.faults.isolated(_FAULTS, "reassignments", self._clock()):
            yield from reassignment_lines(tracker, watch, self._clock())

    async def _answer(
        self, request: web.Request, lines: Iterator[dict[str, Any]]
    ) -> web.StreamResponse:
        pieces = (msgspec.json.encode(line) + b"\n" for line in lines)
        async with aclosing(in_turns(pieces)) as chunks:
            return await send_whole(request, _KIND, chunks, self._failed)

    def _failed(self, error: Exception) -> None:
        self._state.faults.note(_FAULTS, "lines", error, self._clock())

"""``/api/groups/GROUP/history?days=N``: a group's charts over days, from the history tables."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import Callable
from functools import partial

from aiohttp import web

from caughtup.agents.configuration.s3_access import environment_of
from caughtup.agents.errors import UserError
from caughtup.agents.settings import Settings
from caughtup.agents.web.answer import error_response, parse_count
from caughtup.agents.web.door.questions import Questions, Unanswerable
from caughtup.agents.web.door.refusals import Refusals

log = logging.getLogger(__name__)

#: The module that reads the tables, in a process of its own, and its time limit in seconds.
_READER = "caughtup.agents.cli.history.charts"
SECONDS = 30.0
#: The most requests under way, of which one reads; how long answers are kept (s), and how many.
_MOST, _KEPT_SECONDS, _KEPT = 5, 60.0, 32
MOST_DAYS = 90
_MOST_BYTES = 1 << 20
_MOST_CHARACTERS = 1_000


class HistoryCharts:
    """Serves the charts of a group over days, from the tables at ``history_uri``."""

    def __init__(self, settings: Settings, clock: Callable[[], int], refusals: Refusals) -> None:
        self._settings = settings
        self._clock = clock
        self._questions = Questions(
            "questions to the history",
            refusals,
            most=_MOST,
            wait_seconds=_MOST * SECONDS,
            retry_seconds=10,
        )
        self._kept: dict[tuple[str, int], tuple[float, bytes]] = {}

    def add_routes(self, app: web.Application) -> None:
        """Register the endpoint."""
        app.router.add_get(r"/api/groups/{group:[\s\S]+}/history", self._history)

    async def _history(self, request: web.Request) -> web.Response:
        """Answer 200 with charts, 404 without a history, 502 if it can't be read."""
        uri = self._settings.history_uri
        if uri is None:
            return error_response(404, "history_uri is not set")
        group = request.match_info["group"]
        days = parse_count(request.query.get("days", "7"), MOST_DAYS)
        if days is None:
            return error_response(400, f"say how far back with ?days=N, from 1 to {MOST_DAYS}")
        if len(group) > _MOST_CHARACTERS or "\0" in group:
            return error_response(404, "there is no group of this name")
        body = self._cached(group, days)
        if body is None:
            read = partial(self._read_and_keep, uri, group, days)
            try:
                body = await self._questions.answer((group, days), read)
            except Unanswerable as problem:
                log.warning("the history can't be read: %s", problem)
                return error_response(problem.status, problem.why)
        return web.Response(body=body, content_type="application/json")

    def _cached(self, group: str, days: int) -> bytes | None:
        until, body = self._kept.get((group, days), (0.0, b""))
        return body if time.monotonic() <= until else None

    async def _read_and_keep(self, uri: str, group: str, days: int) -> bytes:
        body = await self._read(uri, group, days)
        self._kept.pop((group, days), None)
        while len(self._kept) >= _KEPT:
            del self._kept[next(iter(self._kept))]
        self._kept[group, days] = (time.monotonic() + _KEPT_SECONDS, body)
        return body

    async def _read(self, uri: str, group: str, days: int) -> bytes:
        """Read the tables in another process, and end it if it takes too long."""
        arguments = (uri, group, str(days), str(self._clock()))
        try:
            environment = await asyncio.to_thread(environment_of, uri, lambda: self._settings)
        except UserError as error:
            raise Unanswerable(502, error.message) from None
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", _READER, *arguments),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environment,
        )
        try:
            async with asyncio.timeout(SECONDS):
                body, errors = await process.communicate()
        except TimeoutError:
            raise Unanswerable(502, f"it took longer than {SECONDS:.0f} s") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode != 0 or len(body) > _MOST_BYTES:
            raise Unanswerable(502, _line(errors) or f"its reader ended with {process.returncode}")
        return body


def _line(errors: bytes) -> str:
    """Return the last line of a program's output, which names the error."""
    lines = errors.decode(errors="replace").strip().splitlines()
    return lines[-1][:500] if lines else ""

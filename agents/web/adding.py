"""``/api/groups/GROUP/cost?add=N``: what more instances of an application would cost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
from aiohttp import web

from caughtup.agents.views.copies import present
from caughtup.agents.web.answer import count_asked, refused
from caughtup.models.errors import CaughtupError
from caughtup.models.state.cluster import ClusterState
from caughtup.models.what_if.adding import cost_of_adding
from caughtup.models.what_if.question import Group, group_of

#: More instances than these are not added at once.
MOST = 100
_JSON = "application/json"


class Adding:
    """Computes what more instances would cost when asked: in a thread, one after the other."""

    def __init__(self, state: ClusterState, clock: Callable[[], int]) -> None:
        self._state = state
        self._clock = clock
        self._one = asyncio.Lock()

    def add_routes(self, app: web.Application) -> None:
        """Add what it answers to an application."""
        app.router.add_get(r"/api/groups/{group:[\s\S]+}/cost", self._cost)

    async def _cost(self, request: web.Request) -> web.Response:
        """Answer 200 with both costs, 404 where there is no such application."""
        add = count_asked(request.query.get("add", "1"), MOST)
        if add is None:
            return refused(400, f"say how many with ?add=N, from 1 to {MOST}")
        async with self._one:
            group = group_of(self._state, request.match_info["group"], self._clock())
            if group is None:
                return refused(404, "this is no Kafka Streams application whose leader assigns")
            try:
                told = await asyncio.to_thread(_fields, group, add)
            except CaughtupError as error:
                return refused(404, error.message)
        return web.Response(body=msgspec.json.encode(told), content_type=_JSON)


def _fields(group: Group, add: int) -> dict[str, Any]:
    cost = cost_of_adding(group, add)
    return {
        "group": group.name,
        "generation": group.epoch,
        "add": cost.add,
        "instances": len(group.clients),
        "cost": present(**cost.recommended._asdict()),
        "kafka_cost": present(**cost.kafka._asdict()),
    }

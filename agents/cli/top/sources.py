"""Where ``caughtup top`` has what it shows from: a service, or looks of its own at the cluster.

Both give the page's state, and the lines of a group that is opened. Called by one thread only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, Protocol

import msgspec
from aiokafka.errors import KafkaError

from caughtup.agents.cli.reassignments.snapshot import ReassignmentView
from caughtup.agents.cli.service.client import ServiceClient
from caughtup.agents.cli.snapshot import ClusterLooks
from caughtup.agents.clock import now_ms
from caughtup.agents.errors import UserError
from caughtup.agents.kafka.config import aiokafka_config
from caughtup.agents.kafka.protocol.decoding import words
from caughtup.agents.probes.reassignments import ReassignmentObserver
from caughtup.agents.process.health import Health
from caughtup.agents.progress import NoProgress
from caughtup.agents.settings import Settings
from caughtup.agents.views.lag_lines import lag_lines
from caughtup.agents.web.page_state import page_steps
from caughtup.models.state.cluster import ClusterState


class Source(Protocol):
    """Who is asked. Every call raises UserError where there is no answer.

    ``where`` names it for people.
    """

    where: str

    def state(self) -> dict[str, Any]:
        """Return what the page shows, as it is now."""
        ...

    def lines(self, group: str) -> list[dict[str, Any]]:
        """Return the lines of a group; of what ``state`` saw, or newer."""
        ...


class FromService:
    """What a service shows on its page."""

    def __init__(self, service: ServiceClient) -> None:
        self._service = service
        self.where = service.url

    def state(self) -> dict[str, Any]:
        """Return what the page shows."""
        return self._service.state()

    def lines(self, group: str) -> list[dict[str, Any]]:
        """Return the lines of a group."""
        return list(self._service.lag([group]))


class FromLooks:
    """What the page would show of a cluster that was looked at from here, again and again."""

    def __init__(self, settings: Settings) -> None:
        """Raises UserError where the cluster can't be reached."""
        self._settings = settings
        self._looks = ClusterLooks(settings)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._observer: ReassignmentObserver | None = None
        self._state: ClusterState | None = None
        self.where = settings.bootstrap_servers

    def state(self) -> dict[str, Any]:
        """Look at the cluster, and return what the page would show of it."""
        self._state = self._looks.look(NoProgress())
        self._observe(ReassignmentView(self._state))
        health = Health(cluster_name=self._settings.cluster_name, ready=True, reader_lag=0)
        page = _done(page_steps(self._state, health, now_ms()))
        found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(page))
        return found

    def lines(self, group: str) -> list[dict[str, Any]]:
        """Return the lines of a group, of the last look."""
        return [] if self._state is None else list(lag_lines(self._state, group))

    def _observe(self, view: ReassignmentView) -> None:
        """Observe reassignments, by connections that stay from look to look."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        try:
            view.take(self._loop.run_until_complete(self._round()))
        except KafkaError as error:
            self._observer = None
            raise UserError(f"cannot look at reassignments: {words(error)}") from None
        view.assess(self._settings.reassignment_budget)

    async def _round(self) -> Any:
        if self._observer is None:
            self._observer = await ReassignmentObserver(
                aiokafka_config(self._settings)
            ).__aenter__()
        return await self._observer.observe()


def _done(steps: Iterator[None]) -> Any:
    """Go through all steps of making something, and return it."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            return done.value

"""Decide the generations of Connect groups again, one after another."""

from __future__ import annotations

import asyncio
import logging
from functools import partial

from mode import Service

from caughtup.agents.clock import now_ms
from caughtup.agents.process.health import Health
from caughtup.agents.topics.outbox import Outbox
from caughtup.agents.topics.publisher import TopicWriter
from caughtup.models.connect.watching.watch import Watch
from caughtup.models.connect_clusters.table import Undecided
from caughtup.models.records.keys import encode_group
from caughtup.models.records.movements import CONNECT
from caughtup.models.state.cluster import ClusterState

log = logging.getLogger(__name__)

#: Between two looks for generations to decide, with Connect groups and without.
_LOOK_SECONDS, _REST_SECONDS = 0.1, 0.5


def decide_due(state: ClusterState, at_ms: int) -> int:
    """Decide all generations that are due at a time (ms); return their number. Blocks."""
    decided = 0
    while due := list(state.connect.due(at_ms)):
        for group, undecided in due:
            with state.faults.isolated(
                "connect generations", group, at_ms, partial(_give_up, state, group)
            ):
                state.connect.settle(group, undecided.decide())
            decided += 1
    return decided


def _give_up(state: ClusterState, group: str, _: Exception) -> None:
    state.connect.give_up(group)


class ConnectWatcher(Service):
    """Decides each generation of each Connect group again, in a thread: large ones take long."""

    logger = logging.getLogger("mode.caughtup")  # for the messages of mode's Service

    def __init__(self, state: ClusterState, health: Health, movements: TopicWriter) -> None:
        super().__init__()
        self._state = state
        self._health = health
        self._movements = movements
        self._outbox = Outbox(state.set_aside)
        self._told = asyncio.Event()

    def is_idle(self) -> bool:
        """Return whether no event of a movement waits to be written."""
        return self._outbox.is_empty

    @Service.task
    async def _run(self) -> None:
        while not self.should_stop:
            if self._health.has_read:
                await self._decide()
            await self.sleep(_LOOK_SECONDS if self._state.connect.groups else _REST_SECONDS)

    async def _decide(self) -> None:
        while due := list(self._state.connect.due(now_ms())):
            for group, undecided in due:
                await self._decide_one(group, undecided)

    async def _decide_one(self, group: str, undecided: Undecided) -> None:
        state = self._state
        with state.faults.isolated(
            "connect generations", group, now_ms(), lambda _: state.connect.give_up(group)
        ):
            watch = await asyncio.to_thread(undecided.decide)
            if state.connect.settle(group, watch):
                log.info("%s", summary(watch))
                self._tell(undecided.before, watch)

    @Service.task
    async def _write(self) -> None:
        """Write the events of movements with retries; decisions do not wait for that."""
        while not self.should_stop:
            self._told.clear()
            await self._outbox.flush()
            await self.wait(self._told.wait())

    def _tell(self, before: Watch | None, after: Watch) -> None:
        """Queue the events of movements, if this is the active instance."""
        if not self._health.is_alive:
            return
        for event in self._state.connect.unpublished_movements(before, after):
            value = CONNECT.encode(event)
            self._outbox.put(self._movements, encode_group(event.group), value)
            self._told.set()


def summary(watch: Watch) -> str:
    """Describe a decided generation in one line, for the log."""
    generation, comparison = watch.generation, watch.comparison
    why = f" ({comparison.why})" if comparison.why else ""
    without = len(watch.unassigned.connectors) + len(watch.unassigned.tasks)
    return (
        f"{generation.group} generation {generation.generation}: {len(generation.workers)} workers, "
        f"{without} unassigned, leader {comparison.result}{why}"
    )

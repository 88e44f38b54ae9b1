"""Connect groups' generations, decided again one after another as they come."""

from __future__ import annotations

import asyncio
import logging

from mode import Service

from caughtup.agents.clock import now_ms
from caughtup.agents.process.health import Health
from caughtup.models.connect.watching.watch import Watch
from caughtup.models.connect_clusters.table import Undecided
from caughtup.models.state.cluster import ClusterState

log = logging.getLogger(__name__)

_LOOK_SECONDS = 0.1


def decide_due(state: ClusterState, at_ms: int) -> int:
    """Decide here and now all that is due by then (ms); return how many generations."""
    decided = 0
    while due := list(state.connect.due(at_ms)):
        for group, undecided in due:
            with state.faults.isolated(
                "connect generations", group, at_ms, lambda _, g=group: state.connect.give_up(g)
            ):
                state.connect.settle(group, undecided.decide())
            decided += 1
    return decided


class ConnectWatcher(Service):
    """Decides each generation of each Connect group again, on a thread: a large one takes long."""

    logger = logging.getLogger("mode.caughtup")  # its own comings and goings

    def __init__(self, state: ClusterState, health: Health) -> None:
        super().__init__()
        self._state = state
        self._health = health

    @Service.task
    async def _run(self) -> None:
        while not self.should_stop:
            if self._health.has_read:
                await self._decide()
            await self.sleep(_LOOK_SECONDS)

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


def summary(watch: Watch) -> str:
    """Say in one line what a generation came to."""
    generation, again = watch.generation, watch.again
    why = f" ({again.why})" if again.why else ""
    without = len(watch.unassigned.connectors) + len(watch.unassigned.tasks)
    return (
        f"{generation.group} generation {generation.generation}: {len(generation.workers)} workers, "
        f"{without} without one, leader {again.result}{why}"
    )

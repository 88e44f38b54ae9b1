"""Take and give up partitions of ``__consumer_offsets``, with all that is known of their groups."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from caughtup.agents.kept_channel import KeptChannel, Wakeup
from caughtup.agents.offsets.reader import OffsetsReader
from caughtup.agents.process.health import Health
from caughtup.agents.process.turns import done_in_turns
from caughtup.agents.recommendations.signing import Signer
from caughtup.agents.settings import Settings
from caughtup.agents.topics.publisher import Publisher
from caughtup.agents.topics.reader import TopicsReader
from caughtup.agents.topics.restoration import apply_published, read_published
from caughtup.models.records.topics import APPLICATION_STATES, CATCH_UP_RATES, TASK_POSITIONS
from caughtup.models.state.cluster import ClusterState
from caughtup.models.state.forgetting import drop_groups

log = logging.getLogger(__name__)

_PAUSE_SECONDS = 0.05
#: How long a hand-over waits for records that brokers do not take.
_PATIENCE_SECONDS = 5.0
#: The own topics with records about groups, of which an instance keeps those of its groups.
_OF_GROUPS = (APPLICATION_STATES, CATCH_UP_RATES, TASK_POSITIONS)


class HandOver:
    """Takes and gives up partitions, one call after another.

    ``turn`` is held by what decides generations. ``taken`` is called after partitions were taken.
    ``is_idle``: whether nothing waits to be published.
    """

    def __init__(
        self,
        settings: Settings,
        state: ClusterState,
        health: Health,
        log_reader: OffsetsReader,
        topics: TopicsReader,
        publisher: Publisher,
        signer: Signer,
        wakeups: KeptChannel[Wakeup],
        turn: asyncio.Lock,
        taken: Callable[[], object],
        is_idle: Callable[[], bool],
    ) -> None:
        self._settings = settings
        self._state = state
        self._health = health
        self._held = state.held
        self._log_reader = log_reader
        self._topics = topics
        self._publisher = publisher
        self._signer = signer
        self._wakeups = wakeups
        self._turn = turn
        self._taken = taken
        self._is_idle = is_idle
        #: The slot under which this instance writes.
        self._slot: int | None = None

    async def take(self, partitions: frozenset[int], slot: int) -> None:
        """Read partitions to their ends, and what was published of their groups. Raises UserError.

        The instance that had them before has given them up, or is fenced.
        """
        await self._topics.caught_up.wait()
        await self._begin(slot)
        held, was_cluster_wide = self._held, self._health.cluster_wide()
        if not self._health.ready:
            self._log_reader.begin(held.add(partitions))
            await self._restore(held.has_group)
            while not self._health.ready:  # noqa: ASYNC110 - nothing tells when it is so
                await asyncio.sleep(_PAUSE_SECONDS)
        else:
            of = self._of(partitions)
            published = await read_published(self._settings, self._state, self._signer.forgeries())
            changes, positions = await self._log_reader.read(partitions)
            # Between two turns of what decides, which would find movements of unknown groups.
            async with self._turn:
                held.add(partitions)
                await apply_published(self._state, published, of)
                await self._log_reader.apply(changes)
                self._state.applications.log_read_to_end(of)
            self._log_reader.follow(positions)
        if self._health.cluster_wide() and not was_cluster_wide:
            # Reassignments that ended before were counted by the instance that watched them.
            self._state.reassignments.ended_counts.clear()
        for topic in _OF_GROUPS:
            self._topics.read_again(topic)
        self._taken()
        await self._wakeups.put(Wakeup.GROUPS)

    async def take_again(self, partitions: frozenset[int], slot: int) -> None:
        """Read back what was published of groups while they may have been another's.

        Their log was read all the time. Raises UserError.
        """
        self._slot = None
        await self._begin(slot)
        async with self._turn:
            await self._restore(self._of(partitions))
        await self._wakeups.put(Wakeup.GROUPS)

    async def give_up(self, partitions: frozenset[int]) -> None:
        """Forget partitions' groups, and return once nothing more is written about them."""
        self._held.remove(partitions)
        await self._log_reader.stop_reading(partitions)
        async with self._turn:  # what was decided before is written
            await done_in_turns(drop_groups(self._state, self._of(partitions)))
        waiting = 0.0
        while not self._is_idle() and waiting < _PATIENCE_SECONDS:
            await asyncio.sleep(_PAUSE_SECONDS)
            waiting += _PAUSE_SECONDS
        await self._publisher.flush()

    async def _begin(self, slot: int) -> None:
        if slot != self._slot:
            await self._publisher.fence.begin(slot)
            self._slot = slot

    async def _restore(self, of: Callable[[str], bool]) -> None:
        published = await read_published(self._settings, self._state, self._signer.forgeries())
        await apply_published(self._state, published, of)
        self._state.applications.log_read_to_end(of)

    def _of(self, partitions: frozenset[int]) -> Callable[[str], bool]:
        """Return a test for the groups whose records are in these partitions."""
        return lambda group: self._held.partition_of(group) in partitions

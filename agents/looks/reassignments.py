"""Observe reassignments once, or apply what a service observed, and describe them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from aiokafka.errors import KafkaError

from caughtup.agents.clock import now_ms
from caughtup.agents.errors import UserError
from caughtup.agents.kafka.config import aiokafka_config
from caughtup.agents.kafka.protocol.decoding import explain_failure
from caughtup.agents.probes.reassignments import ReassignmentObserver, ReassignmentRound
from caughtup.agents.reassignments.agent import apply_record as apply_reassignment
from caughtup.agents.settings import Settings
from caughtup.models.ids import TopicPartition
from caughtup.models.records.fields import changed
from caughtup.models.records.reassignment_lines import Line, Reassignment
from caughtup.models.state.cluster import ClusterState

#: For this long (ms) after the service's last observation, its observations count as the
#: reassignment's past; later, it may have ended, and another one of the same partition begun.
_PAST_MS = 120_000


class ReassignmentView:
    """Applies rounds of observations, and describes each reassignment."""

    def __init__(self, state: ClusterState) -> None:
        """``state`` gets the observations."""
        self._state = state
        self._aged: frozenset[TopicPartition] = frozenset()

    def apply_records(
        self, records: Iterable[tuple[bytes | None, bytes | None]], at_ms: int | None = None
    ) -> None:
        """Apply the records of caughtup-reassignments, as a service wrote them."""
        for key, value in records:
            apply_reassignment(self._state, key, value)
        tracker = self._state.reassignments
        now = now_ms() if at_ms is None else at_ms
        for partition, tracked in list(tracker.ongoing.items()):
            if now - tracked.latest.as_of_ms > _PAST_MS:
                del tracker.ongoing[partition]
        tracker.ended.clear()
        self._aged = frozenset(tracker.ongoing)

    def take(self, found: ReassignmentRound) -> None:
        """Apply a round's observations; if it could list, a reassignment that it doesn't list has ended."""
        tracker = self._state.reassignments
        tracker.apply_cluster(found.cluster)
        if not found.listed:
            return
        for observation in found.ongoing:
            tracker.apply(observation)
        for partition in tracker.ongoing.keys() - {
            observation.topic_partition for observation in found.ongoing
        }:
            del tracker.ongoing[partition]
        self._aged &= tracker.ongoing.keys()

    def assess(self, budget_seconds: float | None = None) -> None:
        """Assess every reassignment, as of now."""
        watch = self._state.reassignment_watch
        for _ in watch.assess(self._state.reassignments, now_ms(), budget_seconds):
            pass

    def lines(self) -> list[Line]:
        """Describe all reassignments, those that need help first, and orphaned throttles.

        A command that never saw a reassignment before does not know since when it has been ongoing.
        """
        found = self._state.reassignment_watch.lines(self._state.reassignments, now_ms())
        return [
            changed(line, age_seconds=None, idle_seconds=None)
            if isinstance(line, Reassignment) and line.topic_partition not in self._aged
            else line
            for line in found
        ]


class ReassignmentObservations:
    """Observes reassignments from code that does not await: its event loop runs during a round."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._runner = asyncio.Runner()
        self._observer: ReassignmentObserver | None = None

    def observe(self, state: ClusterState) -> None:
        """Observe once, and assess. Raises UserError; the next round connects again then."""
        view = ReassignmentView(state)
        try:
            view.take(self._runner.run(self._round()))
        except KafkaError as error:
            raise UserError(f"cannot look at reassignments: {explain_failure(error)}") from None
        view.assess(self._settings.reassignment_budget)

    def close(self) -> None:
        """Close the connections."""
        self._runner.run(self._disconnect())
        self._runner.close()

    async def _round(self) -> ReassignmentRound:
        try:
            if self._observer is None:
                self._observer = ReassignmentObserver(aiokafka_config(self._settings))
                await self._observer.__aenter__()
            return await self._observer.observe()
        except KafkaError:
            await self._disconnect()
            raise

    async def _disconnect(self) -> None:
        observer, self._observer = self._observer, None
        if observer is not None:
            await observer.__aexit__(None, None, None)

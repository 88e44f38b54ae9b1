"""The probe of open transactions: who holds back the last stable offsets that stand still."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from aiokafka.errors import KafkaError
from mode import Service

from caughtup.agents.clock import now_ms
from caughtup.agents.election.agent import until_active
from caughtup.agents.kafka.config import aiokafka_config
from caughtup.agents.kafka.protocol.client import ClusterProtocol
from caughtup.agents.kafka.protocol.decoding import explain_failure
from caughtup.agents.probes.transactions import (
    MOST_PARTITIONS,
    TIMEOUT_SECONDS,
    TransactionObserver,
)
from caughtup.agents.process.health import Health
from caughtup.agents.settings import Settings
from caughtup.models.ids import TopicPartition
from caughtup.models.lag.assessment import HELD_MS
from caughtup.models.offsets import EndOffsets
from caughtup.models.recent.happenings import Happening
from caughtup.models.records.transactions import OpenTransaction
from caughtup.models.state.cluster import ClusterState
from caughtup.models.transactions.table import Missing, held_partitions

log = logging.getLogger(__name__)

PROBE = "transactions"
#: The pause between two rounds, in seconds.
_INTERVAL_SECONDS = 5.0


class TransactionsProbe(Service):
    """Observes the transactions that hold back last stable offsets, as long as any stands still.

    Otherwise it asks nothing.
    """

    logger = logging.getLogger("mode.caughtup")  # for the messages of mode's Service

    def __init__(self, settings: Settings, health: Health, state: ClusterState) -> None:
        super().__init__()
        self._config = aiokafka_config(settings)
        self._health = health
        self._state = state
        self._missing: set[str] = set()

    @Service.task
    async def _run(self) -> None:
        await until_active(self, self._health)
        while not self.should_stop:
            with self._state.faults.isolated(PROBE, "a round", now_ms(), self._failed):
                await self._observe()
            await self.sleep(_INTERVAL_SECONDS)

    async def _observe(self) -> None:
        """Observe in rounds until nothing stands still any more, or a round fails."""
        ends, left_out = self._held()
        try:
            if ends:
                async with ClusterProtocol(self._config, TIMEOUT_SECONDS) as protocol:
                    observer = TransactionObserver(protocol)
                    while ends and not self.should_stop:
                        await self._round(observer, ends, left_out)
                        await self.sleep(_INTERVAL_SECONDS)
                        ends, left_out = self._held()
        except (KafkaError, OSError, TimeoutError) as error:
            self._failed(error)
            return
        if not ends:
            now = now_ms()
            _, ended = self._state.transactions.apply((), now)
            self._note("no longer hangs", ended)
            self._health.succeeded(PROBE, now)

    def _held(self) -> tuple[dict[TopicPartition, EndOffsets], int]:
        return held_partitions(self._state.ends, now_ms() - HELD_MS, MOST_PARTITIONS)

    async def _round(
        self,
        observer: TransactionObserver,
        ends: Mapping[TopicPartition, EndOffsets],
        left_out: int,
    ) -> None:
        found, missing = await observer.observe(ends)
        left_out += missing.partitions
        known = self._state.transactions
        began, ended = known.apply(found, now_ms(), Missing(missing.reasons, left_out))
        self._note("hangs: no coordinator will end it", began)
        self._note("no longer hangs", ended)
        for reason in sorted(set(missing.reasons) - self._missing):
            log.warning("observing transactions: not known: %s", reason)
        self._missing = set(missing.reasons)
        self._health.succeeded(PROBE, now_ms())

    def _note(self, what: str, transactions: Iterable[OpenTransaction]) -> None:
        """Add events about transactions that hang to those that the page shows."""
        for one in transactions:
            partitions = ", ".join(str(held.topic_partition) for held in one.partitions[:5])
            happening = Happening(
                now_ms(), "transaction", f"the transaction of {one.name} {what}", partitions
            )
            self._state.recent.happenings.note(happening)

    def _failed(self, error: Exception) -> None:
        if self._health.failed(PROBE):
            reason = explain_failure(error) if isinstance(error, KafkaError) else str(error)
            log.warning("observing transactions: %s", reason or type(error).__name__)

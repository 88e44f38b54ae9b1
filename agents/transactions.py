"""The probe of open transactions: who holds back the last stable offsets that stand still."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping

from aiokafka.errors import KafkaError
from mode import Service

from caughtup.agents.clock import now_ms
from caughtup.agents.election.agent import until_active
from caughtup.agents.errors import UserError
from caughtup.agents.kafka.config import aiokafka_config
from caughtup.agents.kafka.protocol.client import ClusterProtocol
from caughtup.agents.kafka.protocol.decoding import explain_failure
from caughtup.agents.kafka.recent_names import RecentNames
from caughtup.agents.probes.transactions import (
    MOST_PARTITIONS,
    TIMEOUT_SECONDS,
    TransactionObserver,
)
from caughtup.agents.process.health import Health
from caughtup.agents.progress import Progress
from caughtup.agents.settings import Settings
from caughtup.agents.topics.applying import isolated_record
from caughtup.agents.topics.publisher import TopicWriter
from caughtup.agents.topics.read_to_end import read_service_topic
from caughtup.models.ids import TopicPartition
from caughtup.models.lag.lagging import HELD_MS
from caughtup.models.offsets import EndOffsets
from caughtup.models.recent.happenings import Happening
from caughtup.models.records.fields import changed
from caughtup.models.records.topics import TRANSACTIONS
from caughtup.models.records.transactions import (
    FORMAT,
    OpenTransaction,
    TransactionRecord,
    read_transaction,
)
from caughtup.models.state.cluster import ClusterState
from caughtup.models.transactions.table import Missing, held_partitions

log = logging.getLogger(__name__)

PROBE = "transactions"
#: The pause between two rounds, in seconds.
_INTERVAL_SECONDS = 5.0
#: How often a transaction is written of which only what lies behind it has changed.
_UNCHANGED_MS = 60_000
#: A record that is not written again for this time is of an instance that is gone.
_STALE_SECONDS = 150.0


class TransactionsProbe(Service):
    """Observes the transactions that hold back last stable offsets, as long as any stands still.

    Otherwise it asks nothing. Commits of open transactions hold back ``__consumer_offsets``, too:
    ``held_offsets`` returns its partitions with such commits. It writes them to caughtup-transactions: one that changed at once,
    the others each minute, and a tombstone once a transaction no longer holds anything back.
    """

    logger = logging.getLogger("mode.caughtup")  # for the messages of mode's Service

    def __init__(
        self,
        settings: Settings,
        health: Health,
        state: ClusterState,
        topic: TopicWriter,
        held_offsets: Callable[[], Mapping[TopicPartition, EndOffsets]],
    ) -> None:
        super().__init__()
        self._settings = settings
        self._config = aiokafka_config(settings)
        self._topic = topic
        self._held_offsets = held_offsets
        #: Those of the last round.
        self._held_before: Mapping[TopicPartition, EndOffsets] = {}
        #: By producer: the record that was read back or written last.
        self._written: dict[tuple[int, int], TransactionRecord] = {}
        self._health = health
        self._state = state
        self._missing: set[str] = set()
        self._refused = RecentNames()

    @Service.task
    async def _run(self) -> None:
        await until_active(self, self._health)
        if not self._state.held.are_shared:  # others write of their groups' transactions
            await self._read_back()
        while not self.should_stop:
            with self._state.faults.isolated(PROBE, "a round", now_ms(), self._failed):
                await self._observe()
            await self.sleep(_INTERVAL_SECONDS)

    def write_again(self) -> None:
        """Write all transactions again in the next round, since the topic was recreated."""
        self._written.clear()

    @Service.task
    async def _remove_stale(self) -> None:
        """Remove what instances wrote that are gone, if instances share the groups; one does."""
        before: Mapping[tuple[int, int], int] = {}
        while not self.should_stop:
            await self.sleep(_STALE_SECONDS)
            if not self._state.held.are_shared or not self._health.cluster_wide():
                before = {}
                continue
            with self._state.faults.isolated(PROBE, "stale records", now_ms(), self._failed):
                before = await self.remove_unchanged(before)

    async def remove_unchanged(
        self, before: Mapping[tuple[int, int], int]
    ) -> Mapping[tuple[int, int], int]:
        """Remove the records that are as old as before, by producer (ms); return their times now.

        Raises UserError when the topic cannot be read.
        """
        found = await asyncio.to_thread(self._read)
        for producer in sorted(found.keys() - self._written.keys()):
            if found[producer].as_of_ms == before.get(producer):
                await self._topic.send(key=found[producer].key, value=None)
        return {producer: record.as_of_ms for producer, record in found.items()}

    async def _read_back(self) -> None:
        """Read back what was written before a restart: some transactions may have ended since."""
        while not self.should_stop:
            try:
                self._written = await asyncio.to_thread(self._read)
                return
            except UserError as error:
                self._failed(error)
                await self.sleep(_INTERVAL_SECONDS)

    def _read(self) -> dict[tuple[int, int], TransactionRecord]:
        written: dict[tuple[int, int], TransactionRecord] = {}
        for key, value in read_service_topic(self._settings, self._state, TRANSACTIONS, Progress()):
            restore_written(written, self._state, key, value)
        return written

    async def _write(self) -> None:
        """Write the transactions that changed, and tombstones of those that are over."""
        now = now_ms()
        present: set[tuple[int, int]] = set()
        for one in self._state.open_transactions(now):
            record = TransactionRecord(FORMAT.schema, now, changed(one, advice=""))
            present.add(record.producer)
            if _is_news(record, self._written.get(record.producer)):
                await self._topic.send(key=record.key, value=FORMAT.encode(record))
                self._written[record.producer] = record
        for producer in sorted(self._written.keys() - present):
            await self._topic.send(key=self._written.pop(producer).key, value=None)

    async def _observe(self) -> None:
        """Observe in rounds until nothing stands still any more, or a round fails."""
        ends, left_out = self._held()
        try:
            if ends:
                async with ClusterProtocol(self._config, TIMEOUT_SECONDS) as protocol:
                    observer = TransactionObserver(protocol, self._refused)
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
            await self._write()
            self._health.succeeded(PROBE, now)

    def _held(self) -> tuple[dict[TopicPartition, EndOffsets], int]:
        """Return the partitions whose last stable offset stands still, and how many are left out.

        Of ``__consumer_offsets``, those whose first commit of an open transaction is the same as in
        the last round. If instances share the groups, those of the topics of this one's.
        """
        wants = self._state.wanted_topics() if self._state.held.are_shared else None
        since_ms = now_ms() - HELD_MS
        held, left_out = held_partitions(self._state.ends, since_ms, MOST_PARTITIONS, wants)
        before, self._held_before = self._held_before, self._held_offsets()
        for partition, ends in self._held_before.items():
            last = before.get(partition)
            if last is not None and last.last_stable_offset == ends.last_stable_offset:
                held[partition] = ends
        return held, left_out

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
        await self._write()
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


def restore_written(
    written: dict[tuple[int, int], TransactionRecord],
    state: ClusterState,
    key: bytes | None,
    value: bytes | None,
) -> None:
    """Apply a record of caughtup-transactions to what was written, by producer."""
    with isolated_record(state, TRANSACTIONS, key):
        producer, record = read_transaction(key, value)
        written.pop(producer, None)
        if record is not None:
            written[producer] = record


def _is_news(record: TransactionRecord, written: TransactionRecord | None) -> bool:
    """Return whether a transaction is to be written: it is new, has changed, or a minute is over."""
    if written is None or record.as_of_ms - written.as_of_ms >= _UNCHANGED_MS:
        return True
    before = written.transaction
    behind = {"records_behind": before.records_behind, "last_write_ms": before.last_write_ms}
    return changed(record.transaction, **behind) != before

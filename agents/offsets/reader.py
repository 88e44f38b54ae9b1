"""Reads ``__consumer_offsets``: first its past, in large answers, then what comes, as it comes."""

from __future__ import annotations

import gc
import logging
from collections.abc import Iterator
from contextlib import contextmanager

from aiokafka.errors import KafkaError
from mode import Service

from caughtup.agents.clock import now_ms
from caughtup.agents.kafka.offset_log import OffsetLog
from caughtup.agents.kafka.partition_leaders import LogPartition
from caughtup.agents.kept_channel import KeptChannel
from caughtup.agents.offsets.agent import CaughtUp
from caughtup.agents.offsets.polls import Changes, decode_live, decode_past
from caughtup.agents.offsets.rate_limit import RateLimit
from caughtup.agents.process.health import Health
from caughtup.agents.process.pulses import OFFSETS
from caughtup.agents.settings import Settings
from caughtup.models.reading import ReadingProgress
from caughtup.models.wire.record_keys import CONSUMER_OFFSETS

log = logging.getLogger(__name__)

_RETRY_SECONDS = 1.0
#: Failures that the log tells of; the metrics count them all.
_FAILURES_A_MINUTE = 10
#: How often the log tells of a long start.
_SAY_MS = 5_000
#: Brokers that answered so lately would have sent what there is to read.
_ANSWERS_MS = 5_000
#: More objects than are new at once while a log is read: what is decoded is dropped batch by batch.
_OBJECTS = 1_000_000


@contextmanager
def few_collections() -> Iterator[None]:
    """Read a log with hardly a search for garbage cycles meanwhile.

    Usually Python searches after every 700 new objects, and finds none.
    """
    before = gc.get_threshold()
    gc.set_threshold(_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def stands_still(behind: int, answered_ms: int | None, now: int) -> bool:
    """Return whether there is something to read although the brokers answer (ms)."""
    return behind > 0 and answered_ms is not None and now - answered_ms < _ANSWERS_MS


class OffsetsReader(Service):
    """Reads all of ``__consumer_offsets`` and puts what changed on a channel.

    Threads decode; this fetches, and waits for the agent when that has enough.
    """

    logger = logging.getLogger("mode.caughtup")  # its own comings and goings

    def __init__(self, settings: Settings, health: Health, changes: KeptChannel) -> None:
        super().__init__()
        self._settings = settings
        self._health = health
        self._changes = changes
        self._announced = False
        self._failures = RateLimit(_FAILURES_A_MINUTE)
        self._partitions: dict[int, LogPartition] = {}
        self._behind = 0
        self._answered_ms: int | None = None

    @Service.task
    async def _run(self) -> None:
        try:
            while not self.should_stop:
                try:
                    async with OffsetLog(
                        self._settings, self._partitions, self._failed, self._turned
                    ) as opened:
                        await self._read(opened)
                except KafkaError as error:
                    self._failed(str(error))
                    self._health.pulses.beat(OFFSETS)
                    await self.sleep(_RETRY_SECONDS)
        finally:
            self._health.pulses.rest(OFFSETS)

    async def _read(self, opened: OffsetLog) -> None:
        while not await opened.open():  # there is no such topic yet
            self._health.pulses.beat(OFFSETS)
            await self._announce()
            await self.sleep(_RETRY_SECONDS)
            if self.should_stop:
                return
        if not self._announced:
            await self._read_past(opened)

        async def take(changes: list[Changes], records: int) -> None:
            await self._take(changes, records, opened.behind(), opened.answered_ms())

        if not self.should_stop:
            await self.wait(opened.follow(decode_live, take))

    async def _read_past(self, opened: OffsetLog) -> None:
        """Read what was there at the start, and announce when that is done."""
        total = opened.left_of_start()
        progress = ReadingProgress(total, now_ms())
        say_ms = progress.started_ms + _SAY_MS
        count = len(opened.partitions)
        log.info("reading %d partitions of %s, %d offsets", count, CONSUMER_OFFSETS, total)
        self._health.polled(None, total)

        async def take(changes: list[Changes], records: int) -> None:
            nonlocal say_ms
            progress.behind = opened.left_of_start()
            await self._take(changes, records, progress.behind, opened.answered_ms())
            progress.records += records
            if now_ms() >= say_ms and progress.behind:
                say_ms += _SAY_MS
                log.info("reading %s: %s", CONSUMER_OFFSETS, progress.line(now_ms()))

        with few_collections():
            await self.wait(opened.read_past(decode_past, take))
        if not self.should_stop:
            await self._announce()
            log.info("read %s: %s", CONSUMER_OFFSETS, progress.speed(now_ms()))

    async def _take(
        self, changes: list[Changes], records: int, behind: int, answered_ms: int | None
    ) -> None:
        for change in changes:
            await self._changes.put(change)
        self._health.polled(answered_ms, behind)
        self._behind, self._answered_ms = behind, answered_ms
        if records:
            self._health.pulses.beat(OFFSETS)

    def _turned(self) -> None:
        """Beat while there is nothing to read, or no broker that answers."""
        if not stands_still(self._behind, self._answered_ms, now_ms()):
            self._health.pulses.beat(OFFSETS)

    async def _announce(self) -> None:
        if not self._announced:
            self._announced = True
            await self._changes.put(CaughtUp())

    def _failed(self, why: str) -> None:
        self._health.failed("offsets")
        if not self._failures.is_exceeded(now_ms()):
            log.warning("reading %s: %s; going on", CONSUMER_OFFSETS, why)

"""Reads ``__consumer_offsets``: first its past, in large answers, then what comes, poll by poll."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import faust
from confluent_kafka import KafkaError, KafkaException
from mode import Service

from caughtup.agents.clock import now_ms
from caughtup.agents.kafka.offset_log import OffsetLog, few_collections
from caughtup.agents.kafka.past_log import PastLog
from caughtup.agents.offsets.agent import CaughtUp
from caughtup.agents.offsets.polls import Changes, PolledChanges, decode_past, read_live, read_past
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


class OffsetsReader(Service):
    """Reads all of ``__consumer_offsets``, read_committed, and puts what changed on a channel.

    A thread consumes and decodes; this only asks it for the next batches, and waits for the
    agent when that has enough of them.
    """

    logger = logging.getLogger("mode.caughtup")  # its own comings and goings

    def __init__(self, settings: Settings, health: Health, changes: faust.ChannelT) -> None:
        super().__init__()
        self._settings = settings
        self._health = health
        self._changes = changes
        self._announced = False
        self._failures = RateLimit(_FAILURES_A_MINUTE)

    @Service.task
    async def _run(self) -> None:
        thread = ThreadPoolExecutor(1, "offsets")
        try:
            while not self.should_stop:
                try:
                    await self._read(partial(asyncio.get_running_loop().run_in_executor, thread))
                except KafkaException as error:
                    self._failed(error.args[0], "trying again")
                    self._health.pulses.beat(OFFSETS)
                    await self.sleep(_RETRY_SECONDS)
        finally:
            self._health.pulses.rest(OFFSETS)
            thread.shutdown(wait=False)

    async def _read(self, in_thread: Callable[..., Awaitable[Any]]) -> None:
        offset_log = await in_thread(OffsetLog, self._settings)
        try:
            while not await in_thread(offset_log.open):  # there is no such topic yet
                self._health.pulses.beat(OFFSETS)
                await self._announce()
                await self.sleep(_RETRY_SECONDS)
                if self.should_stop:
                    return
            if self._announced:
                await in_thread(offset_log.start)
            else:
                await self._read_past(offset_log, in_thread)
            while not self.should_stop:
                await self._take(await in_thread(read_live, offset_log))
        finally:
            await in_thread(offset_log.close)

    async def _read_past(
        self, offset_log: OffsetLog, in_thread: Callable[..., Awaitable[Any]]
    ) -> None:
        """Read what was there at the start, and announce when that is done."""
        ends, starts = offset_log.ends_at_start, offset_log.start_offsets
        total = sum(ends.values()) - sum(starts.values())
        log.info("reading %d partitions of %s, %d offsets", len(ends), CONSUMER_OFFSETS, total)
        progress = ReadingProgress(total, now_ms())
        say_ms = progress.started_ms + _SAY_MS
        past = PastLog(self._settings, starts, ends)

        async def take(found: PolledChanges) -> None:
            nonlocal say_ms
            await self._take(found)
            progress.records += found.records
            progress.behind = found.behind
            if now_ms() >= say_ms and progress.behind:
                say_ms += _SAY_MS
                log.info("reading %s: %s", CONSUMER_OFFSETS, progress.line(now_ms()))

        async def take_fetched(changes: Changes, records: int) -> None:
            await take(PolledChanges([changes], records, [], past.left(), None))

        with few_collections():
            await past.read(decode_past, take_fetched)
            await in_thread(offset_log.start, past.positions)
            progress.behind = past.left()
            self._health.polled(None, progress.behind)
            while not self.should_stop and progress.behind:
                await take(await in_thread(read_past, offset_log))
        if not progress.behind:
            await self._announce()
            log.info("read %s: %s", CONSUMER_OFFSETS, progress.speed(now_ms()))

    async def _take(self, found: PolledChanges) -> None:
        for error in found.errors:
            self._failed(error, "going on")
        for change in found.changes:
            await self._changes.put(change)
        self._health.polled(found.answered_ms, found.behind)
        if not found.stands_still(now_ms()):
            self._health.pulses.beat(OFFSETS)

    async def _announce(self) -> None:
        if not self._announced:
            self._announced = True
            await self._changes.put(CaughtUp())

    def _failed(self, error: KafkaError, what_next: str) -> None:
        self._health.failed("offsets")
        if not self._failures.is_exceeded(now_ms()):
            log.warning("reading %s: %s; %s", CONSUMER_OFFSETS, error.str(), what_next)

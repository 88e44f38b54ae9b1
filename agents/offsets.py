"""``__consumer_offsets`` → batches of changes → the cluster's state.

The firehose doesn't pass an agent record by record: whole polls are decoded at once, and the
agent gets what changed.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import faust
from confluent_kafka import KafkaError, KafkaException
from mode import Service

from caughtup.agents.clock import now_ms
from caughtup.agents.kafka.offset_log import LIVE_RECORDS, OffsetLog, few_collections
from caughtup.agents.process.health import Health
from caughtup.agents.process.pulses import OFFSETS
from caughtup.agents.process.wakeups import Wakeup
from caughtup.agents.settings import Settings
from caughtup.models.groups.classic import ReadGroup, read_classic_groups
from caughtup.models.groups.generation_cuts import split_generations
from caughtup.models.polls.batch import Batch, decode_batch, decode_columns
from caughtup.models.reading import ReadingProgress
from caughtup.models.state.cluster import ClusterState
from caughtup.models.wire.record_keys import CONSUMER_OFFSETS

log = logging.getLogger(__name__)

#: A thread that waits for records ends this much later than it is told to.
_POLL_SECONDS = 0.2
_RETRY_SECONDS = 1.0
#: Unreadable records that the log tells of; the metrics count them all.
_SAMPLES_A_MINUTE = 10
#: Brokers that answered so lately would have sent what there is to read.
_ANSWERS_MS = 5_000
#: How often the log tells of a long start.
_SAY_MS = 5_000


class RateLimit:
    """Allows so many log lines a minute."""

    def __init__(self, a_minute: int) -> None:
        self._a_minute = a_minute
        self._minute = -1
        self._count = 0

    def is_exceeded(self, now: int) -> bool:
        """Count one more at this moment (ms), and return whether it is too many."""
        minute = now // 60_000
        if minute != self._minute:
            self._minute, self._count = minute, 0
        self._count += 1
        return self._count > self._a_minute


class Changes(NamedTuple):
    """What some records changed, their classic groups read.

    ``past``: they are from before the service began, and there may be more of those.
    """

    batch: Batch
    groups: Mapping[str, ReadGroup]
    past: bool = False

    @classmethod
    def of(cls, batch: Batch, *, past: bool = False) -> Changes:
        """Read the classic groups of a batch, which takes long for large ones."""
        return cls(batch, read_classic_groups(batch.groups), past)


class CaughtUp:
    """Goes down the channel behind the last batch that was there at the start."""


def offsets(
    app: faust.App,
    changes: faust.ChannelT,
    state: ClusterState,
    health: Health,
    wakeups: faust.ChannelT,
) -> None:
    """Register the offsets agent: a batch of changes in, the state updated."""
    unreadable = RateLimit(_SAMPLES_A_MINUTE)

    @app.agent(changes, name="offsets")
    async def apply(batches: faust.StreamT[Changes | CaughtUp]) -> None:
        async for change in batches:
            if isinstance(change, CaughtUp):
                state.applications.log_read_to_end()
                # What a long log left is here to stay: no garbage collection has to look through it.
                gc.freeze()
                health.ready = True
                await wakeups.put(Wakeup.GROUPS)
                log.info("caught up with %s", CONSUMER_OFFSETS)
                continue
            batch = change.batch
            state.apply_batch(batch, now_ms(), change.groups, past=change.past)
            if batch.groups and health.standby is not None:
                state.applications.log_read_to_end()  # the active instance decides them
            for sample in batch.samples:
                if not unreadable.is_exceeded(now_ms()):
                    log.warning("skipped a record of %s: %s", CONSUMER_OFFSETS, sample)
            if batch.groups:
                await wakeups.put(Wakeup.GROUPS)


class PolledChanges(NamedTuple):
    """What a poll brought: the changes, the number of records, errors, and offsets yet to be read.

    ``answered_ms`` is when the brokers last answered for all partitions.
    """

    changes: list[Changes]
    records: int
    errors: list[KafkaError]
    behind: int
    answered_ms: int | None

    def stands_still(self, now: int) -> bool:
        """Return whether records are left to read and none come, though the brokers answer (ms)."""
        answers = self.answered_ms is not None and now - self.answered_ms < _ANSWERS_MS
        return answers and self.behind > 0 and not self.records


def _read_at_start(offset_log: OffsetLog) -> PolledChanges:
    keys, values, errors = offset_log.poll(_POLL_SECONDS)
    changes = [Changes.of(decode_columns(keys, values), past=True)] if keys else []
    return PolledChanges(
        changes, len(keys), errors, offset_log.left_of_start(), offset_log.answered_ms()
    )


def _read(offset_log: OffsetLog) -> PolledChanges:
    keys, values, errors = offset_log.poll(_POLL_SECONDS, LIVE_RECORDS)
    chunks = split_generations(list(zip(keys, values, strict=True)))
    return PolledChanges(
        [Changes.of(decode_batch(chunk)) for chunk in chunks],
        len(keys),
        errors,
        offset_log.behind(),
        offset_log.answered_ms(),
    )


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
        self._failures = RateLimit(_SAMPLES_A_MINUTE)

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
            if not self._announced:
                await self._read_past(offset_log, in_thread)
            while not self.should_stop:
                await self._take(await in_thread(_read, offset_log))
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
        with few_collections():
            while not self.should_stop and progress.behind:
                found = await in_thread(_read_at_start, offset_log)
                await self._take(found)
                progress.records += found.records
                progress.behind = found.behind
                if now_ms() >= say_ms and progress.behind:
                    say_ms += _SAY_MS
                    log.info("reading %s: %s", CONSUMER_OFFSETS, progress.line(now_ms()))
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

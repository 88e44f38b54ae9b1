"""Read ``__consumer_offsets``: first to its end, in large answers, then new records."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Iterator
from contextlib import contextmanager

from aiokafka.errors import KafkaError
from mode import Service

from caughtup.agents.clock import now_ms
from caughtup.agents.errors import UserError
from caughtup.agents.kafka.offset_log import OffsetLog
from caughtup.agents.kafka.partition_leaders import LogPartition, held_offsets
from caughtup.agents.kept_channel import KeptChannel
from caughtup.agents.offsets.agent import (
    CaughtUp,
    Changes,
    ChannelMark,
    decode_live,
    decode_past,
)
from caughtup.agents.process.fault_log import RateLimit
from caughtup.agents.process.health import OFFSETS, Health
from caughtup.agents.settings import Settings
from caughtup.models.ids import TopicPartition
from caughtup.models.offsets import EndOffsets
from caughtup.models.reading import ReadingProgress
from caughtup.models.wire.record_keys import CONSUMER_OFFSETS

log = logging.getLogger(__name__)

_RETRY_SECONDS = 1.0
_SHARE_SECONDS, _STOP_SECONDS = 0.05, 0.01
#: Log lines about failures; the metrics count all of them.
_FAILURES_A_MINUTE = 10
#: How often the progress of a long start is logged.
_LOG_EVERY_MS = 5_000
#: Brokers whose last answer is younger than this count as answering.
_ANSWERS_MS = 5_000
#: More than the objects of the batches that exist at the same time while a log is read.
_OBJECTS = 1_000_000


@contextmanager
def rare_collections() -> Iterator[None]:
    """Have Python search for garbage cycles rarely inside the context.

    By default it searches after every 700 new objects; decoding makes no cycles.
    """
    before = gc.get_threshold()
    gc.set_threshold(_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def is_stuck(behind: int, answered_ms: int | None, now: int) -> bool:
    """Return whether records are unread although the brokers answered lately (times in ms)."""
    return behind > 0 and answered_ms is not None and now - answered_ms < _ANSWERS_MS


class OffsetsReader(Service):
    """Reads all of ``__consumer_offsets`` and puts batches of changes on a channel.

    It fetches on the event loop and decodes in threads; it waits while the channel is full. With
    ``shared``, it reads the partitions that this instance was given: first after ``begin``.
    """

    logger = logging.getLogger("mode.caughtup")  # for the messages of mode's Service

    def __init__(
        self,
        settings: Settings,
        health: Health,
        changes: KeptChannel[Changes | CaughtUp | ChannelMark],
        *,
        shared: bool = False,
    ) -> None:
        super().__init__()
        self._settings = settings
        self._health = health
        self._changes = changes
        self._announced = False
        self._failures = RateLimit(_FAILURES_A_MINUTE)
        #: The partitions that are read; None: all.
        self._followed: set[int] | None = set() if shared else None
        #: How far each partition of ``__consumer_offsets`` is read, and its leader.
        self.partitions: dict[int, LogPartition] = {}
        self._behind = 0
        self._answered_ms: int | None = None

    def held_offsets(self) -> dict[TopicPartition, EndOffsets]:
        """Return the partitions with commits of open transactions: see ``held_offsets``."""
        return held_offsets(self.partitions, now_ms())

    @Service.task
    async def _run(self) -> None:
        try:
            while not self.should_stop:
                try:
                    async with OffsetLog(
                        self._settings, self.partitions, self._failed, self._turned, self._reads
                    ) as opened:
                        await self._read(opened)
                except KafkaError as error:
                    self._failed(str(error))
                    self._health.pulses.beat(OFFSETS)
                    await self.sleep(_RETRY_SECONDS)
        finally:
            self._health.pulses.rest(OFFSETS)

    async def _read(self, opened: OffsetLog) -> None:
        while not await opened.open():  # the topic does not exist yet
            self._health.pulses.beat(OFFSETS)
            await self._announce()
            await self.sleep(_RETRY_SECONDS)
            if self.should_stop:
                return
        if not self._announced:
            if self._followed is not None:
                await self._await_share(opened)
            await self._read_past(opened)

        async def take(changes: list[Changes], records: int) -> None:
            await self._take(changes, records, opened.behind(), opened.answered_ms())

        if not self.should_stop:
            await self.wait(opened.follow(decode_live, take))

    def _reads(self, number: int) -> bool:
        return self._followed is None or number in self._followed

    async def _await_share(self, opened: OffsetLog) -> None:
        """Wait until this instance has partitions, and learn their ends as of then."""
        while not self._followed and not self.should_stop:
            self._health.pulses.beat(OFFSETS)
            await self.sleep(_SHARE_SECONDS)
        await opened.open()

    def begin(self, partitions: frozenset[int]) -> None:
        """Begin with these partitions: they are read before the mark that the log was read."""
        self._followed = set(partitions)

    async def read(
        self, partitions: frozenset[int]
    ) -> tuple[list[Changes], dict[int, LogPartition]]:
        """Read more partitions to their ends; the others are read meanwhile.

        Return what they have, and the positions from which to ``follow`` them. Raises UserError.
        """
        found: list[Changes] = []
        positions: dict[int, LogPartition] = {}

        async def take(changes: list[Changes], _: int) -> None:
            found.extend(changes)

        try:
            async with OffsetLog(
                self._settings, positions, self._failed, reads=partitions.__contains__
            ) as opened:
                await opened.open()
                await opened.read_to_open_end(decode_past, take)
        except KafkaError as error:
            raise UserError(f"reading {CONSUMER_OFFSETS}: {error}") from None
        if missing := sorted(partitions - positions.keys()):
            raise UserError(f"{CONSUMER_OFFSETS} has no partition {missing[0]}")
        return found, {number: positions[number] for number in sorted(partitions)}

    async def apply(self, changes: list[Changes]) -> None:
        """Apply changes, after all that was read before; return once they are applied."""
        for change in changes:
            await self._changes.put(change)
        applied = ChannelMark()
        await self._changes.put(applied)
        await applied.wait()

    def follow(self, positions: dict[int, LogPartition]) -> None:
        """Read more partitions from these positions on."""
        for number, at in positions.items():
            at.is_asked = False
            self.partitions[number] = at
        if self._followed is not None:
            self._followed |= positions.keys()

    async def stop_reading(self, partitions: frozenset[int]) -> None:
        """Stop reading partitions; return once all that was read of them is applied."""
        if self._followed is not None:
            self._followed -= partitions
        known = [self.partitions[number] for number in partitions if number in self.partitions]
        while any(one.is_asked for one in known):  # noqa: ASYNC110 - nothing tells when it is so
            await asyncio.sleep(_STOP_SECONDS)
        for one in known:
            one.pending.clear()
            one.first_pending = None
        await self.apply([])

    async def _read_past(self, opened: OffsetLog) -> None:
        """Read up to the ends at the start, then put the mark on the channel."""
        total = opened.unread_at_open()
        progress = ReadingProgress(total, now_ms())
        log_ms = progress.started_ms + _LOG_EVERY_MS
        count = sum(self._reads(number) for number in opened.partitions)
        log.info("reading %d partitions of %s, %d offsets", count, CONSUMER_OFFSETS, total)
        self._health.polled(None, total)

        async def take(changes: list[Changes], records: int) -> None:
            nonlocal log_ms
            progress.behind = opened.unread_at_open()
            await self._take(changes, records, progress.behind, opened.answered_ms())
            progress.records += records
            if now_ms() >= log_ms and progress.behind:
                log_ms += _LOG_EVERY_MS
                log.info("reading %s: %s", CONSUMER_OFFSETS, progress.line(now_ms()))

        with rare_collections():
            await self.wait(opened.read_to_open_end(decode_past, take))
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
        """Beat unless records are unread although the brokers answer."""
        if not is_stuck(self._behind, self._answered_ms, now_ms()):
            self._health.pulses.beat(OFFSETS)

    async def _announce(self) -> None:
        if not self._announced:
            self._announced = True
            await self._changes.put(CaughtUp())

    def _failed(self, why: str) -> None:
        self._health.failed("offsets")
        if not self._failures.is_exceeded(now_ms()):
            log.warning("reading %s: %s; continuing", CONSUMER_OFFSETS, why)

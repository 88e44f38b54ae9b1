"""Fetch ``__consumer_offsets`` from its start, follow it, and decode it by columns.

The bytes of brokers' answers are decoded here, since a client library makes an object of each
record, and does not say which records belong to a transaction. Reading is read_uncommitted:
``models/polls/pending_commits.py`` decides which commits count.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from types import TracebackType
from typing import NamedTuple, Self, TypeVar

from aiokafka.errors import (
    KafkaError,
    OffsetOutOfRangeError,
    TopicAuthorizationFailedError,
    for_code,
)

from caughtup.agents.clock import now_ms
from caughtup.agents.kafka.config import aiokafka_config
from caughtup.agents.kafka.partition_leaders import LogPartition, PartitionLeaders
from caughtup.agents.kafka.protocol import requests
from caughtup.agents.kafka.protocol.brokers import Purpose
from caughtup.agents.kafka.protocol.client import ClusterProtocol
from caughtup.agents.kafka.protocol.connection import raise_for
from caughtup.agents.kafka.protocol.fetch_answer import decode_fetch, plain_batch
from caughtup.agents.settings import Settings
from caughtup.models.errors import DecodeError
from caughtup.models.polls.record_batches import (
    NO_LEADER_EPOCH,
    FetchedRecords,
    Section,
    Unpack,
    decode_record_batches,
    readable,
    without_records,
)
from caughtup.models.polls.records import FramedRecords
from caughtup.models.wire.record_keys import CONSUMER_OFFSETS

_TIMEOUT_SECONDS = 10.0
#: How long a broker waits for a first record; and the least time from one fetch to the next when
#: the broker had no more: each small answer has a fixed cost, and the page is told once a second.
_WAIT_MS = 500
_PAUSE_SECONDS = 0.25
#: How long after a failure the partitions' leaders are asked for again, and how often otherwise.
_RETRY_SECONDS, _REFRESH_SECONDS = 0.5, 30.0
#: A fetch with its decoding that takes longer than this counts as stuck.
_STUCK_SECONDS = 30.0
#: The number of large answers in memory at the same time, however many brokers there are.
_ANSWERS = 4

Changes = TypeVar("Changes")
Decoded = TypeVar("Decoded")
#: Decodes records, in a thread; and applies the result, given with the number of records.
Decode = Callable[[FramedRecords], Changes]
Take = Callable[[Changes, int], Awaitable[object]]


class _FetchSizes(NamedTuple):
    """The bytes of an answer, the bytes of one partition in it, and the readers of a broker."""

    most_bytes: int
    partition_bytes: int
    readers: int


#: Large answers, since a large poll is cheap to decode; while one reader decodes, another fetches.
_LARGE = _FetchSizes(8 << 20, 4 << 20, 2)
_LIVE = _FetchSizes(1 << 20, 1 << 20, 1)


class OffsetLog:
    """A reader of partitions, without a group. Use as an async context manager.

    ``partitions`` has the positions of an earlier reader, to continue there. ``on_error`` is called
    with a sentence on each failure; reading continues. ``on_turn`` is called twice a second as long
    as no fetch is stuck. ``reads``: whether to read a partition, by default all; it is asked before
    each fetch. The leaders of the others are kept up to date, too.
    """

    def __init__(
        self,
        settings: Settings,
        partitions: MutableMapping[int, LogPartition] | None = None,
        on_error: Callable[[str], object] = lambda _: None,
        on_turn: Callable[[], object] = lambda: None,
        reads: Callable[[int], bool] = lambda _: True,
    ) -> None:
        self._protocol = ClusterProtocol(aiokafka_config(settings), _TIMEOUT_SECONDS)
        self._on_error, self._on_turn, self._reads = on_error, on_turn, reads
        self._slots = asyncio.Semaphore(_ANSWERS)
        self._is_stale = asyncio.Event()
        #: The number of fetches so far, and when each running fetch began, in monotonic seconds.
        self._turn = 0
        self._began: dict[int, float] = {}
        self.partitions = {} if partitions is None else partitions
        self._leaders = PartitionLeaders(self._protocol, self.partitions, on_error)
        for partition in self.partitions.values():
            partition.is_asked = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._protocol.connections.close()

    async def open(self) -> bool:
        """Learn the start and end of each partition; return False while the topic does not exist.

        Brokers create it when the first group needs it. Raises KafkaError.
        """
        return await self._leaders.open()

    async def read_to_open_end(self, decode: Decode[Changes], take: Take[Changes]) -> None:
        """Read up to the ends at the time of ``open``. Raises KafkaError if that is not allowed."""
        await self._read(decode, take, _LARGE)

    async def follow(self, decode: Decode[Changes], take: Take[Changes]) -> None:
        """Read new records for ever; ``take`` is called for each answer, also an empty one.

        Raises KafkaError if reading is not allowed.
        """
        await self._read(decode, take, _LIVE)

    def unread_at_open(self) -> int:
        """Count the offsets below the ends at the time of ``open`` that are not read yet."""
        return sum(max(0, one.end_at_start - one.position) for one in self._read_partitions())

    def behind(self) -> int:
        """Count the unread offsets, up to the high watermarks in the last answers."""
        return sum(max(0, one.high_watermark - one.position) for one in self._read_partitions())

    def answered_ms(self) -> int | None:
        """Return the time (ms) of the oldest of the partitions' last answers; None without one."""
        times = [one.answered_ms for one in self._read_partitions()]
        return min((at for at in times if at is not None), default=None) if all(times) else None

    def _read_partitions(self) -> list[LogPartition]:
        return [one for number, one in self.partitions.items() if self._reads(number)]

    async def _read(self, decode: Decode[Changes], take: Take[Changes], size: _FetchSizes) -> None:
        """Keep ``size.readers`` readers running for each leader, and learn of new leaders."""
        running: dict[tuple[int, int], asyncio.Task[None]] = {}
        refreshed = time.monotonic()
        self._began.clear()
        stale = asyncio.ensure_future(self._is_stale.wait())
        try:
            while size is _LIVE or self._wanted(size):
                leaders = {self.partitions[number].leader for number in self._wanted(size)}
                for broker in sorted(leader for leader in leaders if leader is not None):
                    for index in range(size.readers):
                        if (broker, index) not in running and self._free(broker, size):
                            reading = self._read_from(broker, decode, take, size)
                            running[broker, index] = asyncio.ensure_future(reading)
                await asyncio.wait(
                    (stale, *running.values()),
                    timeout=_RETRY_SECONDS,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if time.monotonic() - min(self._began.values(), default=math.inf) < _STUCK_SECONDS:
                    self._on_turn()
                for key in [key for key, task in running.items() if task.done()]:
                    running.pop(key).result()
                if stale.done() or time.monotonic() - refreshed > _REFRESH_SECONDS:
                    if stale.done():
                        await asyncio.sleep(_RETRY_SECONDS)
                    refreshed = time.monotonic()
                    stale.cancel()
                    self._is_stale.clear()
                    if not await self._leaders.refresh():
                        self._is_stale.set()
                    stale = asyncio.ensure_future(self._is_stale.wait())
        finally:
            for task in (stale, *running.values()):
                task.cancel()
            await asyncio.gather(stale, *running.values(), return_exceptions=True)

    def _wanted(self, size: _FetchSizes) -> list[int]:
        """Return the partitions that are still to be read, sorted."""
        wanted = [(n, one) for n, one in sorted(self.partitions.items()) if self._reads(n)]
        if size is _LIVE:
            return [number for number, _ in wanted]
        return [number for number, one in wanted if one.position < one.end_at_start or one.is_asked]

    async def _read_from(
        self, broker: int, decode: Decode[Changes], take: Take[Changes], size: _FetchSizes
    ) -> None:
        """Read the partitions that a broker leads, until nothing is left or a fetch fails."""
        while positions := self._ask_for(broker, size):
            started = time.monotonic()
            turn = self._turn
            self._began[turn] = started
            try:
                is_full = await self._fetch(broker, positions, decode, take, size)
            except TopicAuthorizationFailedError:
                raise
            except (KafkaError, DecodeError) as error:
                self._on_error(f"broker {broker}: {error}")
                self._is_stale.set()
                return
            finally:
                self._began.pop(turn, None)
                for number in positions:
                    self.partitions[number].is_asked = False
            if size is _LIVE and not is_full:
                await asyncio.sleep(max(0.0, started + _PAUSE_SECONDS - time.monotonic()))

    def _free(self, broker: int, size: _FetchSizes) -> list[int]:
        """Return the wanted partitions that a broker leads and that no running fetch asks for."""
        return [
            number
            for number in self._wanted(size)
            if self.partitions[number].leader == broker and not self.partitions[number].is_asked
        ]

    def _ask_for(self, broker: int, size: _FetchSizes) -> dict[int, int]:
        """Choose the partitions of the next fetch; return their positions."""
        free = self._free(broker, size)
        self._turn += 1
        if size is _LIVE and free:  # rotate: under load an answer holds only the first ones
            first = self._turn % len(free)
            free = free[first:] + free[:first]
        chosen = free[:: size.readers]
        for number in chosen:
            self.partitions[number].is_asked = True
        return {number: self.partitions[number].position for number in chosen}

    async def _fetch(
        self,
        broker: int,
        positions: Mapping[int, int],
        decode: Decode[Changes],
        take: Take[Changes],
        size: _FetchSizes,
    ) -> bool:
        """Fetch and apply the next records of some partitions; return whether there may be more."""
        call = requests.fetch_call(
            CONSUMER_OFFSETS,
            positions,
            wait_ms=_WAIT_MS,
            most_bytes=size.most_bytes,
            partition_bytes=size.partition_bytes,
        )
        if size is _LIVE:
            data = await self._protocol.connections.ask(broker, call, purpose=Purpose.FETCH)
            return await self._apply(data, positions, decode, take, size)
        async with self._slots:
            data = await self._protocol.connections.ask(broker, call, purpose=Purpose.FETCH)
            return await self._apply(data, positions, decode, take, size)

    async def _apply(
        self,
        data: bytes,
        positions: Mapping[int, int],
        decode: Decode[Changes],
        take: Take[Changes],
        size: _FetchSizes,
    ) -> bool:
        fetched = {n: one for n, one in decode_fetch(data).items() if n in positions}
        sections = {
            number: Section(one.start, one.end, positions[number], self.partitions[number].pending)
            for number, one in fetched.items()
            if not one.error_code
            and self.partitions[number].position == positions[number]
            and self._reads(number)
        }
        dropped = sum(section.pending.dropped for section in sections.values())
        problems: list[str] = []

        def read() -> tuple[list[int], list[int], Changes, int]:
            found = _find_records(data, list(sections.values()), problems)
            changes = decode(found.records)
            return found.positions, found.leader_epochs, changes, len(found.records)

        next_positions, epochs, changes, count = await asyncio.to_thread(read)
        dropped = sum(section.pending.dropped for section in sections.values()) - dropped
        if dropped:
            problems.append(f"too many open transactions: {dropped} of their commits are dropped")
        for problem in problems:
            self._on_error(problem)
        now = now_ms()
        for number, position, epoch in zip(sections, next_positions, epochs, strict=True):
            partition = self.partitions[number]
            partition.position, partition.answered_ms = position, now
            partition.first_pending = partition.pending.first_offset
            partition.high_watermark = fetched[number].high_watermark
            if epoch != NO_LEADER_EPOCH:
                partition.records_epoch = epoch
        await take(changes, count)
        await self._take_errors({n: one.error_code for n, one in fetched.items() if one.error_code})
        return len(data) >= size.most_bytes // 2

    async def _take_errors(self, codes: Mapping[int, int]) -> None:
        """Handle the error codes of partitions: read from the log start if a position is gone."""
        gone = [n for n, code in sorted(codes.items()) if code == OffsetOutOfRangeError.errno]
        if gone:
            self._on_error(
                f"partitions {gone}: the next offset no longer exists; reading them from the start"
            )
            await self._leaders.start_again(gone)
        raise_for(next((c for c in codes.values() if c == TopicAuthorizationFailedError.errno), 0))
        others = {n: code for n, code in sorted(codes.items()) if n not in gone}
        if others:
            names = sorted({for_code(code).__name__ for code in others.values()})
            self._on_error(f"partitions {sorted(others)}: {', '.join(names)}")
            self._is_stale.set()


def _find_records(data: bytes, sections: Sequence[Section], problems: list[str]) -> FetchedRecords:
    """Find the records of an answer; leave out each batch that cannot be read, as a problem."""
    return decode_readable(
        lambda unpack, every: decode_record_batches(data, sections, unpack, unpack_all=every),
        problems,
    )


def decode_readable(decode: Callable[[Unpack, bool], Decoded], problems: list[str]) -> Decoded:
    """Decode an answer by a function; leave out each batch that cannot be read, as a problem.

    It is called with what unpacks a batch and, again if that isn't enough, whether to unpack all.
    """

    def plain(batch: bytes) -> bytes:
        try:
            return plain_batch(batch)
        except Exception as error:  # noqa: BLE001 - a codec's or a format's own errors
            problems.append(f"a batch that can't be unpacked: {error!r}")
            return without_records(batch)

    try:
        return decode(plain, False)
    except DecodeError as error:
        problems.append(f"a batch that can't be read: {error}")
        return decode(lambda batch: readable(plain(batch)), True)

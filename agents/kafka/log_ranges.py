"""Read ranges of logs in a process of Spark, where transactions are read as the service does.

A reader is pickled and sent to Spark's workers with what it needs to log in.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path
from typing import Any, TypeVar

from aiokafka.errors import (
    KafkaError,
    LeaderNotAvailableError,
    OffsetOutOfRangeError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
)

from caughtup.agents.errors import UserError
from caughtup.agents.kafka.config import aiokafka_config
from caughtup.agents.kafka.offset_log import decode_readable
from caughtup.agents.kafka.protocol import requests
from caughtup.agents.kafka.protocol.brokers import Purpose
from caughtup.agents.kafka.protocol.client import ClusterProtocol
from caughtup.agents.kafka.protocol.connection import raise_for
from caughtup.agents.kafka.protocol.fetch_answer import decode_fetch
from caughtup.agents.kafka.tls import KEYSTORE_LOCATION
from caughtup.agents.settings import Settings
from caughtup.models.errors import CaughtupError, DecodeError
from caughtup.models.ids import TopicPartition
from caughtup.models.polls.pending_commits import PendingCommits
from caughtup.models.polls.record_batches import (
    LogRange,
    LogRecords,
    Section,
    decode_log,
)
from caughtup.models.security.logins import Password, login_of

log = logging.getLogger(__name__)

_TIMEOUT_SECONDS = 30.0
_WAIT_MS = 500
#: The bytes of an answer: a large poll is cheap to decode, and a worker holds one.
_BYTES = 8 << 20
#: How long a partition may have no leader, or a broker not answer, before a task fails; and how long
#: a log may end before the range does, as after an unclean election.
_PATIENCE_SECONDS = 90.0
_PAUSE_SECONDS = 0.5
#: A topic that no broker knows for this time is deleted, and has no records.
_GONE_SECONDS = 10.0
#: PEM files whose content a reader takes along: workers on other machines do not have them.
_PEM = ("ssl.ca", "ssl.certificate", "ssl.key")
_NOT_PORTABLE = (KEYSTORE_LOCATION, "ssl.crl.location")

T = TypeVar("T")


class LogRangeReader:
    """Reads ranges of logs, one after another. Calls yield what counts of each range, in order.

    ``pending`` of a range has what is in transactions that were open at its start, and after it what
    is in those that are open at its end. Raises KafkaError if a broker does not answer in 90 s.
    """

    def __init__(self, settings: Settings) -> None:
        """Take along what it needs to log in. Raises CaughtupError ``not_portable``, or UserError."""
        kafka = _portable(settings)
        self._settings = Settings(
            bootstrap_servers=settings.bootstrap_servers,
            application_id=settings.application_id,
            kafka=kafka,
        )
        aiokafka_config(self._settings)  # raises for what only other clients support

    def __call__(
        self, ranges: Iterable[tuple[LogRange, PendingCommits]]
    ) -> Iterator[tuple[TopicPartition, LogRecords]]:
        """Yield the records of each range that count, by 8 MB of the log."""
        loop = asyncio.new_event_loop()
        protocol = ClusterProtocol(aiokafka_config(self._settings), _TIMEOUT_SECONDS)
        readers = [_RangeReader(loop, protocol, one, pending) for one, pending in ranges]
        readers = [one for one in readers if not one.is_done]
        try:
            loop.run_until_complete(_find_leaders(protocol, readers))
            for reader, following in zip_longest(readers, readers[1:]):
                for found in reader.read(following):
                    yield reader.partition, found
        finally:
            for reader in readers:
                reader.forget()
            protocol.connections.close()
            loop.run_until_complete(asyncio.sleep(0))
            loop.close()


async def _find_leaders(protocol: ClusterProtocol, readers: Sequence[_RangeReader]) -> None:
    """Find the leaders of all ranges at once; where that fails, each range asks again."""
    await protocol.brokers()
    with suppress(KafkaError):
        found = await protocol.describe_partitions([one.partition for one in readers])
        for one in readers:
            described = found.partitions.get(one.partition)
            one.leader = None if described is None else described.leader


class _RangeReader:
    """Reads one range. ``leader``: the broker to ask; None to find it again."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        protocol: ClusterProtocol,
        wanted: LogRange,
        pending: PendingCommits,
    ) -> None:
        self._loop = loop
        self._protocol = protocol
        self._range = wanted
        self._pending = pending
        self._position = wanted.start
        self._until = wanted.until
        self.leader: int | None = None
        #: The answer that is asked for already.
        self._asked: asyncio.Task[bytes] | None = None

    @property
    def partition(self) -> TopicPartition:
        """The range's partition."""
        return self._range.partition

    @property
    def is_done(self) -> bool:
        """Whether all of the range is read."""
        return self._position >= self._until

    def ask(self) -> None:
        """Ask for the next records now, so that the broker works while earlier ones are decoded."""
        if self._asked is None:
            self._asked = self._loop.create_task(self._answer())
            self._run(asyncio.sleep(0))  # the request is sent at the task's first step

    def forget(self) -> None:
        """Drop what was asked for."""
        asked, self._asked = self._asked, None
        if asked is not None and not asked.cancel() and not asked.cancelled():
            asked.exception()  # retrieved, so that asyncio does not log it

    def read(self, following: _RangeReader | None = None) -> Iterator[LogRecords]:
        """Yield what counts, answer by answer; before the last one, ``following`` asks."""
        since = time.monotonic()
        while self._position < self._until:
            before, waited = self._position, time.monotonic() - since
            dropped = self._pending.dropped
            try:
                found = self._run(self._fetch())
            except TopicAuthorizationFailedError:
                raise
            except (KafkaError, DecodeError, OSError, TimeoutError) as error:
                self.leader = None
                self.forget()
                if isinstance(error, UnknownTopicOrPartitionError) and waited > _GONE_SECONDS:
                    return
                if waited > _PATIENCE_SECONDS:
                    raise
                log.warning("reading %s: %s; trying again", self._range.partition, error)
                time.sleep(_PAUSE_SECONDS)
                continue
            if found is not None:
                self._position = found.position
                if (next_one := following if self.is_done else self) is not None:
                    next_one.ask()
                yield found
            if self._pending.dropped > dropped:
                log.warning(
                    "%s: %d records of open transactions are given up, even if these are committed: "
                    "there are too many",
                    *(self._range.partition, self._pending.dropped - dropped),
                )
            if self._position > before:
                since = time.monotonic()
            elif waited > _PATIENCE_SECONDS:
                log.warning(
                    "%s has nothing readable from offset %d to %d",
                    *(self._range.partition, self._position, self._until),
                )
                return
            else:  # a new leader may not know yet how far the log is committed
                self.leader = None
                time.sleep(_PAUSE_SECONDS)

    def _run(self, ask: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(ask)

    async def _fetch(self) -> LogRecords | None:
        """Return the next records; None if they are deleted, and the log starts later."""
        asked, self._asked = self._asked, None
        data = await (self._answer() if asked is None else asked)
        fetched = decode_fetch(data).get(self._range.partition.partition)
        if fetched is None:
            raise DecodeError("bad_answer", "an answer without the partition")
        if fetched.error_code == OffsetOutOfRangeError.errno:
            assert self.leader is not None
            wanted = [self._range.partition]
            starts = await self._protocol.list_offsets(self.leader, wanted, requests.EARLIEST)
            self._position = max(self._position, *starts.values())
            return None
        raise_for(fetched.error_code)
        section = Section(fetched.start, fetched.end, self._position, self._pending)
        return _decoded(data, section, self._until)

    async def _answer(self) -> bytes:
        topic, number = self._range.partition
        if self.leader is None:
            self.leader = await self._find_leader()
        call = requests.fetch_call(
            topic,
            {number: self._position},
            wait_ms=_WAIT_MS,
            most_bytes=_BYTES,
            partition_bytes=_BYTES,
        )
        return await self._protocol.connections.ask(self.leader, call, purpose=Purpose.FETCH)

    async def _find_leader(self) -> int:
        described = await self._protocol.describe_partitions([self._range.partition])
        found = described.partitions.get(self._range.partition)
        if found is None:
            await self._protocol.brokers()
            raise UnknownTopicOrPartitionError(str(self._range.partition))
        if found.leader is None:
            raise LeaderNotAvailableError(str(self._range.partition))
        return found.leader


def _decoded(data: bytes, section: Section, until: int) -> LogRecords:
    """Decode an answer; leave out each batch that cannot be read, with a warning."""
    problems: list[str] = []
    found = decode_readable(
        lambda unpack, every: decode_log(data, section, unpack, until, unpack_all=every), problems
    )
    for problem in problems:
        log.warning("%s", problem)
    return found


def _portable(settings: Settings) -> dict[str, str | int | bool]:
    """Return the client's properties with the content of PEM files instead of their paths.

    Raises CaughtupError ``not_portable`` if they need something of this machine.
    """
    kafka = dict(settings.kafka)
    if not isinstance(login_of(kafka), Password | None):
        raise CaughtupError("not_portable", "its login needs more than a password")
    if found := [name for name in _NOT_PORTABLE if name in kafka]:
        raise CaughtupError("not_portable", f"{found[0]} is a file of this machine")
    for name in _PEM:
        location = kafka.pop(f"{name}.location", None)
        if location is None:
            continue
        try:
            kafka[f"{name}.pem"] = Path(str(location)).read_text(encoding="ascii")
        except (OSError, UnicodeDecodeError):
            raise CaughtupError("not_portable", f"{name}.location is no PEM file") from None
    return kafka


def reader_of(settings: Settings) -> LogRangeReader | None:
    """Return a reader for Spark's workers; None, with a warning, if it couldn't log in there."""
    try:
        return LogRangeReader(settings)
    except (CaughtupError, UserError) as error:
        log.warning(
            "the history is read by Spark's Kafka source, as committed: while a transaction is open "
            "on a partition of __consumer_offsets, its later commits wait (%s)",
            error.message,
        )
        return None

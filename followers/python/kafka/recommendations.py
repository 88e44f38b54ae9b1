"""Read the newest recommendation of one group in the background, and check its signature."""

from __future__ import annotations

import asyncio
import logging
import time
from pathlib import Path
from typing import NamedTuple

import msgspec
from aiokafka import AIOKafkaConsumer, ConsumerRecord
from aiokafka.errors import KafkaError

from caughtup.followers.python.kafka.bounded_fetch import bound_batches
from caughtup.followers.python.kafka.log_ends import (
    Connection,
    RepeatedProblem,
    cluster_id,
    partition_counts,
)
from caughtup.models.assignors.following.recommendation import (
    FollowedRecommendation,
    Objection,
    read_followed,
    require_bounded,
)
from caughtup.models.errors import CaughtupError
from caughtup.models.records.topics import MOST_RECOMMENDATION_BYTES
from caughtup.models.security import signing
from caughtup.models.security.signing import HEADER

log = logging.getLogger("caughtup.followers")

#: The fetch size; a larger first batch is sent whole.
_MOST_FETCHED = 1 << 20
#: The decompressed size of a batch: a largest recommendation, and 1 MB for all else.
_MOST_DECOMPRESSED = MOST_RECOMMENDATION_BYTES + (1 << 20)
_FIRST_RETRY, _LAST_RETRY = 1.0, 30.0
_POLL_MS = 500
_MOST_FILE_BYTES = 1 << 16


class _Newest(NamedTuple):
    """A decoded record, when it was read (s, monotonic), and its age then by the log's end (ms)."""

    read: FollowedRecommendation | Objection
    seen: float
    older_ms: int = 0


class RecommendationReader:
    """Reads ``recommended-assignments`` from its start and follows it, while ``run`` runs.

    With a file of signing keys, a record that is not signed with one of them is an objection.
    """

    def __init__(
        self,
        connection: Connection,
        topic: str,
        group: str,
        signing_key_file: str | Path | None = None,
    ) -> None:
        self._connection = connection
        self._topic = topic
        self._group = group
        self._signing_key_file = signing_key_file
        self._cluster = ""
        self._complaint = RepeatedProblem()
        self._passed_over = RepeatedProblem()
        self._newest: _Newest | None = None
        self._retry = _FIRST_RETRY
        self._from_end = False
        #: Set once the topic was read to its end, or could not be read.
        self.known = asyncio.Event()

    def newest(self) -> tuple[FollowedRecommendation | Objection, int]:
        """Return the newest recommendation or objection, and its least age in ms; does not wait."""
        newest = self._newest
        if newest is None:
            return Objection("reading", f"{self._topic} is still being read"), 0
        since_ms = int((time.monotonic() - newest.seen) * 1000)
        return newest.read, max(since_ms, newest.older_ms)

    async def run(self) -> None:
        """Read until cancelled; failures are retried after 1 s, 2 s, … 30 s.

        After running out of memory over a record, reading continues at the log's end.
        """
        while True:
            try:
                if await partition_counts(self._connection, {self._topic}):
                    await self._follow()
                self._failed(f"there is no topic {self._topic}")
            except (KafkaError, OSError) as error:
                self._failed(f"cannot read {self._topic}: {error!r}")
            except Exception as error:
                log.exception("reading %s failed", self._topic)
                self._from_end |= isinstance(error, MemoryError)
                self._failed(f"cannot read {self._topic}: {error!r}")
            await asyncio.sleep(self._retry)
            self._retry = min(2 * self._retry, _LAST_RETRY)

    async def _follow(self) -> None:
        if self._signing_key_file is not None:
            self._cluster = await cluster_id(self._connection)
        consumer = AIOKafkaConsumer(
            self._topic,
            **self._connection,
            client_id="caughtup-follower",
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            fetch_max_bytes=_MOST_FETCHED,
            max_partition_fetch_bytes=_MOST_FETCHED,
        )
        bound_batches(consumer, _MOST_DECOMPRESSED, self._passed_over.say)
        await consumer.start()
        try:
            await self._catch_up(consumer)
            self._complaint.over()
            self._retry, self._from_end = _FIRST_RETRY, False
            while True:
                for record in await _poll(consumer):
                    if record.key == self._group.encode():
                        self._remember(record, 0)
        finally:
            await consumer.stop()

    async def _catch_up(self, consumer: AIOKafkaConsumer) -> None:
        """Read to the present end; keep the group's last record, if any."""
        partitions = list(consumer.assignment())
        if self._from_end:
            await consumer.seek_to_end(*partitions)
        ends = await consumer.end_offsets(partitions)
        found: ConsumerRecord | None = None
        log_times: dict[int, int] = {}
        while any([await consumer.position(one) < end for one, end in ends.items()]):
            for record in await _poll(consumer):
                if record.key == self._group.encode():
                    found = record
                    # Its age is measured by later records only.
                    log_times.clear()
                before = log_times.get(record.partition, 0)
                log_times[record.partition] = max(before, record.timestamp)
        if found is not None:
            self._remember(found, max(0, log_times[found.partition] - found.timestamp))
        elif not self._from_end:
            message = f"there is no recommendation for {self._group}"
            self._set(Objection("no_recommendation", message))

    def _remember(self, record: ConsumerRecord, older_ms: int) -> None:
        if record.value is None:
            message = f"the recommendation for {self._group} was withdrawn"
            self._set(Objection("no_recommendation", message))
            return
        signatures = [value for name, value in record.headers if name == HEADER]
        try:
            read = self._read(record.value, signatures[-1] if signatures else None)
        except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
            read = _malformed(str(error))
        except CaughtupError as error:
            read = _malformed(error.message)
        self._set(read, older_ms)

    def _read(self, value: bytes, signature: bytes | None) -> FollowedRecommendation | Objection:
        require_bounded(value)
        if self._signing_key_file is not None:
            file, cluster = self._signing_key_file, self._cluster
            forgery = find_forgery(file, cluster, self._group, value, signature)
            if forgery is not None:
                return forgery
        return read_followed(msgspec.json.decode(value), self._group)

    def _failed(self, message: str) -> None:
        """Record why reading failed; a recommendation that was read before stays, and gets old."""
        self._complaint.say(message)
        if self._newest is None or isinstance(self._newest.read, Objection):
            self._set(Objection("reader_failed", message))

    def _set(self, read: FollowedRecommendation | Objection, older_ms: int = 0) -> None:
        self._newest = _Newest(read, time.monotonic(), older_ms)
        self.known.set()


async def _poll(consumer: AIOKafkaConsumer) -> list[ConsumerRecord]:
    """Wait for a record; only one, since the next batch may be large."""
    found = await consumer.getmany(timeout_ms=_POLL_MS, max_records=1)
    return [record for records in found.values() for record in records]


def _malformed(message: str) -> Objection:
    return Objection("malformed", f"the recommendation is malformed: {message}")


def find_forgery(
    file: str | Path, cluster: str, group: str, value: bytes, header: bytes | None
) -> Objection | None:
    """Return why a record's signature is not accepted; None if it is valid.

    The file is read each time, so that keys can change while the application runs.
    """
    try:
        keys = _read_keys(Path(file))
    except CaughtupError as error:
        message = f"signing_key_file names no file of keys: {error.message}"
        return Objection("no_signing_key", message)
    return signing.find_forgery(keys, cluster, group, value, header)


def _read_keys(file: Path) -> tuple[signing.SigningKey, ...]:
    """Read the keys in a file. Raises CaughtupError; its message holds nothing from the file."""
    try:
        with file.open("rb") as opened:
            data = opened.read(_MOST_FILE_BYTES + 1)
        text = data.decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = f"it cannot be read: {type(error).__name__}"
        raise CaughtupError("bad_key_file", reason) from None
    if len(data) > _MOST_FILE_BYTES:
        raise CaughtupError("bad_key_file", f"it is larger than {_MOST_FILE_BYTES} bytes")
    return signing.read_keys(text)

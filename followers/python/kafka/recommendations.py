"""Keeps the newest recommendation of one group at hand, read in the background."""

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
from caughtup.followers.python.kafka.connection import (
    Complaint,
    Connection,
    cluster_id,
    partition_counts,
)
from caughtup.followers.python.kafka.signatures import find_forgery
from caughtup.models.assignors.following.recommendation import (
    FollowedRecommendation,
    Objection,
    read_followed,
    require_bounded,
)
from caughtup.models.errors import CaughtupError
from caughtup.models.records.topics import MOST_RECOMMENDATION_BYTES
from caughtup.models.security.signing import HEADER

log = logging.getLogger("caughtup.followers")

#: Of a batch alone a broker sends all.
_MOST_FETCHED = 1 << 20
#: A record's other parts are small.
_MOST_DECOMPRESSED = MOST_RECOMMENDATION_BYTES + (1 << 20)
_FIRST_RETRY, _LAST_RETRY = 1.0, 30.0
_POLL_MS = 500


class _Newest(NamedTuple):
    """A record as read, when (s, monotonic), and how much later the log's last record is (ms)."""

    read: FollowedRecommendation | Objection
    seen: float
    older_ms: int = 0


class RecommendationReader:
    """Reads ``recommended-assignments`` from its beginning and on, as long as ``run`` runs.

    With a file of signing keys, what isn't signed with one of them is an objection.
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
        self._complaint = Complaint()
        self._passed_over = Complaint()
        self._newest: _Newest | None = None
        self._retry = _FIRST_RETRY
        self._from_end = False
        #: Set once it is known whether there is a recommendation, or why that can't be known.
        self.known = asyncio.Event()

    def newest(self) -> tuple[FollowedRecommendation | Objection, int]:
        """Return what is known now, and how old it is at least, in ms; never waits."""
        newest = self._newest
        if newest is None:
            return Objection("reading", f"{self._topic} is still being read"), 0
        since_ms = int((time.monotonic() - newest.seen) * 1000)
        return newest.read, max(since_ms, newest.older_ms)

    async def run(self) -> None:
        """Read until cancelled; what can't be read is tried again after 1 s, 2 s, … 30 s.

        Where memory ran out over a record, it goes on from the log's end.
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
        """Read what is there; its last record of the group counts, none if there is none."""
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
                    # Only what comes after it says how old it is.
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
        """Remember why nothing can be read; what was read before stays, and grows old."""
        self._complaint.say(message)
        if self._newest is None or isinstance(self._newest.read, Objection):
            self._set(Objection("reader_failed", message))

    def _set(self, read: FollowedRecommendation | Objection, older_ms: int = 0) -> None:
        self._newest = _Newest(read, time.monotonic(), older_ms)
        self.known.set()


async def _poll(consumer: AIOKafkaConsumer) -> list[ConsumerRecord]:
    """Wait for records: one at a time, since another batch may be large."""
    found = await consumer.getmany(timeout_ms=_POLL_MS, max_records=1)
    return [record for records in found.values() for record in records]


def _malformed(message: str) -> Objection:
    return Objection("malformed", f"the recommendation is malformed: {message}")

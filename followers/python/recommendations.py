"""Keeps the newest recommendation of one group at hand, read in the background."""

from __future__ import annotations

import asyncio
import time
from typing import NamedTuple

import msgspec
from aiokafka import AIOKafkaConsumer, ConsumerRecord
from aiokafka.errors import KafkaError

from caughtup.followers.python.kafka import Complaint, Connection, partition_counts
from caughtup.models.assignors.followed_recommendation import FollowedRecommendation, read_followed
from caughtup.models.assignors.follower import Objection
from caughtup.models.errors import CaughtupError

TOPIC = "recommended-assignments"
#: Nothing of a recommendation's size should be near this.
MAX_BYTES = 16 << 20
_FIRST_RETRY, _LAST_RETRY = 1.0, 30.0
_POLL_MS = 500


class _Newest(NamedTuple):
    """What was read, when (s, monotonic), and how far the log had gone on beyond it (ms)."""

    read: FollowedRecommendation | Objection
    seen: float
    older_ms: int = 0


class RecommendationReader:
    """Reads ``recommended-assignments`` from its beginning and on, as long as ``run`` runs."""

    def __init__(self, connection: Connection, topic: str, group: str) -> None:
        self._connection = connection
        self._topic = topic
        self._group = group
        self._complaint = Complaint()
        self._newest: _Newest | None = None
        #: Set once it is known whether there is a recommendation, or why that can't be known.
        self.known = asyncio.Event()

    def newest(self) -> tuple[FollowedRecommendation | Objection, int]:
        """Give what is known now, and how old it is at least, in ms; never waits."""
        newest = self._newest
        if newest is None:
            return Objection("reading", f"{self._topic} is still being read"), 0
        since_ms = int((time.monotonic() - newest.seen) * 1000)
        return newest.read, max(since_ms, newest.older_ms)

    async def run(self) -> None:
        """Read until cancelled; what can't be read is tried again after 1 s, 2 s, … 30 s."""
        retry = _FIRST_RETRY
        while True:
            try:
                if await partition_counts(self._connection, {self._topic}):
                    retry = _FIRST_RETRY
                    await self._follow()
                self._failed(f"there is no topic {self._topic}")
            except (KafkaError, OSError) as error:
                self._failed(f"cannot read {self._topic}: {error!r}")
            await asyncio.sleep(retry)
            retry = min(2 * retry, _LAST_RETRY)

    async def _follow(self) -> None:
        consumer = AIOKafkaConsumer(
            self._topic,
            **self._connection,
            client_id="caughtup-follower",
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
        )
        await consumer.start()
        try:
            await self._catch_up(consumer)
            self._complaint.over()
            while True:
                for records in (await consumer.getmany(timeout_ms=_POLL_MS)).values():
                    for record in records:
                        if record.key == self._group.encode():
                            self._take(record, 0)
        finally:
            await consumer.stop()

    async def _catch_up(self, consumer: AIOKafkaConsumer) -> None:
        """Read what is there; its last record of the group counts, none if there is none."""
        ends = await consumer.end_offsets(list(consumer.assignment()))
        found: ConsumerRecord | None = None
        log_times: dict[int, int] = {}
        while any([await consumer.position(one) < end for one, end in ends.items()]):
            for records in (await consumer.getmany(timeout_ms=_POLL_MS)).values():
                for record in records:
                    if record.key == self._group.encode():
                        found = record
                        # Only what comes after it says how old it is.
                        log_times.clear()
                    before = log_times.get(record.partition, 0)
                    log_times[record.partition] = max(before, record.timestamp)
        if found is None:
            self._none()
        else:
            self._take(found, max(0, log_times[found.partition] - found.timestamp))

    def _take(self, record: ConsumerRecord, older_ms: int) -> None:
        if record.value is None:
            self._none()
        elif len(record.value) > MAX_BYTES:
            self._set(_malformed(f"{len(record.value)} bytes"))
        else:
            try:
                read = read_followed(msgspec.json.decode(record.value), self._group)
            except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
                self._set(_malformed(str(error)))
            except CaughtupError as error:
                self._set(_malformed(error.message))
            else:
                self._set(read, older_ms)

    def _none(self) -> None:
        message = f"there is no recommendation for {self._group}"
        self._set(Objection("no_recommendation", message))

    def _failed(self, message: str) -> None:
        """Remember why nothing can be read; what was read before stays, and grows old."""
        self._complaint.say(message)
        if self._newest is None or isinstance(self._newest.read, Objection):
            self._set(Objection("reader_failed", message))

    def _set(self, read: FollowedRecommendation | Objection, older_ms: int = 0) -> None:
        self._newest = _Newest(read, time.monotonic(), older_ms)
        self.known.set()


def _malformed(message: str) -> Objection:
    return Objection("malformed", f"the recommendation is malformed: {message}")

"""A queue of records that have to get to Kafka, in order, with retries."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from itertools import islice, takewhile
from typing import NamedTuple

from confluent_kafka import KafkaError, KafkaException

from caughtup.agents.clock import now_ms
from caughtup.agents.errors import UserError
from caughtup.agents.topics.fenced import FencedRecord, FencedWriter
from caughtup.agents.topics.publisher import TopicWriter
from caughtup.models.faults import SetAsideRecords

log = logging.getLogger(__name__)

_RETRY_SECONDS = 1.0
#: The most records in flight.
_AT_ONCE = 100
#: How far a broker's clock, which may set timestamps, may be behind ours.
_CLOCKS_MS = 10 * 60_000
#: Errors that the producer raises for a bad record, before it is sent.
_UNSENDABLE = (TypeError, ValueError)
#: Errors that every retry would get: the record exceeds a limit of the producer or the topic.
_REFUSALS = {
    KafkaError.MSG_SIZE_TOO_LARGE: "too_large",
    KafkaError.RECORD_LIST_TOO_LARGE: "too_large",
    KafkaError.INVALID_TIMESTAMP: "invalid_timestamp",
    KafkaError.INVALID_RECORD: "invalid_record",
}
#: Errors that may be such: Kafka has one code for a bad record and for bytes damaged on the way,
#: and one for whatever a broker did not expect. They are retried a few times.
_DOUBTFUL = {KafkaError.UNKNOWN: "unknown_error", KafkaError.INVALID_MSG: "corrupt_record"}
_DOUBTFUL_TRIES = 5


class Outgoing(NamedTuple):
    """A record to send; ``on_written`` is called once brokers have acknowledged it."""

    topic: TopicWriter
    key: bytes
    value: bytes
    headers: Mapping[str, bytes] | None = None
    on_written: Callable[[], None] | None = None


class Outbox:
    """Keeps records until brokers have acknowledged them. It outlives restarts of its agent.

    ``set_aside`` counts the records that brokers will never accept.
    """

    def __init__(self, set_aside: SetAsideRecords) -> None:
        self._set_aside = set_aside
        self._waiting: deque[Outgoing] = deque()
        self._failing = False
        self._tries = 0
        #: The number of records to send one by one, after a batch with a bad record was refused.
        self._singly = 0
        #: When the first record was sent whose acknowledgement is missing (ms); None without any.
        self._doubtful_ms: int | None = None

    def put(
        self,
        topic: TopicWriter,
        key: bytes,
        value: bytes,
        *,
        headers: Mapping[str, bytes] | None = None,
        on_written: Callable[[], None] | None = None,
    ) -> None:
        """Append a record to the queue."""
        self._waiting.append(Outgoing(topic, key, value, headers, on_written))

    @property
    def is_empty(self) -> bool:
        """Whether brokers have acknowledged everything."""
        return not self._waiting

    async def flush(self) -> None:
        """Return once all records are on their topics or set aside; retry other failures.

        All that waits is one transaction, so that what belongs together is put before a flush.

        Where transactions are not allowed, a record whose acknowledgement was lost is searched for
        on its topic before it is sent again. Only if it arrives after that is it there twice.
        """
        while self._waiting:
            fence = self._waiting[0].topic.fence
            try:
                if fence is not None:
                    await self._send_all(fence)
                else:
                    await self._drop_written()
                    await self._send_some()
                self._failing = False
            except (KafkaException, *_UNSENDABLE) as error:
                self._tries += 1
                reason = self._refusal(error) if fence is None else None
                if reason is not None:
                    self._put_aside(reason, error)
                    continue
                await self._pause(_message_of(error))
            except UserError as error:
                await self._pause(error.message)

    async def _pause(self, why: str) -> None:
        if not self._failing:
            log.warning("writing to %s: %s; trying again", self._waiting[0].topic.name, why)
        self._failing = True
        await asyncio.sleep(_RETRY_SECONDS)

    async def _drop_written(self) -> None:
        """Drop sent records without acknowledgement that are on their topic already.

        Raises UserError when the topic cannot be read.
        """
        if self._doubtful_ms is None:
            return
        some = self._first_of_one_topic(len(self._waiting))
        sought = frozenset((one.key, one.value) for one in some)
        found = await some[0].topic.written(sought, self._doubtful_ms - _CLOCKS_MS)
        self._doubtful_ms = None
        self._drop(some, [(one.key, one.value) in found for one in some])

    async def _send_all(self, fence: FencedWriter) -> None:
        """Send all records in one transaction, but those that brokers refuse.

        Raises KafkaException when the transaction failed for another reason.
        """
        some = list(self._waiting)
        records = [FencedRecord(one.topic.name, one.key, one.value, one.headers) for one in some]
        outcomes = await fence.write(records, singly=self._singly > 0)
        failed = [(at, failure) for at, failure in enumerate(outcomes) if failure is not None]
        if not failed:
            self._singly = self._tries = 0
            self._drop(some, [True] * len(some))
            return
        reasons = [(at, failure, self._refusal(failure)) for at, failure in failed]
        refused = [(at, failure, reason) for at, failure, reason in reasons if reason is not None]
        if len(failed) > 1 and refused:
            self._singly = 1  # of a batch all fail if one is refused: find out which
        elif refused:
            self._tries = 0
            ((at, failure, reason),) = refused
            del self._waiting[at]
            self._note_refused(some[at], reason, failure)
        else:
            raise failed[0][1]

    async def _send_some(self) -> None:
        """Send the first records of the queue, and drop those that are acknowledged.

        Raises the error of the first record that failed.
        """
        sent: list[Awaitable[object]] = []
        unsent: Exception | None = None
        some = self._first_of_one_topic(1 if self._singly else _AT_ONCE)
        if some:
            self._doubtful_ms = now_ms()
        for one in some:
            try:
                sent.append(await one.topic.send(key=one.key, value=one.value, headers=one.headers))
            except (KafkaException, *_UNSENDABLE) as error:
                unsent = error
                break
        outcomes = await asyncio.gather(*sent, return_exceptions=True)
        failures = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        codes = {_code(error) for error in failures if isinstance(error, KafkaException)}
        if codes <= _REFUSALS.keys():
            self._doubtful_ms = None
        self._drop(some, [not isinstance(outcome, BaseException) for outcome in outcomes])
        if len(failures) > 1 and codes & (_REFUSALS | _DOUBTFUL).keys():
            self._singly = len(failures)
        elif failures:
            raise failures[0]
        elif unsent is not None:
            raise unsent

    def _first_of_one_topic(self, most: int) -> list[Outgoing]:
        """Return the first records up to a change of topic.

        Topics are not mixed: events that follow from a decision must be written after it.
        """
        return list(
            takewhile(lambda one: one.topic is self._waiting[0].topic, islice(self._waiting, most))
        )

    def _drop(self, some: list[Outgoing], written: list[bool]) -> None:
        """Drop the written ones of the first records; the others stay in their order."""
        left: list[Outgoing] = []
        for one, is_written in zip(some, written, strict=False):
            dropped = self._drop_first() if is_written else self._waiting.popleft()
            if not is_written:
                left.append(dropped)
                continue
            self._set_aside.written(one.topic.name, one.key)
            if one.on_written is not None:
                one.on_written()
        self._waiting.extendleft(reversed(left))

    def _refusal(self, error: Exception) -> str | None:
        """Return the reason why the first record can never be sent; None to retry it."""
        if not isinstance(error, KafkaException):
            return "unsendable"
        code = _code(error)
        if code in _DOUBTFUL and self._tries >= _DOUBTFUL_TRIES:
            return _DOUBTFUL[code]
        return _REFUSALS.get(code)

    def _put_aside(self, reason: str, error: Exception) -> None:
        self._note_refused(self._drop_first(), reason, error)

    def _note_refused(self, refused: Outgoing, reason: str, error: Exception) -> None:
        message = f"{len(refused.value)} bytes: {_message_of(error)}"
        self._set_aside.add(refused.topic.name, refused.key, reason, message, now_ms())

    def _drop_first(self) -> Outgoing:
        self._tries = 0
        self._singly = max(0, self._singly - 1)
        return self._waiting.popleft()


def _code(error: KafkaException) -> int:
    code: int = error.args[0].code()
    return code


def _message_of(error: Exception) -> str:
    return error.args[0].str() if isinstance(error, KafkaException) else str(error)

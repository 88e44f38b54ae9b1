"""Write what must be said once in transactions, so that brokers refuse an instance that was replaced."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Event
from typing import NamedTuple, TypeVar

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from caughtup.agents.errors import UserError
from caughtup.agents.kafka.clients import producer
from caughtup.agents.process.health import Health
from caughtup.agents.settings import Settings
from caughtup.agents.topics.definitions import MAX_RECORD_BYTES

log = logging.getLogger(__name__)

PROBE = "publish"
#: What both of the service's producers have in common.
RECORDS: Mapping[str, object] = {
    "message.max.bytes": MAX_RECORD_BYTES,
    "compression.type": "gzip",
    "linger.ms": 5,
    # Less than a session. Senders send again what is still needed.
    "message.timeout.ms": 5_000,
}
#: What is open is aborted by the next instance; after this time without one, by the coordinator.
_TRANSACTION_MS = 60_000
#: How long one call may block the thread; a call that took longer is repeated.
_CALL_SECONDS = 5.0
#: After this time every record is acknowledged or given up.
_DELIVERED_SECONDS = 10.0
_PAUSE_SECONDS = 0.05
#: If no transaction succeeds for this time, the client is replaced.
_STUCK_SECONDS = 10.0
_FENCED = (
    KafkaError._FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH,
    KafkaError.PRODUCER_FENCED,
)
#: The brokers let us write, but not in transactions.
_NOT_ALLOWED = (
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError._UNSUPPORTED_FEATURE,
)

_T = TypeVar("_T")


class FencedRecord(NamedTuple):
    """A record to write."""

    topic: str
    key: bytes
    value: bytes | None
    headers: Mapping[str, bytes] | None = None


#: By record: why brokers did not take it; all None once the transaction is committed.
Outcomes = list[Exception | None]


def transactional_id(settings: Settings, slot: int) -> str:
    """Return the transactional id of a slot: one active instance, and the first one, has slot 0."""
    return f"{settings.application_id}-{slot}" if slot else settings.application_id


class FencedWriter:
    """Writes records in transactions, under a transactional id that its predecessor had, too.

    The newest writer to ``begin`` with an id is the only one: brokers refuse what an earlier one
    still sends, and its process ends. ``may_publish`` is called before each transaction; while it
    returns False, the writer waits. Calls that block run on a thread of its own. ``refused``: the
    principal may not write in transactions, so that records go without.
    """

    def __init__(self, settings: Settings, health: Health, may_publish: Callable[[], bool]) -> None:
        self._settings = settings
        self._id = settings.application_id
        self._health = health
        self._may_publish = may_publish
        self._thread = ThreadPoolExecutor(1, "fenced-publisher")
        #: The client in use, and one whose ``init_transactions`` has not ended yet.
        self._client: Producer | None = None
        self._beginning: Producer | None = None
        self._stale = True
        self._stopped = Event()
        self._failing_since: float | None = None
        self.refused = False

    async def begin(self, slot: int = 0) -> None:
        """Fence every earlier writer of the slot, and end what it left open. Raises UserError.

        After it, nothing that an earlier writer sent can arrive any more. ``slot``: see ``Claim``.
        """
        if (own := transactional_id(self._settings, slot)) != self._id:
            self._id, self._beginning = own, None
        try:
            await self._in_thread(self._begin)
        except KafkaException as error:
            reason: KafkaError = error.args[0]
            raise UserError(
                f"the coordinator of the transactional id {self._id} does not let it begin "
                f"({reason.str()}): has __transaction_state a leader with enough replicas in sync?"
            ) from None

    async def write(self, records: Sequence[FencedRecord], *, singly: bool = False) -> Outcomes:
        """Write records in one transaction; return why brokers refused some, if they did.

        Unless all outcomes are None, nothing was written. ``singly``: send each record after the one
        before it was acknowledged, up to the first that is refused, to find out which one that is.
        Raises KafkaException when the transaction fails for another reason, and is aborted.
        """
        try:
            while True:
                written = None
                if self._may_publish():
                    written = await self._in_thread(partial(self._write, records, singly))
                if written is not None:
                    break
                await asyncio.sleep(_PAUSE_SECONDS)
        except KafkaException as error:
            self._failed(records[0].topic, str(error.args[0].str()))
            raise
        if failures := [str(outcome) for outcome in written if outcome is not None]:
            self._failed(records[0].topic, failures[0])
        else:
            self._failing_since = None
            self._health.recovered(PROBE)
        return written

    def replace_client(self) -> None:
        """Begin again with a new client before the next transaction: a topic was recreated."""
        self._stale = True

    async def idle(self) -> None:
        """Return once the transaction that is under way has ended."""
        await self._in_thread(lambda: None)

    def stop(self) -> None:
        """Let the thread end, at the latest after the call that it is in."""
        self._stopped.set()
        self._thread.shutdown(wait=False)

    async def _in_thread(self, call: Callable[[], _T]) -> _T:
        # A caller that is cancelled does not stop the call.
        return await asyncio.get_running_loop().run_in_executor(self._thread, call)

    def _begin(self) -> None:
        self._client, self._stale = None, True
        client = self._beginning or producer(
            self._settings,
            **RECORDS,
            **{"transactional.id": self._id, "transaction.timeout.ms": _TRANSACTION_MS},
        )
        self._beginning = client
        try:
            client.init_transactions(_CALL_SECONDS)
        except KafkaException as error:
            found: KafkaError = error.args[0]
            if not found.retriable():
                self._beginning = None
            if found.code() not in _NOT_ALLOWED:
                raise
            self._refuse(found)
        else:
            self._beginning, self._client, self._stale = None, client, False
            self._allow()

    def _allow(self) -> None:
        self.refused, self._health.unfenced = False, None

    def _refuse(self, error: KafkaError) -> None:
        """FencedRecord that records have to go without transactions."""
        why = (
            f"a replaced instance is not fenced ({error.str()}): allow WRITE on the transactional "
            f"id {self._id}, and restart"
        )
        if not self.refused:
            log.warning("%s", why)
        self.refused, self._health.unfenced = True, why

    def _write(self, records: Sequence[FencedRecord], singly: bool) -> Outcomes | None:
        """Write a transaction; return None if this instance may not publish now."""
        if self._stale and self._may_publish():
            self._begin()
            if self.refused:
                refused = KafkaError(KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
                raise KafkaException(refused)
        client = self._client
        # Asked after the client has begun: an instance that is elected later begins later.
        if client is None or not self._may_publish():
            return None
        outcomes: Outcomes = [None] * len(records)
        try:
            client.begin_transaction()
            self._send(client, records, outcomes, singly)
            if any(outcomes):
                self._until_known(client.abort_transaction)
            else:
                self._commit(client)
        except (KafkaException, SystemError) as error:
            failure = _cause_of(error)
            self._recover(client, failure.args[0])
            raise failure from None
        return outcomes

    def _send(
        self, client: Producer, records: Sequence[FencedRecord], outcomes: Outcomes, singly: bool
    ) -> None:
        """Send records until one is refused, and wait for the answers."""

        def answered(number: int, error: KafkaError | None, _: Message) -> None:
            if error is not None:
                outcomes[number] = KafkaException(error)

        for number, record in enumerate(records):
            try:
                self._produce(client, record, partial(answered, number))
            except (KafkaException, TypeError, ValueError) as error:
                outcomes[number] = outcomes[number] or error
            if singly:
                client.flush(_DELIVERED_SECONDS)
            if any(outcomes):
                break
        if client.flush(_DELIVERED_SECONDS):
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "records are not acknowledged"))

    def _produce(
        self,
        client: Producer,
        record: FencedRecord,
        answered: Callable[[KafkaError | None, Message], None],
    ) -> None:
        headers: dict[str, str | bytes | None] | None = (
            None if record.headers is None else dict(record.headers)
        )
        while True:
            try:
                client.produce(
                    record.topic, record.value, record.key, on_delivery=answered, headers=headers
                )
            except BufferError:  # the brokers are slower than we are
                client.poll(_PAUSE_SECONDS)
            else:
                return

    def _commit(self, client: Producer) -> None:
        """Commit; repeat the call until its outcome is known."""
        try:
            self._until_known(client.commit_transaction)
        except KafkaException as error:
            found: KafkaError = error.args[0]
            if not found.txn_requires_abort() and found.code() not in _FENCED:
                # Only reading the topics again can tell; a restart does.
                self._health.broken = (
                    f"it is unknown whether a transaction of {self._id} was committed: "
                    f"{found.str()}"
                )
            raise

    def _until_known(self, call: Callable[[float], None]) -> None:
        while True:
            try:
                return call(_CALL_SECONDS)
            except KafkaException as error:
                found: KafkaError = error.args[0]
                if not found.retriable() or self._stopped.is_set():
                    raise
                if self._health.failed(PROBE):
                    log.warning("ending a transaction: %s; trying again", found.str())
            self._stopped.wait(_PAUSE_SECONDS)

    def _recover(self, client: Producer, error: KafkaError) -> None:
        """Abort after a failure, or give the client up; end the process if it is fenced."""
        if error.txn_requires_abort():
            try:
                self._until_known(client.abort_transaction)
            except KafkaException as failure:
                error = failure.args[0]
            else:
                return
        self._stale = True
        if error.code() in _FENCED:
            self._health.broken = self._health.broken or (
                f"fenced: another producer began with the transactional id {self._id}: either "
                "another instance took over, or another program has the same id"
            )

    def _failed(self, topic: str, why: str) -> None:
        if self._health.failed(PROBE):
            log.warning("writing to %s in a transaction: %s", topic, why)
        now = time.monotonic()
        self._failing_since = self._failing_since or now
        if now - self._failing_since > _STUCK_SECONDS:
            self._failing_since = None
            self.replace_client()


def _cause_of(error: BaseException) -> KafkaException:
    """Return the client's error. Raises any other error.

    The client raises a fatal error among callbacks; Python raises SystemError if one of them runs
    after that.
    """
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, KafkaException):
        cause = cause.__cause__ or cause.__context__
    if cause is None:
        raise error
    return cause

"""Write the lag table to caughtup-lag: the lines that changed since the last round."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from mode import Service

from caughtup.agents.clock import now_ms
from caughtup.agents.election.agent import until_active
from caughtup.agents.errors import UserError
from caughtup.agents.kafka.clients import producer as make_producer
from caughtup.agents.process.health import Health
from caughtup.agents.progress import Progress
from caughtup.agents.settings import Settings
from caughtup.agents.topics.applying import isolated_record
from caughtup.agents.topics.definitions import topic_name
from caughtup.agents.topics.read_to_end import read_service_topic
from caughtup.models.records.keys import decode_line
from caughtup.models.records.lag_lines import Line, WrittenLines, encode, mark
from caughtup.models.records.topics import LAG
from caughtup.models.sharing import HeldPartitions
from caughtup.models.shown.lag import copy_lines, partition_lines
from caughtup.models.state.cluster import ClusterState

log = logging.getLogger(__name__)

PROBE = "lag"
#: With these turns and pauses, writing takes at most a tenth of the event loop's time. Pauses are
#: longer as long as a round with as many turns as the one before it takes ``lag_interval`` at most.
_TURN_SECONDS = 0.005
_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.045, 0.5
_RETRY_SECONDS = 2.0
_FLUSH_SECONDS = 2.0


class LagTopic(Service):
    """Writes the lag of every group-partition and of every copy of a task, as it changes.

    A key is the JSON array of group, topic and partition, or of group, process and task; a value
    is the line of ``caughtup lag --format json``. A line that is gone gets a tombstone. A line of
    which only the age has grown isn't written: its reader adds the time since the record's own.
    ``may_publish`` is called before each record.

    It has a producer of its own beside the ``Publisher``'s: a round may have 100,000 records, and a
    recommendation behind them in the same queue would time out after 5 s. These records may take
    longer, and are compressed like their topic.
    """

    logger = logging.getLogger("mode.caughtup")  # for the messages of mode's Service

    def __init__(
        self,
        settings: Settings,
        state: ClusterState,
        health: Health,
        may_publish: Callable[[], bool],
    ) -> None:
        super().__init__()
        self._may_publish = may_publish
        self._settings = settings
        self._topic = topic_name(settings, LAG)
        self._state = state
        self._health = health
        self._written = WrittenLines()
        #: By group: its ``ClusterState.at_rest`` when all its lines were written.
        self._at_rest: dict[str, object] = {}
        self._turn = 0.0
        #: The turns of this round and of the one before it.
        self._turns, self._turns_before = 0, 0
        self._hurry = asyncio.Event()
        #: Whether groups were taken from another instance, which has written lines of theirs.
        self._taken = False

    def groups_taken(self) -> None:
        """Read back what another instance has written of groups that this one has taken."""
        self._taken = True

    def write_again(self) -> None:
        """Write all lines again in the next round, since the topic was recreated."""
        self._hurry.set()

    @Service.task
    async def _run(self) -> None:
        await until_active(self, self._health)
        producer = make_producer(self._settings, **_PRODUCER)
        try:
            await self._restore_written()
            while not self.should_stop:
                done = False
                if self._taken:
                    await self._restore_written()
                with self._state.faults.isolated(PROBE, "a round", now_ms()):
                    done = self._health.is_alive and await self._round(producer)
                with suppress(TimeoutError):
                    pause = self._settings.lag_interval if done else _RETRY_SECONDS
                    await asyncio.wait_for(self._hurry.wait(), pause)
                    self._hurry.clear()
                    self._written.clear()
                    self._at_rest.clear()
                    # The old client may never find the new topic (Publisher.replace_client).
                    await asyncio.to_thread(producer.flush, _FLUSH_SECONDS)
                    producer = make_producer(self._settings, **_PRODUCER)
        finally:
            await asyncio.to_thread(producer.flush, _FLUSH_SECONDS)

    async def _restore_written(self) -> None:
        """Read back what was written before a restart, for tombstones of lines that are gone."""
        while not self.should_stop:
            try:
                self._taken = False
                self._written.add_groups(await asyncio.to_thread(self._read))
                return
            except UserError as error:
                self._failed(error.message)
                await self.sleep(_RETRY_SECONDS)

    def _read(self) -> dict[str, dict[bytes, int]]:
        written: dict[str, dict[bytes, int]] = {}
        for key, value in read_service_topic(self._settings, self._state, LAG, Progress()):
            with isolated_record(self._state, LAG, key):
                _restore(written, key, value, self._state.held)
        return written

    async def _round(self, producer: Producer) -> bool:
        """Write changed lines; return whether every group was assessed already.

        A group that is not assessed yet has no verdicts and is left for later. If making a group's
        lines fails, it has none on the topic until that works.
        """
        self._turn, failures = time.monotonic(), self._health.probe_errors[PROBE]
        self._turns, self._turns_before = 0, self._turns
        groups = [g for g in self._state.group_names() if g in self._state.assessments.verdicts]
        for group in groups:
            await self._write_group(producer, group)
        self._drop_of_others()
        present = self._state.commits.groups() | self._state.groups.names()
        for group in sorted(self._written.groups() - present):
            with self._written.of(group) as written:
                for key in sorted(written):
                    await self._send(producer, written, key, None)
            self._at_rest.pop(group, None)
        producer.poll(0)
        if self._health.probe_errors[PROBE] == failures:
            self._health.recovered(PROBE)
        return len(groups) == len(present)

    def _drop_of_others(self) -> None:
        """Forget what was written of groups that another instance has: it goes on with them."""
        held = self._state.held
        for group in self._written.groups():
            if not held.has_group(group):
                self._written.drop(group)
                self._at_rest.pop(group, None)

    async def _write_group(self, producer: Producer, group: str) -> None:
        """Write a group's changed lines, unless it has been at rest since they were written."""
        by, before = self._state.at_rest(group), self._health.probe_errors[PROBE]
        if by is not None and self._at_rest.get(group) is by:
            if self._is_turn_over():
                await self._yield_turn(producer)
            return
        self._at_rest.pop(group, None)
        with self._written.of(group) as written:
            there = await self._write(producer, group, written)
            for key in sorted(written.keys() - there):
                await self._send(producer, written, key, None)
        if by is not None and self._health.probe_errors[PROBE] == before and there:
            self._at_rest[group] = by

    def _is_turn_over(self) -> bool:
        """Return whether this turn of the event loop has taken 5 ms."""
        return time.monotonic() - self._turn > _TURN_SECONDS

    async def _yield_turn(self, producer: Producer) -> None:
        producer.poll(0)
        await self.sleep(self._pause_seconds())
        self._turn = time.monotonic()
        self._turns += 1

    def _pause_seconds(self) -> float:
        """Return the pause after this turn: short once there were as many turns as last time."""
        if self._turns >= self._turns_before:
            return _PAUSE_SECONDS
        spread = self._settings.lag_interval / self._turns_before - _TURN_SECONDS
        return min(max(_PAUSE_SECONDS, spread), _LONGEST_PAUSE_SECONDS)

    async def _write(self, producer: Producer, group: str, written: dict[bytes, int]) -> set[bytes]:
        """Write a group's changed lines; return the keys of all its lines."""
        there: set[bytes] = set()
        with self._state.faults.isolated(PROBE, group, now_ms(), lambda _: there.clear()):
            for key, value in _records(self._state, group):
                there.add(key)
                of_value = mark(value)
                if written.get(key) != of_value and not self._sent(
                    producer, written, key, value, of_value
                ):
                    await self._send(producer, written, key, value, of_value)
                if self._is_turn_over():  # most lines need no coroutine
                    await self._yield_turn(producer)
        return there

    async def _send(
        self,
        producer: Producer,
        written: dict[bytes, int],
        key: bytes,
        value: bytes | None,
        of_value: int = 0,
    ) -> None:
        """Write a record, once there is room for it, and its value's mark to those of its group."""
        while not self.should_stop and not self._sent(producer, written, key, value, of_value):
            producer.poll(0)
            await self.sleep(_PAUSE_SECONDS)

    def _sent(
        self,
        producer: Producer,
        written: dict[bytes, int],
        key: bytes,
        value: bytes | None,
        of_value: int,
    ) -> bool:
        """Write a record, unless there is no room for it or another instance is active.

        Return False then: it has to be tried again.
        """
        try:
            if not self._may_publish():
                return False
            producer.produce(self._topic, value, key, on_delivery=self._delivered)
        except BufferError:
            return False  # the brokers are slower than we are
        except KafkaException as error:
            self._failed(error.args[0].str())
            return True
        if value is None:
            written.pop(key, None)
        else:
            written[key] = of_value
        return True

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        """Log a record that wasn't written, and mark it to be written again."""
        if error is None:  # Kafka's client calls it for errors only
            return
        self._failed(error.str())
        key = message.key()
        if key is not None:
            group = decode_line(key)
            with self._written.of(group) as written:
                written[key] = 0
            self._at_rest.pop(group, None)

    def _failed(self, why: str) -> None:
        if self._health.failed(PROBE):
            log.warning("writing %s: %s; trying again", self._topic, why)


_PRODUCER: dict[str, object] = {
    "compression.type": "lz4",
    "linger.ms": 50,
    "queue.buffering.max.messages": 2_000,  # what it has once had in memory, it keeps
    "delivery.report.only.error": True,  # a round may have 100,000 records
}


def _records(state: ClusterState, group: str) -> Iterator[tuple[bytes, bytes]]:
    """Yield the key and the encoded line of each row of a group."""
    lines: Iterator[Line] = chain(partition_lines(state, group), copy_lines(state, group))
    for line in lines:
        yield line.key, encode(line)


def _restore(
    written: dict[str, dict[bytes, int]],
    key: bytes | None,
    value: bytes | None,
    held: HeldPartitions,
) -> None:
    """Add a record that was read back, of a group that this instance has.

    Raises RefusedError for a malformed key.
    """
    group = decode_line(key)
    assert key is not None  # decode_line refuses None
    if not held.has_group(group):
        return
    if value is None:
        written.get(group, {}).pop(key, None)
    else:
        written.setdefault(group, {})[key] = mark(value)

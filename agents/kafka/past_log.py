"""What ``__consumer_offsets`` held when it was opened: fetched in answers of megabytes.

A client library makes an object of each record, which costs more than all that becomes of it here.
So the answers of brokers are decoded as they are, by columns; whatever is unusual in one (a
compressed batch, an older format, an error) is left to the library, from that offset on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple, TypeVar

from aiokafka.errors import KafkaError, for_code

from caughtup.agents.kafka.config import aiokafka_config
from caughtup.agents.kafka.protocol.brokers import BrokerConnections
from caughtup.agents.kafka.protocol.client import ClusterProtocol
from caughtup.agents.kafka.protocol.fetched import decode_fetched
from caughtup.agents.kafka.protocol.requests import fetch_call
from caughtup.agents.settings import Settings
from caughtup.models.ids import TopicPartition
from caughtup.models.polls.record_batches import Section, decode_record_batches
from caughtup.models.polls.records import FramedRecords
from caughtup.models.wire.record_keys import CONSUMER_OFFSETS

log = logging.getLogger(__name__)

#: Of an answer, and of a partition in it: large, since what is in it is decoded all at once.
_ANSWER_BYTES, _PARTITION_BYTES = 8 << 20, 4 << 20
#: Answers that are there at once, however many brokers there are.
_ANSWERS = 4
_WAIT_MS = 200
_TIMEOUT_SECONDS = 10.0


Changes = TypeVar("Changes")
#: What becomes of records, in a thread; and what takes that, with the number of records.
Decode = Callable[[FramedRecords], Changes]
Take = Callable[[Changes, int], Awaitable[object]]


class _Fetched(NamedTuple):
    """Records, the next offset of each of their partitions, and where the library has to go on."""

    records: FramedRecords
    positions: dict[int, int]
    refused: dict[int, str]


class PastLog:
    """Reads partitions from ``starts`` up to ``ends``; ``positions`` are how far it has come."""

    def __init__(
        self, settings: Settings, starts: Mapping[int, int], ends: Mapping[int, int]
    ) -> None:
        self._settings = settings
        self._ends = ends
        self._slots = asyncio.Semaphore(_ANSWERS)
        self.positions = dict(starts)

    def left(self) -> int:
        """Count the offsets that aren't read yet."""
        return sum(max(0, self._ends[number] - at) for number, at in self.positions.items())

    async def read(self, decode: Decode[Changes], take: Take[Changes]) -> None:
        """Read what can be read; what is left afterwards is for the library. Never raises for it.

        From each broker in two parts: while one is decoded, the other is fetched.
        """
        try:
            async with ClusterProtocol(
                aiokafka_config(self._settings), _TIMEOUT_SECONDS
            ) as protocol:
                leaders = await self._leaders(protocol)
                async with asyncio.TaskGroup() as reading:
                    for broker, numbers in sorted(leaders.items()):
                        for part in (numbers[::2], numbers[1::2]):
                            reading.create_task(
                                self._read_from(protocol.connections, broker, part, decode, take)
                            )
        except KafkaError as error:
            log.info("cannot fetch %s in large answers: %s", CONSUMER_OFFSETS, error)

    async def _leaders(self, protocol: ClusterProtocol) -> dict[int, list[int]]:
        """Group the partitions that there is something to read of by their leaders."""
        wanted = [number for number, at in self.positions.items() if at < self._ends[number]]
        described = await protocol.describe_partitions(
            [TopicPartition(CONSUMER_OFFSETS, number) for number in wanted]
        )
        leaders: dict[int, list[int]] = {}
        for (_, number), partition in sorted(described.partitions.items()):
            if partition.leader is not None:
                leaders.setdefault(partition.leader, []).append(number)
        return leaders

    async def _read_from(
        self,
        connections: BrokerConnections,
        broker: int,
        numbers: list[int],
        decode: Decode[Changes],
        take: Take[Changes],
    ) -> None:
        """Read partitions that a broker leads, until their ends or until something is unusual."""
        left = numbers
        while left:
            asked = {number: self.positions[number] for number in left}
            call = fetch_call(
                CONSUMER_OFFSETS,
                asked,
                wait_ms=_WAIT_MS,
                most_bytes=_ANSWER_BYTES,
                of_one=_PARTITION_BYTES,
            )
            try:
                async with self._slots:
                    data = await connections.ask(broker, call)
                    fetched, changes = await asyncio.to_thread(_decode, data, asked, decode)
                    del data
                    await take(changes, len(fetched.records))
            except Exception as error:  # noqa: BLE001 - a bug of ours costs the fast way alone
                log.info("broker %d: cannot fetch %s in large answers: %r", broker, left, error)
                return
            self.positions.update(fetched.positions)
            stopped = dict(fetched.refused)
            first = left[0]
            if self.positions[first] == asked[first]:
                stopped.setdefault(first, "no records, though there are some")
            for number, reason in sorted(stopped.items()):
                log.info(
                    "stopped fetching %s-%d in large answers: %s", CONSUMER_OFFSETS, number, reason
                )
            left = [
                number
                for number in left
                if number not in stopped and self.positions[number] < self._ends[number]
            ]


def _decode(
    data: bytes, positions: Mapping[int, int], decode: Decode[Changes]
) -> tuple[_Fetched, Changes]:
    """Find the records of an answer, and decode them. Raises DecodeError."""
    fetched = _find(data, positions)
    return fetched, decode(fetched.records)


def _find(data: bytes, positions: Mapping[int, int]) -> _Fetched:
    refused: dict[int, str] = {}
    sections: dict[int, Section] = {}
    for number, partition in decode_fetched(data).items():
        if number not in positions:
            continue
        if partition.error_code:
            refused[number] = str(for_code(partition.error_code).__name__)
        else:
            sections[number] = Section(
                partition.start, partition.end, positions[number], partition.aborted
            )
    found = decode_record_batches(data, sections.values())
    refused |= {
        number: reason
        for number, reason in zip(sections, found.refused, strict=True)
        if reason is not None
    }
    return _Fetched(found.records, dict(zip(sections, found.positions, strict=True)), refused)

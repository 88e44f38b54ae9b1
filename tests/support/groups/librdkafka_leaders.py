"""The real librdkafka as the leader of groups that are made up: what does its assignor decide?

An assignor runs inside a leader only. ``LibrdkafkaLeaders`` answers its consumers as a broker does
that has each of them lead whatever group is asked about: the members of the answer to JoinGroup and
the topics of the answer to Metadata are the question, SyncGroup has the decision. Each consumer joins
once a second at most, so that many lead at once.
"""

from __future__ import annotations

import asyncio
import struct
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Self

from confluent_kafka import Consumer

from caughtup.models.assignors.consumer.group import Assignment, ConsumerGroupSpec
from caughtup.models.wire.group_metadata import decode_assignment
from caughtup.models.wire.reader import Reader

_METADATA, _COORDINATOR, _JOIN, _HEARTBEAT, _LEAVE, _SYNC, _API_VERSIONS = 3, 10, 11, 12, 13, 14, 18
#: The latest versions that are spoken, none of them flexible; the others let librdkafka see a broker.
_VERSIONS = {0: 7, 1: 4, 2: 1, 3: 4, 8: 3, 9: 3, 10: 0, 11: 5, 12: 3, 13: 1, 14: 3, 18: 0}
_NO_SUCH_VERSION, _NO_SUCH_TOPIC, _REBALANCES = 35, 3, 27
#: librdkafka takes memory for an answer by its length, too little where several topics are small.
_CLUSTER = "cluster" * 100
_LEADER, _SUBSCRIBED = "leads", "subscribed"


def written(text: str | None) -> bytes:
    """Return a string as Kafka's older messages have it."""
    raw = None if text is None else text.encode()
    return struct.pack(">h", -1) if raw is None else struct.pack(">h", len(raw)) + raw


def subscription_of(group: ConsumerGroupSpec, name: str) -> bytes:
    """Return a member's subscription in version 3."""
    member = group.members[name]
    by_topic: list[tuple[str, list[int]]] = []
    for one in member.owned:
        if not by_topic or by_topic[-1][0] != one.topic:
            by_topic.append((one.topic, []))
        by_topic[-1][1].append(one.partition)
    return b"".join(
        (
            struct.pack(">hi", 3, len(member.topics)),
            *map(written, member.topics),
            struct.pack(">ii", 0, len(by_topic)),
            *(
                written(topic) + struct.pack(f">i{len(own)}i", len(own), *own)
                for topic, own in by_topic
            ),
            struct.pack(">i", -1 if member.generation is None else member.generation),
            written(member.rack),
        )
    )


@dataclass
class _Asked:
    group: ConsumerGroupSpec
    decided: Future[Assignment] = field(default_factory=Future)


class LibrdkafkaLeaders:
    """Consumers that lead; used as a context."""

    def __init__(self, count: int, assignor: str) -> None:
        """``count``: how many groups are led at once; ``assignor``: the name of the protocol."""
        self.count, self._assignor = count, assignor
        self._asked: dict[str, _Asked] = {}
        self._waiting: dict[str, Callable[[], None]] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._consumers: list[Consumer] = []
        self._writers: list[asyncio.StreamWriter] = []
        self._port = 0

    def __enter__(self) -> Self:
        self._thread.start()
        serving = asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._server = asyncio.run_coroutine_threadsafe(serving, self._loop).result(10)
        self._port = self._server.sockets[0].getsockname()[1]
        for number in range(self.count):
            consumer = Consumer(
                {
                    "bootstrap.servers": f"127.0.0.1:{self._port}",
                    "group.id": f"g{number}",
                    "client.id": str(number),
                    "partition.assignment.strategy": self._assignor,
                    "log_level": 0,
                    "enable.auto.commit": "false",
                }
            )
            consumer.subscribe([_SUBSCRIBED])
            self._consumers.append(consumer)
        return self

    def __exit__(self, *_: object) -> None:
        for consumer in self._consumers:
            consumer.close()
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def ask(self, number: int, group: ConsumerGroupSpec) -> Future[Assignment]:
        """Have a consumer lead a group, whose members and topics are in the order given."""
        asked = _Asked(group)

        def begin() -> None:
            self._asked[str(number)] = asked
            if (waiting := self._waiting.pop(str(number), None)) is not None:
                waiting()

        self._loop.call_soon_threadsafe(begin)
        return asked.decided

    async def _stop(self) -> None:
        self._server.close()
        for writer in self._writers:
            writer.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*others, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        try:
            while True:
                (length,) = struct.unpack(">i", await reader.readexactly(4))
                request = Reader(await reader.readexactly(length))
                key, version = request.int16(), request.int16()
                correlation, client = request.int32(), request.nullable_string() or ""

                def answer(body: bytes, correlation: int = correlation) -> None:
                    head = struct.pack(">ii", len(body) + 4, correlation)
                    writer.write(head + body)

                self._answer(key, version, client, request, answer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def _answer(
        self, key: int, version: int, client: str, request: Reader, answer: Callable[[bytes], None]
    ) -> None:
        if key == _API_VERSIONS:
            versions = [struct.pack(">hhh", key, 0, last) for key, last in _VERSIONS.items()]
            error = _NO_SUCH_VERSION if version else 0
            answer(struct.pack(">hi", error, len(versions)) + b"".join(versions))
        elif key == _METADATA:
            answer(self._metadata(client, request))
        elif key == _COORDINATOR:
            answer(struct.pack(">hi", 0, 0) + written("127.0.0.1") + struct.pack(">i", self._port))
        elif key == _JOIN:
            if client in self._asked:
                answer(self._joined(client))
            else:
                self._waiting[client] = lambda: answer(self._joined(client))
        elif key == _SYNC:
            self._synced(client, request)
            answer(struct.pack(">ihi", 0, _REBALANCES, 0))
        elif key in (_HEARTBEAT, _LEAVE):
            answer(struct.pack(">ih", 0, 0) if version else struct.pack(">h", 0))

    def _metadata(self, client: str, request: Reader) -> bytes:
        asked = self._asked.get(client)
        topics = dict(asked.group.topics if asked else {})
        racks = asked.group.racks if asked else {}
        names = [request.string() for _ in range(max(0, request.int32()))]
        known = sorted({rack for of in racks.values() for one in of for rack in one})
        nodes: list[str | None] = [None, *known]
        brokers = [
            struct.pack(">i", node)
            + written("127.0.0.1")
            + struct.pack(">i", self._port)
            + written(rack)
            for node, rack in enumerate(nodes)
        ]
        told = []
        for name in names or [_SUBSCRIBED]:
            count = 1 if name == _SUBSCRIBED else topics.get(name, 0)
            partitions = []
            for number in range(count):
                of = racks.get(name, ())
                replicas = [nodes.index(rack) for rack in sorted(of[number] if of else ())] or [0]
                listed = struct.pack(f">i{len(replicas)}i", len(replicas), *replicas)
                partitions.append(struct.pack(">hii", 0, number, 0) + listed + listed)
            error = 0 if count else _NO_SUCH_TOPIC
            told.append(
                struct.pack(">h", error)
                + written(name)
                + struct.pack(">bi", 0, count)
                + b"".join(partitions)
            )
        return b"".join(
            (
                struct.pack(">ii", 0, len(brokers)),
                *brokers,
                written(_CLUSTER),
                struct.pack(">ii", 0, len(told)),
                *told,
            )
        )

    def _joined(self, client: str) -> bytes:
        group = self._asked[client].group
        members = []
        for name, member in group.members.items():
            subscription = subscription_of(group, name)
            members.append(
                written(name)
                + written(member.instance_id)
                + struct.pack(">i", len(subscription))
                + subscription
            )
        return b"".join(
            (
                struct.pack(">ihi", 0, 0, 7),
                written(self._assignor),
                written(_LEADER),
                written(_LEADER),
                struct.pack(">i", len(members)),
                *members,
            )
        )

    def _synced(self, client: str, request: Reader) -> None:
        request.string()
        request.int32()
        request.string()
        request.nullable_string()
        given: Assignment = {}
        for _ in range(request.int32()):
            name = request.string()
            given[name] = list(decode_assignment(request.byte_string()).partitions)
        asked = self._asked.pop(client, None)
        if asked is not None:
            asked.decided.set_result(given)

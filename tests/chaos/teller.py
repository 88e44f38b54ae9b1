"""The truth teller: asks the cluster itself, beside the service and by other clients, each second."""

from __future__ import annotations

import json
import struct
import threading
import time
from contextlib import suppress
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    IsolationLevel,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.models.wire.record_keys import CONSUMER_OFFSETS
from tests.chaos.cluster import OFFSETS_PARTITIONS
from tests.chaos.groups import GROUPS, HEAVY, UNCLEAN
from tests.chaos.hand_over import Told
from tests.chaos.history import Truth
from tests.chaos.once import MOVEMENTS, RECOMMENDATIONS, Once
from tests.chaos.said import COMMITTED, END, GENERATION, MOVING
from tests.chaos.threads import Threads

_EVERY_SECONDS = 0.5
_PATIENCE_SECONDS = 4.0
_GROUP_KEY = 2
#: A transaction that is open doesn't hide what was committed before it.
_ANY = "read_uncommitted"


class TruthTeller(Threads):
    """Keeps a history of what is true, in threads; ``lock`` is held while it is written."""

    def __init__(self, cluster: EmbeddedCluster, prefix: str, applications: frozenset[str]) -> None:
        super().__init__(
            (self._sample_ends,),
            (self._sample_moves, HEAVY),
            *((self._sample_commits, group) for group in GROUPS),
            (self._read_generations,),
            (self._read_own, RECOMMENDATIONS),
            (self._read_own, MOVEMENTS),
        )
        self.truth = Truth(cut=frozenset({UNCLEAN}))
        self.once = Once(applications)
        self.lock = threading.Lock()
        #: The applications' records on the topics as they are now, in the order of their logs.
        self._records: dict[str, list[dict[str, Any]]] = {RECOMMENDATIONS: [], MOVEMENTS: []}
        self._movements_are_whole = True
        #: What was told twice, and when (s, monotonic); the judge takes it.
        self.twice: list[tuple[float, str]] = []
        #: By application: its newest generation that has members, and when it was first read.
        self.generations: dict[str, tuple[int, float]] = {}
        self._client = {**cluster.client_config(), "log_level": 0}
        self._prefix = prefix
        self._applications = applications
        self._anew: dict[str, threading.Event] = {
            topic: threading.Event() for topic in (RECOMMENDATIONS, MOVEMENTS)
        }

    def begin_anew(self, topic: str) -> None:
        """Read one of the service's topics from its start, once it was deleted."""
        if topic in self._anew:
            with self.lock:
                self.once.begin_anew(topic)
                self._records[topic].clear()
                self._movements_are_whole &= topic != MOVEMENTS
            self._anew[topic].set()

    def contradictions(self) -> list[str]:
        """Return what is wrong with decisions and movements together, as far as both were read.

        Nothing once the topic of movements was deleted: the events of decisions are gone with it.
        """
        with self.lock:
            decisions, events = (list(self._records[n]) for n in (RECOMMENDATIONS, MOVEMENTS))
        return Told(decisions, events, {}).contradictions() if self._movements_are_whole else []

    def _sample_ends(self) -> None:
        """Sample ends; a client that answers for no partition any more is replaced.

        librdkafka's ListOffsets may never answer again after a broker died under it.
        """
        admin: AdminClient | None = None
        while not self.stop.is_set():
            admin = admin or AdminClient({**self._client, "socket.timeout.ms": 5_000})
            answers = 0
            with suppress(KafkaException):  # a gap in the history, beyond which it is judged
                answers = self._ends(admin)
            if not answers:
                admin = None
            self.stop.wait(_EVERY_SECONDS)

    def _ends(self, admin: AdminClient) -> int:
        """Sample the last stable offset of every partition that is read; return how many answered."""
        places = {TopicPartition(*place) for group in GROUPS.values() for place in group.partitions}
        began = time.monotonic()
        futures = admin.list_offsets(
            dict.fromkeys(places, OffsetSpec.latest()),
            isolation_level=IsolationLevel.READ_COMMITTED,
            request_timeout=_PATIENCE_SECONDS,
        )
        answers = 0
        for place, future in futures.items():
            left = began + _PATIENCE_SECONDS - time.monotonic()
            try:
                end = future.result(max(0.0, left)).offset
            except (KafkaException, TimeoutError):
                continue
            if end < 0:  # librdkafka's word for a leader that was gone meanwhile
                continue
            answers += 1
            with self.lock:
                key = END, place.topic, place.partition
                self.truth.add(key, began, time.monotonic(), end)
        return answers

    def _sample_moves(self, topic: str) -> None:
        """Sample whether a topic's first partition is reassigned: replicas that aren't in sync."""
        admin = AdminClient({**self._client, "socket.timeout.ms": 5_000})
        while not self.stop.is_set():
            began = time.monotonic()
            with suppress(KafkaException, KeyError):
                found = admin.list_topics(topic, timeout=_PATIENCE_SECONDS).topics[topic]
                partition = found.partitions[0]
                moves = int(set(partition.isrs) != set(partition.replicas))
                with self.lock:
                    self.truth.add((MOVING, topic, 0), began, time.monotonic(), moves)
            self.stop.wait(_EVERY_SECONDS)

    def _sample_commits(self, group: str) -> None:
        """Sample a group's committed offsets, as its own members would ask for them.

        Not through AdminClient: librdkafka's ends the process (an assertion in rdkafka_queue.h)
        when a coordinator dies under a request of its.
        """
        places = [TopicPartition(*place) for place in GROUPS[group].partitions]
        consumer = Consumer({**self._client, "group.id": group, "isolation.level": _ANY})
        while not self.stop.is_set():
            began = time.monotonic()
            with suppress(KafkaException):
                found = consumer.committed(places, timeout=_PATIENCE_SECONDS)
                ended = time.monotonic()
                with self.lock:
                    for one in found:
                        key = COMMITTED, group, one.topic, one.partition
                        value = one.offset if one.offset >= 0 else None
                        if one.error is None:
                            self.truth.add(key, began, ended, value)
            self.stop.wait(_EVERY_SECONDS)
        consumer.close()

    def _read_generations(self) -> None:
        """Read the generations of applications from the log itself, by what is laid out there."""
        last = dict.fromkeys(self._applications, (0, 0))
        consumer = self._consumer()
        places = range(OFFSETS_PARTITIONS)
        consumer.assign([TopicPartition(CONSUMER_OFFSETS, p, OFFSET_BEGINNING) for p in places])
        while not self.stop.is_set():
            began = time.monotonic()
            for message in consumer.consume(10_000, timeout=0.2):
                key, value = message.key(), message.value()
                if message.error() is None and key is not None:
                    group = key[4:].decode(errors="replace")
                    if struct.unpack(">h", key[:2])[0] == _GROUP_KEY and group in last:
                        last[group] = read_generation(value)
            with self.lock:
                for group, (generation, members) in last.items():
                    self.truth.add((GENERATION, group), began, time.monotonic(), generation)
                    if members and self.generations.get(group, (0, 0))[0] != generation:
                        self.generations[group] = generation, time.monotonic()
            self.stop.wait(_EVERY_SECONDS)
        consumer.close()

    def _read_own(self, name: str) -> None:
        consumer = self._consumer()
        place = TopicPartition(f"{self._prefix}{name}", 0, OFFSET_BEGINNING)
        consumer.assign([place])
        while not self.stop.is_set():
            if self._anew[name].is_set():
                self._anew[name].clear()
                consumer.close()
                consumer = self._consumer()
                consumer.assign([place])
            for message in consumer.consume(1_000, timeout=0.5):
                if message.error() is None and message.value():
                    self._told(name, message.value() or b"")
        consumer.close()

    def _told(self, name: str, value: bytes) -> None:
        try:
            record = json.loads(value)
            with self.lock:
                wrong = self.once.add(name, record) if isinstance(record, dict) else None
                if isinstance(record, dict) and record.get("group") in self._applications:
                    self._records[name].append(record)
        except (ValueError, KeyError, TypeError, RecursionError):
            return  # poison
        if wrong:
            self.twice.append((time.monotonic(), wrong))

    def _consumer(self) -> Consumer:
        return Consumer(
            {
                **self._client,
                "group.id": "truth-teller",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "allow.auto.create.topics": False,
            }
        )


def read_generation(value: bytes | None) -> tuple[int, int]:
    """Read a group's generation, and how many members it has, off its record; 0 where it is gone.

    See Kafka's GroupMetadataValue.json.
    """
    if value is None:
        return 0, 0
    version, length = struct.unpack_from(">hh", value)
    at = 4 + length
    (generation,) = struct.unpack_from(">i", value, at)
    at += 4
    for _ in range(2):  # the protocol and the leader, either of which may be null
        (length,) = struct.unpack_from(">h", value, at)
        at += 2 + max(0, length)
    at += 8 if version >= 2 else 0
    (members,) = struct.unpack_from(">i", value, at)
    return generation, members

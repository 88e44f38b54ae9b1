"""The groups that are watched, and those that come and go: who commits what, and when."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from itertools import count

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.load import produce
from caughtup.demo.cluster.topics import create_topics
from caughtup.demo.fleet.connection import GroupConnection
from caughtup.demo.processes.children import ClosedOnExit
from caughtup.models.assignors.java.strings import coordinator_partition
from caughtup.models.errors import CaughtupError
from tests.chaos.application import NAME, SOURCE, SOURCE_PARTITIONS
from tests.chaos.cluster import OFFSETS_PARTITIONS, coordinator
from tests.chaos.rules import Watched

WORDS, STILL, HEAVY, UNCLEAN = "words", "still", "heavy", "unclean"
PARTITIONS = 4
_STILL_RECORDS, _STILL_COMMITTED = 1_000, 400
#: Where a transaction commits that is aborted: nobody may ever see it.
_ABORTED_OFFSET = 10**12
_RECORDS_PER_SECOND = 100.0
_BRIEF_SECONDS, _BRIEF_LIVES = 4.0, 12.0
_COMMIT_SECONDS = 1.0


def canary(partition: int) -> str:
    """Name a group that is kept on a partition of ``__consumer_offsets``."""
    names = (f"canary-{number}" for number in count())
    return next(n for n in names if coordinator_partition(n, OFFSETS_PARTITIONS) == partition)


CANARIES = tuple(Watched(canary(n), ((WORDS, 0),)) for n in range(OFFSETS_PARTITIONS))
STILL_GROUPS = tuple(Watched(f"still-{n}", ((STILL, 0),)) for n in range(4))
CLASSIC, NEW, UNCOMMITTED = "classic-readers", "new-readers", "never-committed"
TRANSACTIONAL, UNCLEAN_READERS = "transactional", "unclean-readers"
ALL_WORDS = tuple((WORDS, partition) for partition in range(PARTITIONS))
#: All whose figures are held against the truth.
GROUPS = {
    one.group: one
    for one in (
        *(*CANARIES, *STILL_GROUPS, Watched(CLASSIC, ALL_WORDS), Watched(NEW, ALL_WORDS)),
        Watched(TRANSACTIONAL, ((WORDS, 1),)),
        Watched(UNCLEAN_READERS, ((UNCLEAN, 0),)),
        Watched(UNCOMMITTED, ALL_WORDS, commits=False),
        Watched(NAME, tuple((SOURCE, n) for n in range(SOURCE_PARTITIONS)), whole=False),
    )
}
#: Those that are always there; the others' members may be on their way to another broker.
STEADY = tuple(g for g in GROUPS.values() if g.group not in (CLASSIC, NEW, UNCOMMITTED, NAME))


class Groups(ClosedOnExit):
    """Everybody who uses the cluster, each in a thread of its own that goes on whatever fails."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._cluster = cluster
        self._client = {**cluster.client_config(), "log_level": 0}
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        #: When each group that was short-lived was deleted (s, monotonic).
        self.deleted: dict[str, float] = {}
        self.committed = 0

    def start(self) -> None:
        """Make the topics and what never changes, then begin."""
        create_topics(self._cluster, {WORDS: PARTITIONS, STILL: 1, HEAVY: 1})
        create_topics(
            self._cluster, {UNCLEAN: 1}, {"unclean.leader.election.enable": "true"}, replicas=2
        )
        produce(self._cluster, STILL, _STILL_RECORDS)
        produce(self._cluster, HEAVY, 3_000, value_bytes=10_000)
        for group in STILL_GROUPS:
            self._commits_once(group.group, STILL, _STILL_COMMITTED)
        for canary in CANARIES:
            self._begin(self._canary(canary.group))
        self._begin(self._member(CLASSIC))
        self._begin(self._member(NEW, **{"group.protocol": "consumer"}))
        self._begin(self._member(UNCOMMITTED, commits=False))
        self._begin(self._transactions())
        self._begin(self._unclean_reader())
        self._begin(self._brief())
        for topic, rate in ((WORDS, _RECORDS_PER_SECOND), (UNCLEAN, 10.0)):
            self._begin(self._writer(topic, rate))

    def close(self) -> None:
        """Stop all of them."""
        self._stop.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(15)

    def _begin(self, turns: Callable[[], Iterator[float]]) -> None:
        """Run turns in a thread, each until the pause it yields; begin anew after a failure."""

        def run() -> None:
            while not self._stop.is_set():
                try:
                    for pause in turns():
                        if self._stop.wait(pause):
                            return
                except (KafkaException, CaughtupError, OSError):
                    self._stop.wait(1.0)

        thread = threading.Thread(target=run, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _writer(self, topic: str, rate: float) -> Callable[[], Iterator[float]]:
        def turns() -> Iterator[float]:
            producer = Producer({**self._client, "message.timeout.ms": 10_000})
            while True:
                for _ in range(max(1, int(rate / 10))):
                    try:
                        producer.produce(topic, b"." * 100)
                    except BufferError:
                        break
                producer.poll(0)
                yield 0.1

        return turns

    def _commits_once(self, group: str, topic: str, offset: int) -> None:
        consumer = Consumer({**self._client, "group.id": group})
        deadline = time.monotonic() + 60
        while True:
            try:
                position = TopicPartition(topic, 0, offset)
                consumer.commit(offsets=[position], asynchronous=False)
                break
            except KafkaException:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)
        consumer.close()

    def _canary(self, group: str) -> Callable[[], Iterator[float]]:
        """Commit how many seconds it is since the start, each second."""
        began = time.monotonic()

        def turns() -> Iterator[float]:
            consumer = Consumer({**self._client, "group.id": group, "socket.timeout.ms": 6_000})
            while True:
                offset = 1 + int(time.monotonic() - began)
                consumer.commit(offsets=[TopicPartition(WORDS, 0, offset)], asynchronous=False)
                self.committed += 1
                yield _COMMIT_SECONDS

        return turns

    def _member(
        self, group: str, *, commits: bool = True, **config: str
    ) -> Callable[[], Iterator[float]]:
        def turns() -> Iterator[float]:
            consumer = Consumer(
                {
                    **self._client,
                    "group.id": group,
                    "enable.auto.commit": False,
                    "auto.offset.reset": "earliest",
                    **config,
                }
            )
            try:
                consumer.subscribe([WORDS])
                last = time.monotonic()
                while True:
                    read = consumer.consume(200, timeout=0.2)
                    if commits and read and time.monotonic() - last > _COMMIT_SECONDS:
                        consumer.commit(asynchronous=True)
                        self.committed += 1
                        last = time.monotonic()
                    yield 0.05
            finally:
                consumer.close()

        return turns

    def _transactions(self) -> Callable[[], Iterator[float]]:
        """Commit in transactions, of which each third is aborted."""
        offset = count(1)

        def turns() -> Iterator[float]:
            consumer = Consumer({**self._client, "group.id": TRANSACTIONAL})
            producer = Producer(
                {
                    **self._client,
                    "transactional.id": TRANSACTIONAL,
                    "transaction.timeout.ms": 8_000,
                }
            )
            producer.init_transactions(20)
            for number in offset:
                aborts = number % 3 == 0
                position = TopicPartition(WORDS, 1, _ABORTED_OFFSET if aborts else number)
                producer.begin_transaction()
                metadata = consumer.consumer_group_metadata()
                producer.send_offsets_to_transaction([position], metadata, 10)
                if aborts:
                    producer.abort_transaction(10)
                else:
                    producer.commit_transaction(10)
                    self.committed += 1
                yield _COMMIT_SECONDS

        return turns

    def _unclean_reader(self) -> Callable[[], Iterator[float]]:
        """Commit the end of a log that an election may cut."""

        def turns() -> Iterator[float]:
            consumer = Consumer({**self._client, "group.id": UNCLEAN_READERS})
            while True:
                place = TopicPartition(UNCLEAN, 0)
                _, end = consumer.get_watermark_offsets(place, timeout=5)
                consumer.commit(offsets=[TopicPartition(UNCLEAN, 0, end)], asynchronous=False)
                self.committed += 1
                yield _COMMIT_SECONDS

        return turns

    def _brief(self) -> Callable[[], Iterator[float]]:
        """Make a group every few seconds, and delete it some seconds later."""
        numbers = count()
        alive: dict[str, float] = {}

        def turns() -> Iterator[float]:
            while True:
                name = f"brief-{next(numbers)}"
                self._commits_once(name, STILL, 1)
                alive[name] = time.monotonic()
                for old in [n for n, at in alive.items() if at < time.monotonic() - _BRIEF_LIVES]:
                    with GroupConnection(coordinator(self._cluster, old)[1], "brief", 5) as one:
                        one.delete(old)
                    self.deleted[old] = time.monotonic()
                    del alive[old]
                yield _BRIEF_SECONDS

        return turns

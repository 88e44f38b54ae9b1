"""Healthy reassignments, continuously: random partitions to random brokers, under load."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Final, NamedTuple

from confluent_kafka.admin import AdminClient, NewTopic

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.load import produce
from caughtup.demo.cluster.throttle import clear_throttle, set_throttle
from caughtup.demo.reassignments.stage import ALARMS, Reassign
from caughtup.demo.story.stage import View
from caughtup.models.ids import TopicPartition


class _Topic(NamedTuple):
    """A topic: megabytes of each partition, number of partitions, whether copying is throttled."""

    megabytes: int
    partitions: int
    throttled: bool


_RATE: Final = 3_000_000
_RECORD_BYTES: Final = 10_000
_WRITES_PER_SECOND: Final = 20.0
_LOOK_SECONDS: Final = 0.5
_UNSEEN_SECONDS: Final = 15.0
_PAUSE_SECONDS: Final = (1.0, 8.0)


class ShownEta(NamedTuple):
    """An ETA in seconds, when it was shown, and whether it was the only reassignment then."""

    at: float
    seconds: float
    alone: bool


class EtaError(NamedTuple):
    """An ETA's error in seconds, the seconds that were left, and whether it was the only one."""

    seconds: float
    left: float
    alone: bool


@dataclass(slots=True)
class ChurnedReassignment:
    """A reassignment from its start to its end, in monotonic seconds.

    ``seen``: whether the service ever showed it. ``etas``: all ETAs that were shown.
    """

    partition: TopicPartition
    throttled: bool
    began: float
    ended: float | None = None
    seen: bool = False
    etas: list[ShownEta] = field(default_factory=list)
    alarms: set[str] = field(default_factory=set)

    def errors(self) -> list[EtaError]:
        """Return the errors of the ETAs in the second half of the time.

        The last second does not count, which is the time between two observations.
        """
        if self.ended is None:
            return []
        half = (self.began + self.ended) / 2
        return [
            EtaError(abs(told.seconds - (self.ended - told.at)), self.ended - told.at, told.alone)
            for told in self.etas
            if told.at >= half and self.ended - told.at > 1.0
        ]


class Churn:
    """Reassigns partitions for some time, ``at_once`` at the same time.

    ``page`` returns what the service shows.
    """

    def __init__(
        self,
        cluster: EmbeddedCluster,
        reassign: Reassign,
        page: Callable[[], View],
        seed: int,
        at_once: int = 3,
        throttled_megabytes: int = 60,
    ) -> None:
        self._cluster = cluster
        self._reassign = reassign
        self._page = page
        self._random = random.Random(seed)
        self._at_once = at_once
        self._topics = {
            "churn-small": _Topic(20, 4, throttled=False),
            "churn-large": _Topic(1_500, 2, throttled=False),
            "churn-throttled": _Topic(throttled_megabytes, 4, throttled=True),
        }
        self._replicas: dict[TopicPartition, list[int]] = {}
        self.reassignments: list[ChurnedReassignment] = []

    def prepare(self) -> None:
        """Create the topics and fill them."""
        admin = AdminClient(self._cluster.client_config())
        nodes = self._cluster.node_ids
        for name, (megabytes, partitions, throttled) in sorted(self._topics.items()):
            placed = [self._random.sample(nodes, 2) for _ in range(partitions)]
            topic = NewTopic(name, partitions, replica_assignment=placed)
            admin.create_topics([topic])[name].result(60)
            count = partitions * megabytes * 1_000_000 // _RECORD_BYTES
            produce(self._cluster, name, count, value_bytes=_RECORD_BYTES)
            for number, replicas in enumerate(placed):
                self._replicas[TopicPartition(name, number)] = replicas
            if throttled:
                set_throttle(self._cluster, name, _RATE)

    def run(self, seconds: float, advance: Callable[[float], None]) -> None:
        """Reassign partitions for ``seconds``, then wait for the last ones."""
        stop = Event()
        writers = [
            Thread(
                target=produce,
                args=(self._cluster, name, 10_000_000),
                kwargs={
                    "value_bytes": _RECORD_BYTES,
                    "records_per_second": _WRITES_PER_SECOND,
                    "stop": stop,
                },
            )
            for name in sorted(self._topics)
        ]
        for writer in writers:
            writer.start()
        try:
            self._churn(seconds, advance)
        finally:
            stop.set()
            for writer in writers:
                writer.join()
            for name, topic in self._topics.items():
                if topic.throttled:
                    clear_throttle(self._cluster, name)

    def _churn(self, seconds: float, advance: Callable[[float], None]) -> None:
        began = last = time.monotonic()
        going: dict[TopicPartition, ChurnedReassignment] = {}
        due = began
        while going or time.monotonic() < began + seconds:
            now = time.monotonic()
            if now < began + seconds and now >= due and len(going) < self._at_once:
                reassignment = self._start(set(going))
                going[reassignment.partition] = reassignment
                due = now + self._random.uniform(*_PAUSE_SECONDS)
            self._observe(going)
            time.sleep(_LOOK_SECONDS)
            advance(min(time.monotonic(), began + seconds) - min(last, began + seconds))
            last = time.monotonic()

    def _start(self, going: set[TopicPartition]) -> ChurnedReassignment:
        partition = self._random.choice(sorted(self._replicas.keys() - going))
        stays = self._replicas[partition]
        others = [node for node in self._cluster.node_ids if node not in stays]
        to = [*self._random.sample(stays, 1), *self._random.sample(others, 1)]
        self._replicas[partition] = to
        reassignment = ChurnedReassignment(
            partition, self._topics[partition.topic].throttled, time.monotonic()
        )
        self.reassignments.append(reassignment)
        self._reassign(partition, to)
        return reassignment

    def _observe(self, going: dict[TopicPartition, ChurnedReassignment]) -> None:
        page, now = self._page(), time.monotonic()
        rows = {TopicPartition(r["topic"], r["partition"]): r for r in page["reassignments"]}
        ended: dict[TopicPartition, int] = {}
        for row in page["recent_reassignments"]:
            partition = TopicPartition(row["topic"], row["partition"])
            ended[partition] = max(row["at_ms"], ended.get(partition, 0))
        for partition, reassignment in list(going.items()):
            row = rows.get(partition)
            if row is not None:
                reassignment.seen = True
                if row["verdict"] in ALARMS:
                    reassignment.alarms.add(row["verdict"])
                if "eta_seconds" in row:
                    reassignment.etas.append(ShownEta(now, row["eta_seconds"], len(going) == 1))
            elif (ago := time.time() - ended.get(partition, 0) / 1000) < now - reassignment.began:
                reassignment.ended = now - ago
                del going[partition]
            elif not reassignment.seen and now - reassignment.began > _UNSEEN_SECONDS:
                del going[partition]  # it ended between two observations

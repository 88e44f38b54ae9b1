"""The load of a soak: groups that are made and deleted by the minute, and commits without end."""

from __future__ import annotations

import time
from collections import deque
from contextlib import suppress
from itertools import cycle

from confluent_kafka import Consumer, KafkaException, TopicPartition

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.load import produce
from caughtup.demo.cluster.topics import create_topics
from caughtup.demo.fleet.connection import GroupConnection
from caughtup.models.errors import CaughtupError
from tests.chaos.threads import Threads

TOPIC = "soaked"
PARTITIONS = 100
_GROUPS = 20
_BRIEF_LIVES = 20
_RECORDS = 100_000


class SoakLoad(Threads):
    """Commits each partition of a topic as one group after the other, at a rate; and churn.

    A request has a commit for each partition, so that so many a second cost the brokers little.
    """

    def __init__(
        self, cluster: EmbeddedCluster, commits_per_second: float, groups_per_minute: float
    ) -> None:
        super().__init__((self._commit,), (self._churn,))
        self.commits = self.made = self.deleted = 0
        self._cluster = cluster
        self._client = {**cluster.client_config(), "log_level": 0}
        self._pause = PARTITIONS / commits_per_second
        self._brief_pause = 60 / groups_per_minute

    def start(self) -> None:
        """Make the topic and begin."""
        create_topics(self._cluster, {TOPIC: PARTITIONS})
        produce(self._cluster, TOPIC, _RECORDS)
        super().start()

    def _commit(self) -> None:
        consumers = cycle(
            [Consumer({**self._client, "group.id": f"steady-{n}"}) for n in range(_GROUPS)]
        )
        due = time.monotonic()
        for number, consumer in enumerate(consumers):
            due = max(due + self._pause, time.monotonic() - 1.0)
            if self.stop.wait(max(0.0, due - time.monotonic())):
                return
            offset = number // _GROUPS % (_RECORDS // PARTITIONS)
            self.commits += self._commits(consumer, range(PARTITIONS), offset)

    def _churn(self) -> None:
        alive: deque[str] = deque()
        due = time.monotonic()
        while not self.stop.wait(max(0.0, due - time.monotonic())):
            due += self._brief_pause
            name = f"brief-{self.made}"
            consumer = Consumer({**self._client, "group.id": name})
            self.made += bool(self._commits(consumer, range(3), 1))
            consumer.close()
            alive.append(name)
            if len(alive) > _BRIEF_LIVES:
                with suppress(CaughtupError, OSError):
                    self._delete(alive.popleft())

    def _delete(self, group: str) -> None:
        host, port = self._cluster.bootstrap_servers.split(":")
        with GroupConnection((host, int(port)), "brief", 10) as connection:
            connection.delete(group)
        self.deleted += 1

    def _commits(self, consumer: Consumer, partitions: range, offset: int) -> int:
        offsets = [TopicPartition(TOPIC, partition, offset) for partition in partitions]
        try:
            consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException:
            return 0
        return len(partitions)

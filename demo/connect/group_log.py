"""Read a Connect group's generations and configurations from Kafka's logs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.topics import LoggedRecord, read_topic
from caughtup.demo.processes.children import ClosedOnExit
from caughtup.models.connect.generation import ConnectGeneration, read_connect_generation
from caughtup.models.errors import CaughtupError
from caughtup.models.polls.batch import decode_batch

_LOG = "__consumer_offsets"
_BATCH, _POLL_SECONDS = 500, 0.1
_SECONDS = 30.0
_CONNECTOR, _TASKS = "connector-", "commit-"


class LoggedGeneration(NamedTuple):
    """A generation, and when its record was written (ms): not before the leader's decision."""

    generation: ConnectGeneration
    written_ms: int

    @property
    def number(self) -> int:
        """The generation's number."""
        return self.generation.generation

    @property
    def names(self) -> tuple[str, ...]:
        """The client ids of its workers, sorted."""
        return tuple(sorted(worker.client_id for worker in self.generation.workers.values()))

    @property
    def leader(self) -> str:
        """The client id of its leader."""
        return self.generation.workers[self.generation.leader or ""].client_id

    @property
    def rejoin_at_ms(self) -> int | None:
        """When its delay ends (ms), and unassigned work is assigned; None without a delay."""
        delay_ms = self.generation.delay_ms
        return self.written_ms + delay_ms if delay_ms else None


class GroupLog(ClosedOnExit):
    """Follows a group's generations (those with workers) in ``__consumer_offsets``."""

    def __init__(self, cluster: EmbeddedCluster, group: str) -> None:
        self._group = group
        self._found: dict[int, LoggedGeneration] = {}
        self._consumer = Consumer(
            {**cluster.client_config(), "group.id": "caughtup-demo", "enable.auto.commit": False}
        )
        self._assigned = False

    def generations(self) -> list[LoggedGeneration]:
        """Return all generations so far, in their order; wait a short time for more."""
        if not self._assigned:
            # A new cluster creates the topic for the first member of a group.
            partitions = self._consumer.list_topics(_LOG, _SECONDS).topics[_LOG].partitions
            self._consumer.assign([TopicPartition(_LOG, p, OFFSET_BEGINNING) for p in partitions])
            self._assigned = bool(partitions)
        for message in self._consumer.consume(_BATCH, _POLL_SECONDS):
            if message.error() is not None:
                continue
            metadata = decode_batch([(message.key(), message.value())]).groups.get(self._group)
            generation = metadata and read_connect_generation(self._group, metadata)
            if generation:
                # A generation's first record has its leader's decision.
                one = LoggedGeneration(generation, message.timestamp()[1])
                self._found.setdefault(generation.generation, one)
        return [self._found[number] for number in sorted(self._found)]

    def wait(
        self, what: str, is_it: Callable[[LoggedGeneration], bool], seconds: float, since: int = 0
    ) -> LoggedGeneration:
        """Wait for a generation, not older than ``since``. Raises CaughtupError ``demo_failed``."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for one in self.generations():
                if one.number >= since and is_it(one):
                    return one
        raise CaughtupError("demo_failed", f"the log of {self._group} never contained: {what}")

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()


class ConfigLog:
    """The history of a worker cluster's config topic: connectors and numbers of tasks by offset."""

    def __init__(self, records: Sequence[LoggedRecord]) -> None:
        self._records = tuple(records)

    @classmethod
    def read(cls, cluster: EmbeddedCluster, topic: str) -> ConfigLog:
        """Read a config topic, which must not have been compacted yet."""
        return cls(list(read_topic(cluster, topic)))

    def before(self, offset: int) -> Mapping[str, int]:
        """Return the number of tasks of each connector, for a reader up to an offset.

        A connector has no tasks before its task configurations are written. Source: Connect's
        ``KafkaConfigBackingStore``.
        """
        connectors: set[str] = set()
        tasks: dict[str, int] = {}
        for record in self._records:
            key = (record.key or b"").decode()
            if record.offset >= offset:
                continue
            if name := _rest(key, _CONNECTOR):
                if record.value is None:
                    connectors.discard(name)
                    tasks.pop(name, None)
                else:
                    connectors.add(name)
            elif (name := _rest(key, _TASKS)) and record.value is not None:
                tasks[name] = json.loads(record.value)["tasks"]
        return {name: tasks.get(name, 0) for name in sorted(connectors)}


def _rest(key: str, prefix: str) -> str:
    return key.removeprefix(prefix) if key.startswith(prefix) else ""

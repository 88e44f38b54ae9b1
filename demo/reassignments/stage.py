"""The operations of the acts on a real cluster: topics, throttles, load, and reassignments."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any, Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.load import produce
from caughtup.demo.cluster.throttle import clear_throttle, set_throttle
from caughtup.demo.reassignments.staged import StagedReassignment, VerdictWatch
from caughtup.models.errors import CaughtupError
from caughtup.models.ids import TopicPartition

#: Reassigns a partition to these brokers; None cancels.
Reassign = Callable[[TopicPartition, list[int] | None], None]

_RECORD_BYTES: Final = 10_000
_WRITES_PER_SECOND: Final = 90.0
_NAMED_SECONDS: Final = 150.0
_END_SECONDS: Final = 240.0


class ReassignmentStage:
    """A cluster whose partitions are reassigned, and the service that watches it.

    ``reassign`` starts or cancels a reassignment, ``page`` returns what the service shows, and
    ``say`` prints each step.
    """

    def __init__(
        self,
        cluster: EmbeddedCluster,
        reassign: Reassign,
        page: Callable[[], Mapping[str, Any]],
        say: Callable[[str], None],
    ) -> None:
        self.cluster = cluster
        self.reassign = reassign
        self._page = page
        self._say = say
        self._admin = AdminClient(cluster.client_config())

    def watch(self) -> VerdictWatch:
        """Return a watch for the service's verdicts."""
        return VerdictWatch(self._page)

    def start(
        self, watch: VerdictWatch, name: str, partition: TopicPartition, to: list[int], outcome: str
    ) -> StagedReassignment:
        """Reassign a partition to these brokers, and record its verdicts."""
        self._say(f"{name}: {partition} to {to}")
        staged = watch.add(StagedReassignment(name, partition, outcome=outcome))
        self.reassign(partition, to)
        return staged

    def topic(self, name: str, replicas: list[int], megabytes: int) -> TopicPartition:
        """Create a topic of one partition on these brokers, and fill it."""
        topic = NewTopic(name, 1, replica_assignment=[replicas])
        try:
            self._admin.create_topics([topic])[name].result(60)
        except KafkaException as problem:
            raise CaughtupError("stage_failed", f"topic {name}: {problem}") from problem
        count = megabytes * 1_000_000 // _RECORD_BYTES
        produce(self.cluster, name, count, value_bytes=_RECORD_BYTES)
        return TopicPartition(name, 0)

    def delete(self, partition: TopicPartition) -> None:
        """Delete a partition's topic."""
        self._admin.delete_topics([partition.topic])[partition.topic].result(30)

    def throttle(self, partition: TopicPartition, rate: int) -> None:
        """Throttle the copying of a partition, in bytes/s, until ``clear_throttle``."""
        set_throttle(self.cluster, partition.topic, rate)

    def clear_throttle(self, partition: TopicPartition) -> None:
        """Remove a partition's throttle."""
        clear_throttle(self.cluster, partition.topic)

    @contextmanager
    def throttled(self, partition: TopicPartition, rate: int) -> Iterator[None]:
        """Throttle the copying of a partition inside the context, in bytes/s."""
        self.throttle(partition, rate)
        yield
        self.clear_throttle(partition)

    @contextmanager
    def writing(self, partition: TopicPartition) -> Iterator[None]:
        """Write 0.9 MB/s to a partition inside the context."""
        stop = Event()
        writer = Thread(
            target=produce,
            args=(self.cluster, partition.topic, 1_000_000),
            kwargs={
                "value_bytes": _RECORD_BYTES,
                "records_per_second": _WRITES_PER_SECOND,
                "stop": stop,
            },
        )
        writer.start()
        try:
            yield
        finally:
            stop.set()
            writer.join()

    def await_named(
        self, reassignments: Sequence[StagedReassignment], seconds: float = _NAMED_SECONDS
    ) -> None:
        """Wait for the expected verdicts; a missing one shows in the result."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and any(one.named_after is None for one in reassignments):
            time.sleep(0.2)

    def await_ends(self, reassignments: Sequence[StagedReassignment]) -> None:
        """Wait for the reassignments' ends; a missing one shows in the result."""
        deadline = time.monotonic() + _END_SECONDS
        while time.monotonic() < deadline and any(one.ended is None for one in reassignments):
            time.sleep(0.2)

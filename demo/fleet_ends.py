"""Looks at the log ends of a generated fleet's partitions, as the service publishes them."""

from __future__ import annotations

import json

from confluent_kafka import Producer

from caughtup.demo.cluster import EmbeddedCluster
from caughtup.demo.fleet import FleetShape, fleet_topics, log_end
from caughtup.demo.topics import create_topics
from caughtup.models.errors import CaughtupError

#: The service's topic, with the default prefix.
END_OFFSETS_TOPIC = "caughtup-end-offsets"
_SCHEMA = 1
_SECONDS = 120


def write_looks(cluster: EmbeddedCluster, shape: FleetShape, every_ms: int) -> None:
    """Write a look at each partition every so often in the fleet's time, none before that.

    No look is after the fleet's span. Raises CaughtupError ``topic_failed`` or
    ``produce_failed``.
    """
    create_topics(cluster, {END_OFFSETS_TOPIC: 1}, {"cleanup.policy": "compact"})
    producer = Producer({**cluster.client_config(), "linger.ms": 50})
    for after_ms in range(every_ms, shape.span_ms + 1, every_ms):
        for topic, partitions in fleet_topics(shape).items():
            for partition in range(partitions):
                end = log_end(shape, topic, partition, after_ms)
                producer.produce(
                    END_OFFSETS_TOPIC,
                    _look(topic, partition, end, shape.start_ms + after_ms),
                    f"{topic}-{partition}".encode(),
                    timestamp=shape.start_ms + after_ms,
                )
        if left := producer.flush(_SECONDS):
            raise CaughtupError("produce_failed", f"{left} looks at ends were not delivered")


def _look(topic: str, partition: int, end: int, as_of_ms: int) -> bytes:
    look = {"schema": _SCHEMA, "topic": topic, "partition": partition, "start_offset": 0}
    look |= {"last_stable_offset": end, "end_offset": end, "as_of_ms": as_of_ms}
    return json.dumps(look).encode()

"""Write the end offsets of a generated fleet's partitions, like the service."""

from __future__ import annotations

from confluent_kafka import Producer

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.topics import create_topics
from caughtup.demo.fleet.timeline import FleetSettings, fleet_topics, log_end
from caughtup.models.errors import CaughtupError
from caughtup.models.ids import TopicPartition
from caughtup.models.offsets import EndOffsets
from caughtup.models.records.end_offsets import FORMAT, EndOffsetsRecord
from caughtup.models.records.topics import END_OFFSETS, with_prefix

_TOPIC = with_prefix(END_OFFSETS)
_SECONDS = 120


def write_end_offsets(cluster: EmbeddedCluster, settings: FleetSettings, every_ms: int) -> None:
    """Write each partition's end offsets every ``every_ms`` of the fleet's time, up to its span.

    Raises CaughtupError ``topic_failed`` or ``produce_failed``.
    """
    create_topics(cluster, {_TOPIC: 1}, {"cleanup.policy": "compact"})
    producer = Producer({**cluster.client_config(), "linger.ms": 50})
    for after_ms in range(every_ms, settings.span_ms + 1, every_ms):
        for topic, partitions in fleet_topics(settings).items():
            for partition in range(partitions):
                end, at_ms = (
                    log_end(settings, topic, partition, after_ms),
                    settings.start_ms + after_ms,
                )
                record = EndOffsetsRecord.from_ends(
                    TopicPartition(topic, partition), EndOffsets(0, end, end, at_ms)
                )
                value = FORMAT.encode(record)
                producer.produce(_TOPIC, value, record.key, timestamp=at_ms)
        if left := producer.flush(_SECONDS):
            raise CaughtupError("produce_failed", f"{left} records of ends were not delivered")

"""The racks of partitions' replicas, by which Kafka Streams may assign tasks (KIP-925)."""

from __future__ import annotations

from collections.abc import Callable

from confluent_kafka.admin import AdminClient, ClusterMetadata

from caughtup.agents.kafka.answered import REQUEST_SECONDS, answered
from caughtup.models.ids import TopicPartition


def replica_racks(
    admin: AdminClient, metadata: ClusterMetadata, wants: Callable[[str], bool]
) -> dict[TopicPartition, tuple[str | None, ...]]:
    """Return the rack of each replica of every partition of the topics that ``wants`` names.

    None of a replica whose broker has no rack, or is down. Blocks. Raises KafkaException when
    nobody answers.
    """
    described = answered(admin.describe_cluster(request_timeout=REQUEST_SECONDS))
    racks = {node.id: node.rack or None for node in described.nodes}
    return {
        TopicPartition(name, number): tuple(racks.get(broker) for broker in partition.replicas)
        for name, topic in metadata.topics.items()
        if wants(name)
        for number, partition in topic.partitions.items()
    }

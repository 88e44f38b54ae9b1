"""The racks of partitions' replicas, which Kafka Streams may use to assign tasks (KIP-925)."""

from __future__ import annotations

from collections.abc import Callable

from confluent_kafka.admin import AdminClient, ClusterMetadata

from caughtup.agents.kafka.admin_results import REQUEST_SECONDS, result_of
from caughtup.models.ids import TopicPartition


def replica_racks(
    admin: AdminClient, metadata: ClusterMetadata, wants: Callable[[str], bool]
) -> dict[TopicPartition, tuple[str | None, ...]]:
    """Return the rack of each replica of every partition of the topics that ``wants`` names.

    A rack is None if the replica's broker has none or is down. Blocks. Raises KafkaException when
    no broker answers.
    """
    described = result_of(admin.describe_cluster(request_timeout=REQUEST_SECONDS))
    racks = {node.id: node.rack or None for node in described.nodes}
    return {
        TopicPartition(name, number): tuple(racks.get(broker) for broker in partition.replicas)
        for name, topic in metadata.topics.items()
        if wants(name)
        for number, partition in topic.partitions.items()
    }

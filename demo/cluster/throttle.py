"""Set and clear replication throttles, as an operator does."""

from __future__ import annotations

from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from caughtup.demo.cluster.cluster import EmbeddedCluster

_RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
_REPLICAS = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
_SECONDS = 30


def set_throttle(cluster: EmbeddedCluster, topic: str, bytes_per_second: int) -> None:
    """Throttle replication of a topic on every broker, in bytes a second."""
    _alter(
        cluster,
        topic,
        AlterConfigOpType.SET,
        dict.fromkeys(_RATES, str(bytes_per_second)),
        dict.fromkeys(_REPLICAS, "*"),
    )


def clear_throttle(cluster: EmbeddedCluster, topic: str) -> None:
    """Remove a topic's throttle on every broker."""
    delete = AlterConfigOpType.DELETE
    _alter(cluster, topic, delete, dict.fromkeys(_RATES, ""), dict.fromkeys(_REPLICAS, ""))


def _alter(
    cluster: EmbeddedCluster,
    topic: str,
    operation: AlterConfigOpType,
    rates: dict[str, str],
    replicas: dict[str, str],
) -> None:
    def entries(values: dict[str, str]) -> list[ConfigEntry]:
        return [
            ConfigEntry(name, value or None, incremental_operation=operation)
            for name, value in values.items()
        ]

    resources = [
        ConfigResource(ResourceType.BROKER, str(node), incremental_configs=entries(rates))
        for node in cluster.running_nodes
    ]
    resources.append(
        ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries(replicas))
    )
    admin = AdminClient(cluster.client_config())
    for resource in resources:
        # One resource a call: librdkafka sends a broker's configs to that broker.
        for future in admin.incremental_alter_configs([resource]).values():
            future.result(_SECONDS)

"""Creates topics on an embedded cluster."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.models.errors import CaughtupError

_SECONDS = 60


def create_topics(
    cluster: EmbeddedCluster,
    partitions: Mapping[str, int],
    config: Mapping[str, str] | None = None,
    replicas: int = -1,
) -> None:
    """Create topics with these numbers of partitions, and wait until all brokers know them.

    ``replicas`` of -1 means the brokers' default: the number of nodes, at most 3. Raises
    CaughtupError ``topic_failed``.
    """
    admin = AdminClient(cluster.client_config())
    topics = [
        NewTopic(name, count, replicas, config=dict(config or {}))
        for name, count in sorted(partitions.items())
    ]
    for name, created in admin.create_topics(topics).items():
        try:
            created.result(_SECONDS)
        except KafkaException as problem:
            raise CaughtupError(
                "topic_failed", f"cannot create topic {name}: {problem.args[0].str()}"
            ) from problem

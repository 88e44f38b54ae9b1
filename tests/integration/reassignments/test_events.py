"""What becomes of partitions in movement, told on a real topic once, whatever the service does."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from caughtup.agents.kafka.protocol.client import reassigner
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.load import produce
from caughtup.demo.cluster.throttle import clear_throttle, set_throttle
from caughtup.demo.cluster.topics import create_topics
from caughtup.models.ids import TopicPartition
from tests.integration.service.test_restarts import records
from tests.support.service import Service, wait_for

pytestmark = pytest.mark.thorough

THROTTLE_BYTES = 200_000
RECORDS, RECORD_BYTES = 3_000, 5_000


def told(cluster: EmbeddedCluster, service: Service) -> dict[str, list[tuple[str, str | None]]]:
    """Return the events on caughtup-movements by topic, with why where there is one."""
    found: dict[str, list[tuple[str, str | None]]] = {}
    for event in records(cluster, service.topic("movements")):
        assert event["kind"] == "partition"
        found.setdefault(event["topic"], []).append((event["event"], event.get("why")))
    return found


def row(service: Service, partition: TopicPartition) -> dict[str, Any] | None:
    """Return what the page says of a reassignment."""
    rows = service.page()["reassignments"]
    return next((r for r in rows if (r["topic"], r["partition"]) == partition), None)


def ended(service: Service, partition: TopicPartition) -> str | None:
    """Return how a partition's reassignment ended, by the page."""
    rows = service.page()["recent_reassignments"]
    found = [r["outcome"] for r in rows if (r["topic"], r["partition"]) == partition]
    return found[0] if found else None


def test_each_reassignment_is_planned_once_and_promoted_or_dropped_once_also_over_restarts(
    cluster: EmbeddedCluster,
) -> None:
    suffix = uuid.uuid4().hex[:8]
    completed, cancelled, ends_unseen = (
        TopicPartition(f"{name}-{suffix}", 0) for name in ("completed", "cancelled", "unseen")
    )
    reassign = reassigner(cluster.bootstrap_servers)
    for partition in (completed, cancelled, ends_unseen):
        create_topics(cluster, {partition.topic: 1}, replicas=1)
        produce(cluster, partition.topic, RECORDS, value_bytes=RECORD_BYTES)
        set_throttle(cluster, partition.topic, THROTTLE_BYTES)
    with Service(cluster) as service:
        for partition in (completed, cancelled, ends_unseen):
            reassign(partition, [3 - leader(cluster, partition)])
            wait_for(f"{partition} is seen", lambda p=partition: row(service, p))
        reassign(cancelled, None)
        wait_for("the cancel is seen", lambda: ended(service, cancelled))
        planned = {completed.topic: [("planned", None)], ends_unseen.topic: [("planned", None)]}
        dropped = {cancelled.topic: [("planned", None), ("dropped", "cancelled")]}
        wait_for("it is told", lambda: told(cluster, service) == planned | dropped)

        since = wait_for("it is seen", lambda: row(service, completed))["age_seconds"]
        service.kill()
        reassign(ends_unseen, None)
        service.start()
        again = wait_for("it is seen again", lambda: row(service, completed))
        assert again["age_seconds"] >= since
        wait_for("the end meanwhile is seen", lambda: ended(service, ends_unseen))

        for partition in (completed, cancelled, ends_unseen):
            clear_throttle(cluster, partition.topic)
        wait_for("it ends", lambda: ended(service, completed))
        assert ended(service, completed) == "completed"
        expected = {
            completed.topic: [("planned", None), ("promoted", None)],
            cancelled.topic: [("planned", None), ("dropped", "cancelled")],
            ends_unseen.topic: [("planned", None), ("dropped", "cancelled")],
        }
        wait_for("all is told", lambda: told(cluster, service) == expected)
        assert service.value("reassignments_ended_total", outcome="completed") == 1


def leader(cluster: EmbeddedCluster, partition: TopicPartition) -> int:
    """Ask who leads a partition."""
    admin = AdminClient(cluster.client_config())
    topic = admin.list_topics(partition.topic).topics[partition.topic]
    found: int = topic.partitions[partition.partition].leader
    return found

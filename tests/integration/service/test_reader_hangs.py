"""The brokers stop answering the service's reader: its groups are not the ones to blame."""

from __future__ import annotations

import time
import uuid

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.load import produce
from caughtup.demo.fleet.offset_commits import make_offsets_topic
from caughtup.models.assignors.java.strings import coordinator_partition
from tests.integration.conftest import MakeCluster
from tests.support.service import Service, commit, wait_for

pytestmark = pytest.mark.thorough

#: The node that stays has the records and the service's own group, the other the group's commits.
STAYS, GOES = 1, 2
TOPIC = "clicks"
OFFSETS = "__consumer_offsets"
OFFSETS_PARTITIONS = 4


def kept_on(cluster: EmbeddedCluster, node: int) -> str:
    """Make up the name of a group whose commits a node keeps."""
    admin = AdminClient(cluster.client_config())
    partitions = wait_for(
        "the topic of commits",
        lambda: admin.list_topics(OFFSETS, timeout=10).topics[OFFSETS].partitions,
    )
    while True:
        name = f"group-{uuid.uuid4().hex[:8]}"
        if partitions[coordinator_partition(name, OFFSETS_PARTITIONS)].leader == node:
            return name


def test_a_group_is_not_said_to_have_stopped_while_its_commits_cannot_be_read(
    make_cluster: MakeCluster,
) -> None:
    properties = {
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": str(OFFSETS_PARTITIONS),
    }
    cluster = make_cluster(nodes=2, broker_properties=properties)
    admin = AdminClient(cluster.client_config())
    admin.create_topics([NewTopic(TOPIC, num_partitions=1, replica_assignment=[[STAYS]])])[
        TOPIC
    ].result(30)
    make_offsets_topic(cluster)
    group = kept_on(cluster, GOES)
    own = kept_on(cluster, STAYS)
    with Service(cluster, application_id=own, topic_replication_factor=2) as service:

        def fares() -> tuple[str, str]:
            summary = next((g for g in service.page()["groups"] if g["group"] == group), {})
            return summary.get("status", ""), summary.get("why", "")

        def keeps_up() -> bool:
            nonlocal offset
            produce(cluster, TOPIC, 10)
            offset += 10
            commit(cluster, group, TOPIC, offset)
            return fares()[0] == "ok" and service.value("group_lag_velocity", group=group) is None

        offset = 0
        for _ in range(8):  # a rhythm
            keeps_up()
            time.sleep(0.2)
        wait_for("the group keeps up", keeps_up)

        cluster.kill_node(GOES)
        produce(cluster, TOPIC, 1_000)
        seen = set()

        def is_unread() -> bool:
            status, why = fares()
            seen.add(status)
            return status == "unknown" and "the service has read no commits" in why

        wait_for("the reader to be found hanging", is_unread)
        polled = service.value("offsets_last_poll_timestamp_seconds")
        assert polled is not None
        wait_for("ten seconds without an answer", lambda: fares() and time.time() > polled + 10)
        assert is_unread()
        assert "stopped" not in seen
        assert "stalled" not in seen
        assert service.value("offsets_last_poll_timestamp_seconds") == pytest.approx(polled, abs=2)
        lag = service.value("group_lag_records", group=group)
        assert lag is not None
        assert lag >= 1_000

        cluster.start_node(GOES)
        commit(cluster, group, TOPIC, offset + 1_000)
        wait_for("the group to be well", lambda: fares()[0] == "ok")
        assert (service.value("offsets_last_poll_timestamp_seconds") or 0) > polled

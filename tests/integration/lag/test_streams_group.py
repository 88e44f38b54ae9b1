"""A real Kafka Streams application on the brokers' own protocol (KIP-1071), seen from outside."""

from __future__ import annotations

from pathlib import Path

from caughtup.demo.apps.streams import StreamsApplication
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.load import produce
from tests.support.service import Service, caughtup, wait_for

APPLICATION = "counts-by-broker"


def test_an_application_on_the_streams_protocol_is_seen_with_its_tasks(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    application = StreamsApplication(
        cluster, APPLICATION, partitions=2, properties={"group.protocol": "streams"}
    )
    arguments = ["--bootstrap-servers", cluster.bootstrap_servers, "--format", "json"]

    def lines(kind: str) -> list[dict[str, object]]:
        ran = caughtup("lag", APPLICATION, *arguments, directory=tmp_path)
        return [line for line in ran.lines if line["kind"] == kind]

    with application, Service(cluster) as service:
        application.start_instance("one")
        produce(cluster, application.source, 100, keys=50)
        service.wait_value(1, "group_members", group=APPLICATION, group_type="streams")
        service.wait_total(0, "group_lag_records", group=APPLICATION)
        tasks = wait_for("the tasks", lambda: len(found := lines("task")) == 4 and found)
        assert {line["task"] for line in tasks} == {"0_0", "0_1", "1_0", "1_1"}
        assert {line["role"] for line in tasks} == {"active"}
        assert len({line["process"] for line in tasks}) == 1
        (member,) = lines("member")
        assert member["process"] == tasks[0]["process"]
        assigned = {topic for topic, _ in member["assigned"]}  # type: ignore[attr-defined]
        assert application.source in assigned
        assert {line["group_type"] for line in lines("partition")} == {"streams"}
        ran = caughtup("explain", APPLICATION, *arguments, directory=tmp_path)
        assert ran.message.endswith("(KIP-1071): no leader decides there")

"""A real Kafka Streams application on the brokers' own protocol (KIP-1071), seen from outside."""

from __future__ import annotations

from pathlib import Path

import pytest

from caughtup.demo.apps.streams import StreamsApplication
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.load import produce
from tests.support.service import Service, caughtup, wait_for

APPLICATION = "counts-by-broker"


@pytest.mark.thorough
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
        explained = caughtup("explain", APPLICATION, *arguments, directory=tmp_path).lines[0]
        assert explained["decision"]["client"] == "group-coordinator"  # type: ignore[index]
        assert explained["decision"]["result"] == "match"  # type: ignore[index]
        ran = caughtup("simulate", APPLICATION, "--add", "1", *arguments, directory=tmp_path)
        built = ran.lines[0]["slow"]["copies_built"]  # type: ignore[index]
        # Brokers hand tasks over cold, and all of these have state: what the newcomer runs is built.
        application.start_instance("two")

        def newcomers() -> int:
            found = lines("task")
            own = sum(line["process"] != member["process"] for line in found)
            return own if len(found) == 4 else 0

        wait_for("the newcomer has as many tasks as were foretold", lambda: newcomers() == built)
        assert built == 2
        names = {str(line["client_id"]).split("-StreamThread-")[0] for line in lines("member")}
        assert len(names) == 2
        asked = ["safe", APPLICATION, "--stop", min(names), "--restore-rate", "20000", *arguments]
        safe = caughtup(*asked, "--leave-group", "--within", "5m", directory=tmp_path)
        assert (safe.code, safe.lines[0]["safe"]) == (0, True), safe.message
        unsafe = caughtup(*asked, "--leave-group", "--within", "0.001s", directory=tmp_path)
        assert (unsafe.code, unsafe.lines[0]["safe"]) == (1, False), unsafe.message

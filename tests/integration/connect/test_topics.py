"""Connect clusters whose topics aren't as they should be: said, and no other group is touched."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.topics import create_topics, read_topic
from caughtup.demo.connect.workers import ConnectWorkers
from caughtup.demo.story.connect.play import file_source
from tests.integration.connect.conftest import MakeWorkers
from tests.support.service import Service, wait_for

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(300)]


def one_worker(
    cluster: EmbeddedCluster, make_workers: MakeWorkers, **properties: str
) -> ConnectWorkers:
    """Make a Connect cluster of one worker, with a source."""
    found = make_workers(max_delay_ms=3_000, properties=properties)
    topic = f"{found.group}-lines"
    create_topics(cluster, {topic: 1})
    (found.directory / topic).write_text("line\n")
    found.start("W1")
    found.wait_healthy("W1")
    found.configure(topic, file_source(found.directory / topic, topic))
    return found


def described(service: Service, workers: ConnectWorkers, **wanted: object) -> dict[str, Any]:
    """Wait until the line of the group has these fields; None stands for one that isn't there."""

    def ask() -> dict[str, Any] | None:
        for line in service.connect(workers.group).get("group", []):
            if all(line.get(name) == value for name, value in wanted.items()):
                return line
        return None

    return wait_for(f"{workers.group} has {wanted}", ask, 90.0)


def results(line: dict[str, Any]) -> set[str]:
    return {one["result"] for one in line["history"]}


@pytest.fixture(scope="module")
def calm(cluster: EmbeddedCluster, service: Service, make_workers) -> ConnectWorkers:
    """A Connect cluster with which nothing is wrong, beside the others."""
    found = one_worker(cluster, make_workers)
    described(service, found, topics_unknown=None, result="match")
    return found


@pytest.fixture(autouse=True)
def calm_stays_as_it_is(service: Service, calm: ConnectWorkers):
    """After each test: the other cluster is known as before, and the service is well."""
    before = described(service, calm, topics_unknown=None)
    yield
    after = described(service, calm, topics_unknown=None)
    assert (after["topics"], results(after)) == (before["topics"], {"match"})
    assert service.ready()
    assert service.page()["faults"] == []


def test_two_connect_clusters_with_the_same_topics_are_told_of_each_other(
    cluster: EmbeddedCluster, service: Service, make_workers
) -> None:
    first = one_worker(cluster, make_workers)
    second = one_worker(
        cluster,
        make_workers,
        **{
            "config.storage.topic": first.config_topic,
            "offset.storage.topic": first.offset_topic,
            "status.storage.topic": first.status_topic,
        },
    )
    described(service, first, shared_with=[second.group])
    line = described(service, second, shared_with=[first.group])
    assert line["topics"]["config"] == first.config_topic
    assert "mismatch" not in results(line)


def test_topics_whose_names_do_not_show_it_are_found_where_settings_name_them(
    cluster: EmbeddedCluster, service: Service, make_workers
) -> None:
    topics = {"config": "one", "status": "two", "offset": "three"}
    named = {kind: f"hidden-{word}" for kind, word in topics.items()}
    workers = one_worker(
        cluster, make_workers, **{f"{kind}.storage.topic": name for kind, name in named.items()}
    )
    line = described(service, workers, topics=None)
    assert line["topics_unknown"]
    assert "mismatch" not in results(line)

    told = ":".join([workers.group, *(named[kind] for kind in ("config", "status", "offset"))])
    with Service(cluster, connect_topics=[told]) as other:
        line = described(other, workers, topics=named, result="match")
        assert "topics_unknown" not in line


def test_a_config_topic_that_is_deleted_is_said(
    cluster: EmbeddedCluster, service: Service, make_workers
) -> None:
    workers = one_worker(cluster, make_workers)
    described(service, workers, topics_unknown=None, result="match")
    workers.close()  # or its reads would have it made again

    admin = AdminClient(cluster.client_config())
    admin.delete_topics([workers.config_topic])[workers.config_topic].result(30)

    line = described(service, workers, topics=None)
    assert line["topics_unknown"]


def test_a_config_topic_that_was_compacted_contradicts_nobody(
    cluster: EmbeddedCluster, make_workers
) -> None:
    workers = one_worker(cluster, make_workers)
    admin = AdminClient(cluster.client_config())
    often = {
        "segment.ms": "100",
        "min.cleanable.dirty.ratio": "0.001",
        "max.compaction.lag.ms": "100",
    }
    entries = [
        ConfigEntry(n, v, incremental_operation=AlterConfigOpType.SET) for n, v in often.items()
    ]
    resource = ConfigResource("topic", workers.config_topic, incremental_configs=entries)
    admin.incremental_alter_configs([resource])[resource].result(30)
    connector = f"{workers.group}-lines"
    source = file_source(workers.directory / connector, connector)

    def compacted() -> bool:
        workers.configure(connector, {**source, "batch.size": str(next(sizes))})
        offsets = [one.offset for one in read_topic(cluster, workers.config_topic)]
        return offsets[-1] - offsets[0] + 1 > len(offsets)

    sizes = iter(range(1_000, 100_000))
    wait_for("the topic is compacted", compacted, 90.0)
    with Service(cluster) as later:
        line = described(later, workers, topics_unknown=None)
        assert "mismatch" not in results(line), line["history"]
        lines = later.connect(workers.group)
        assert [one["name"] for one in lines["connector"]] == [connector]
        assert "unassigned" not in lines

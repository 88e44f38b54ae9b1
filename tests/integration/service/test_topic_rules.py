"""A cluster with rules for new topics: the settings that fit them, and what is said without them."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from caughtup.agents.topics.definitions import SERVICE_TOPICS
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.load import produce
from caughtup.demo.cluster.topics import create_topics
from caughtup.demo.processes.children import free_ports
from caughtup.pipelines.java.jars import classpath
from tests.support.documented import blocks
from tests.support.kafka.rented import DOCUMENT
from tests.support.oracles import compiled_java
from tests.support.service import Ran, Service, caughtup, commit, settings_file, wait_for

#: Three brokers take 10 s of a processor to start.
pytestmark = pytest.mark.thorough

_RULES = Path(__file__).parents[2] / "support" / "java" / "TopicRules.java"
#: Names begin with one of these; under the second one, these configs may not be given.
TEAM, STRICT = "team-a.", "strict."
REFUSED = ("cleanup.policy", "compression.type")
#: The group whose lag the services tell.
GROUP, TOPIC = "readers", f"{TEAM}words"


@pytest.fixture(scope="module")
def ruled() -> Iterator[EmbeddedCluster]:
    properties = {
        "create.topic.policy.class.name": "oracles.TopicRules",
        "test.prefixes": f"{TEAM},{STRICT}",
        "test.refused": ",".join(REFUSED),
    }
    path = os.pathsep.join((classpath(), str(compiled_java([_RULES]))))
    with EmbeddedCluster(3, broker_properties=properties, kafka=path) as cluster:
        create_topics(cluster, {TOPIC: 1})
        produce(cluster, TOPIC, 10)
        commit(cluster, GROUP, TOPIC, 4)
        yield cluster


def documented() -> dict[str, Any]:
    """Return the settings that docs/rented.md has for such a cluster."""
    found = [tomllib.loads(block) for block in blocks("toml", DOCUMENT)]
    (settings,) = [one for one in found if "topic_prefix" in one]
    return settings


def ends(cluster: EmbeddedCluster, directory: Path, *words: str, **settings: object) -> Ran:
    """Run a command that is to end by itself."""
    path = settings_file(directory, cluster.bootstrap_servers, {}, **settings)
    return caughtup(*words, "--config", path, directory=directory)


def test_the_settings_of_the_document_fit(ruled: EmbeddedCluster) -> None:
    settings = documented()
    assert settings.pop("topic_prefix") == f"{settings['application_id']}-"
    with Service(ruled, **settings) as service:
        service.wait_value(6, "group_lag_records", group=GROUP)
        service.wait_value(1, "active")
        assert not service.value("probe_errors_total", probe="publish")
        admin = AdminClient(ruled.client_config())
        found = admin.list_topics(timeout=30).topics
        for own in SERVICE_TOPICS:
            (partition,) = found[service.topic(own.name)].partitions.values()
            assert len(partition.replicas) == 3


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"topic_replication_factor": 2}, "topics have to have 3 replicas"),
        ({"topic_prefix": "caughtup-"}, f"names have to begin with {TEAM}"),
        ({"topic_prefix": f"{STRICT}caughtup-"}, "may not be given"),
        ({"topic_replication_factor": 9}, "replication factor of 9 cannot be reached"),
    ],
    ids=["replicas", "prefix", "configs", "more replicas than brokers"],
)
def test_settings_that_do_not_fit(
    ruled: EmbeddedCluster, tmp_path: Path, wrong: dict[str, object], said: str
) -> None:
    own = {"application_id": f"{TEAM}wrong", "topic_prefix": f"{TEAM}wrong-"}
    settings = {**documented(), **own, **wrong}
    ran = ends(ruled, tmp_path, "run", web_port=free_ports(1)[0], **settings)
    assert ran.code == 1
    (line,) = [one for one in ran.err.splitlines() if one.startswith("caughtup: ")]
    checked = ends(ruled, tmp_path, "check", **settings)
    assert checked.code == 1
    for told in (line, checked.message):
        assert said in told, told
        assert "the brokers have rules for topics" in told
        for name in ("topic_prefix", "topic_replication_factor"):
            assert f"{name} (it is {settings[name]!r})" in told
        assert "or create it yourself, with 1 partition" in told
        assert "allow CREATE" not in told
    assert "Traceback" not in ran.err + ran.out + checked.err


def test_topics_that_were_created_by_hand(ruled: EmbeddedCluster) -> None:
    application = f"{STRICT}by-hand"
    admin = AdminClient(ruled.client_config())
    wanted = [NewTopic(f"{application}-{own.name}", 1, 3) for own in SERVICE_TOPICS]
    for created in admin.create_topics(wanted).values():
        created.result(30)
    with Service(ruled, application_id=application, topic_replication_factor=3) as service:
        service.wait_value(6, "group_lag_records", group=GROUP)
        service.wait_value(1, "active")
        differs = "cleanup.policy is delete, not compact: records that are not written again"
        wait_for("it says what differs", lambda: differs in service.log)
        problems = {one.labels["problem"] for one in service.metrics("topic_problems") if one.value}
        assert problems >= set(REFUSED)
        assert service.process.exit_code is None
        assert not service.value("probe_errors_total", probe="publish")

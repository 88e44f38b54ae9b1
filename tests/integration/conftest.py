"""Real Kafka clusters for the integration tests."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from caughtup.demo.cluster.broker_config import Tls
from caughtup.demo.cluster.cluster import EmbeddedCluster
from tests.support.kafka.keystores import broker_files
from tests.support.service import Service, wait_for

#: Leaders are on both nodes, and copying records between them took as long as writing them.
_UNREPLICATED = {"default.replication.factor": "1", "offsets.topic.replication.factor": "1"}

MakeTopic = Callable[..., str]
MakeCluster = Callable[..., EmbeddedCluster]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = f"{Path(__file__).parent}/"
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(pytest.mark.integration)


@pytest.fixture(scope="package")
def shared_cluster() -> Iterator[EmbeddedCluster]:
    """One cluster for all files that tests/conftest.py deals to a worker together.

    It ends where a worker goes on to other folders: brokers that nobody asks take a twentieth of a
    processor.
    """
    with EmbeddedCluster(nodes=2, broker_properties=_UNREPLICATED) as cluster:
        yield cluster


@pytest.fixture(scope="package")
def cluster(shared_cluster: EmbeddedCluster) -> EmbeddedCluster:
    """Two nodes, plaintext, shared by these tests: use topics and groups of your own."""
    return shared_cluster


@pytest.fixture(scope="module")
def service(cluster: EmbeddedCluster) -> Iterator[Service]:
    """The service beside the shared cluster, for the tests of a file."""
    with Service(cluster) as service:
        yield service


@pytest.fixture
def group() -> str:
    """A group of the test's own."""
    return f"group-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def make_cluster() -> Iterator[MakeCluster]:
    """Makes started clusters, of EmbeddedCluster's arguments, that end with the test."""
    with ExitStack() as clusters:
        yield lambda *args, **kwargs: clusters.enter_context(EmbeddedCluster(*args, **kwargs))


@pytest.fixture
def make_topic(cluster: EmbeddedCluster) -> MakeTopic:
    """Makes topics with names of their own on the shared cluster."""

    def make(
        prefix: str = "topic", partitions: int = 1, config: dict[str, str] | None = None
    ) -> str:
        name = f"{prefix}-{uuid.uuid4().hex[:8]}"
        topic = NewTopic(name, num_partitions=partitions, config=config or {})
        admin = AdminClient(cluster.client_config())  # Held: a collected client drops its requests.
        admin.create_topics([topic])[name].result(30)
        wait_for(f"{name} has leaders", lambda: _has_leaders(admin, name, partitions))
        return name

    return make


def _has_leaders(admin: AdminClient, topic: str, partitions: int) -> bool:
    """Return whether the brokers already answer for a topic that was just created."""
    asked = {TopicPartition(topic, number): OffsetSpec.latest() for number in range(partitions)}
    try:
        for found in admin.list_offsets(asked, request_timeout=10).values():
            found.result()
    except KafkaException:
        return False
    return True


@pytest.fixture(scope="session")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Tls:
    """A certificate for 127.0.0.1, its key as Kafka reads it, and its authority."""
    return broker_files(tmp_path_factory.mktemp("tls"))

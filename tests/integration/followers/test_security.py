"""A follower with an application's own rights, and without any on caughtup's topics."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import (
    AdminClient,
    ResourceType,
)

from caughtup.demo.cluster.broker_config import Security
from caughtup.demo.cluster.cluster import EmbeddedCluster
from tests.support.followers.streams_application import Following, recommend
from tests.support.kafka.acls import ALL, READ, WRITE, allow, prefixed

pytestmark = pytest.mark.thorough

PASSWORD = "a password of its own"


@pytest.fixture(scope="module")
def secure() -> Iterator[EmbeddedCluster]:
    """Passwords and an authorizer; the application may do all with what is its own."""
    users = {"admin": "of the admin", "application": PASSWORD}
    with EmbeddedCluster(security=Security("sasl_plaintext", users, authorizer=True)) as cluster:
        own = (
            prefixed(kind, "followed-", ALL) for kind in (ResourceType.TOPIC, ResourceType.GROUP)
        )
        allow(AdminClient(cluster.client_config()), "application", *own)
        yield cluster


def test_without_rights_the_application_runs_and_with_them_it_follows(
    secure: EmbeddedCluster, jar: Path
) -> None:
    properties = {
        "bootstrap.servers": secure.bootstrap_servers,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": (
            "org.apache.kafka.common.security.plain.PlainLoginModule required "
            f'username="application" password="{PASSWORD}";'
        ),
    }
    with Following(secure, jar, properties=properties) as following:
        following.application.start_instance("one")
        refused = f"Not authorized to access topics: [{following.prefix}recommended-assignments]"
        following.wait_log("one", refused)
        following.wait_log("one", f"cannot send to {following.prefix}application-states")
        following.wait_log("one", "(reader_failed, next rebalance in")
        assert following.application.state("one") == "RUNNING"
        assert following.states() == []

        rights = (("recommended-assignments", READ), ("application-states", WRITE))
        allow(
            AdminClient(secure.client_config()),
            "application",
            *(
                prefixed(ResourceType.TOPIC, following.prefix + name, operation)
                for name, operation in rights
            ),
        )
        state = following.wait_reason("no_recommendation")
        record = recommend(state)
        following.publish(record)
        followed = following.wait_reason("followed")
        assert followed["outcome"]["followed"] == record["decision_id"]
        following.application.wait_running("one")
        # To follow takes no right to recommend.
        refused = []
        writer = Producer(secure.client_config("application"))
        writer.produce(
            following.prefix + "recommended-assignments",
            json.dumps(record),
            following.group,
            on_delivery=lambda error, _: refused.append(error.code()),
        )
        assert writer.flush(30) == 0
        assert refused == [KafkaError.TOPIC_AUTHORIZATION_FAILED]
        log = following.log("one")
        assert PASSWORD not in log
        # Kafka's own consumer says it in each try; the follower says it once.
        assert log.count("caughtup: cannot read") == 1
        assert log.count("caughtup: cannot send to " + following.prefix + "app") == 1

"""A principal that may DESCRIBE, and nothing else: groups, lag and reassignments are known all the same."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from caughtup.demo.cluster.broker_config import Security
from caughtup.demo.cluster.cluster import EmbeddedCluster
from tests.support.kafka.acls import allow
from tests.support.kafka.rented import DESCRIBE_ALONE
from tests.support.kafka.topics import words_read
from tests.support.service import Service, caughtup, commit, settings_file, wait_for

#: tests/integration/groups/test_rented.py has services with these rights, too.
pytestmark = pytest.mark.thorough

ASKER = "asker"
#: A line of the brokers' authorizer.
_DENIED = re.compile(rf"User:{ASKER} is Denied operation = (\w+) .*on resource = ([^ ,]+)")
#: Requests that are repeated all the time are, within this time.
_LONG_SECONDS = 8.0


@pytest.fixture(scope="module")
def secure() -> Iterator[EmbeddedCluster]:
    users = {"admin": "the admin's", ASKER: "the asker's"}
    with EmbeddedCluster(security=Security("sasl_plaintext", users, authorizer=True)) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.internal_bootstrap_servers})
        allow(admin, ASKER, *DESCRIBE_ALONE)
        words_read(cluster, 10, 4)
        yield cluster


@pytest.fixture(scope="module")
def service(secure: EmbeddedCluster) -> Iterator[Service]:
    with Service(secure, user=ASKER, own_topics=False, ask_interval=1) as service:
        yield service


def denied(secure: EmbeddedCluster) -> Counter[tuple[str, str]]:
    """Count the denied operations, by operation and resource."""
    logs = "".join(path.read_text() for path in secure.processes.directory.glob("*.log"))
    return Counter(_DENIED.findall(logs))


def test_it_is_ready_and_knows_lag_and_members(secure: EmbeddedCluster, service: Service) -> None:
    service.wait_value(6, "group_lag_records", group="readers")
    commit(secure, "readers", "words", 9)
    service.wait_value(1, "group_lag_records", group="readers")
    age = {"name": "snapshot_age_seconds", "source": "reassignments"}
    wait_for("reassignments are listed", lambda: service.value(**age) is not None)
    assert service.value("active") == 1


def test_nothing_is_asked_again_that_was_denied(secure: EmbeddedCluster, service: Service) -> None:
    service.wait_value(1, "group_lag_records", group="readers")
    tail = ("READ", "Topic:LITERAL:words")
    wait_for("the tail of a topic is refused", lambda: tail in denied(secure), 30)
    before = denied(secure)
    time.sleep(_LONG_SECONDS)
    assert denied(secure) == before
    assert max(before.values(), default=0) <= 2, before


def test_check_says_what_is_missing_without_own_topics(
    secure: EmbeddedCluster, tmp_path: Path
) -> None:
    path = settings_file(
        tmp_path, secure.bootstrap_servers, secure.security.client_config(ASKER), own_topics=False
    )
    ran = caughtup("check", "--config", path, "--format", "json", directory=tmp_path)
    assert ran.code == 0, ran
    said = {line["check"]: line["detail"] for line in ran.lines}
    assert "coordinators are asked" in said["source"]
    assert "none, as set" in said["own topics"]

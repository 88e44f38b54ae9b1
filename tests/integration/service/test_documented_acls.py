"""The commands of docs/follower.md as they stand there: what they allow is enough, and no more."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient

from caughtup.demo.cluster.broker_config import Security
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.pipelines.java.command_lines import java_command
from caughtup.pipelines.java.jars import KAFKA_VERSION, fetch_jars
from tests.support.kafka.acls import allow
from tests.support.kafka.secured import FENCE, FEWEST, SERVICE_TOPICS
from tests.support.kafka.topics import words_read
from tests.support.service import Service, wait_for

pytestmark = pytest.mark.thorough

_DOCUMENT = Path(__file__).parents[3] / "docs" / "follower.md"
_PROGRAM = "org.apache.kafka.tools.AclCommand"
RECOMMENDATIONS = "caughtup-recommended-assignments"
REPORTS = ("caughtup-application-states", "caughtup-task-positions")


def commands() -> list[list[str]]:
    """Return the commands that the document has, each as its arguments."""
    lines = re.findall(r"^kafka-acls\.sh ADMIN (.+)$", _DOCUMENT.read_text(), re.MULTILINE)
    return [shlex.split(line) for line in lines]


class Acls:
    """kafka-acls.sh, as an admin of a cluster."""

    def __init__(self, cluster: EmbeddedCluster, directory: Path) -> None:
        tools = fetch_jars("kafka-tools", [f"org.apache.kafka:kafka-tools:{KAFKA_VERSION}"])
        self._java = java_command(directory, 64, f"{tools}/*")
        config = directory / "admin.properties"
        config.write_text(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
            "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required "
            f'username="admin" password="{cluster.security.users["admin"]}";\n'
        )
        servers = cluster.bootstrap_servers
        self._admin = ["--bootstrap-server", servers, "--command-config", str(config)]

    def run(self, arguments: list[str]) -> str:
        """Run it, and return what it printed."""
        command = [*self._java, _PROGRAM, *self._admin, *arguments]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout


@pytest.fixture(scope="module")
def secure() -> Iterator[EmbeddedCluster]:
    """A cluster with an authorizer, and rights for what the document isn't about."""
    users = {name: f"of {name}" for name in ("admin", "caughtup", "orders", "stranger")}
    with EmbeddedCluster(security=Security("sasl_plaintext", users, authorizer=True)) as cluster:
        rights = set(FEWEST) - {SERVICE_TOPICS, FENCE}
        allow(AdminClient(cluster.client_config()), "caughtup", *rights)
        words_read(cluster, 10, 4)
        yield cluster


def refusal(cluster: EmbeddedCluster, user: str, topic: str) -> int | None:
    """Write a record as a user, and return the code of the error; None: it was written."""
    codes: list[int | None] = []
    producer = Producer({**cluster.client_config(user), "message.timeout.ms": 10_000})
    producer.produce(
        topic,
        b"{}",
        b"nobody",
        on_delivery=lambda error, _: codes.append(None if error is None else error.code()),
    )
    assert producer.flush(30) == 0
    return codes[0]


def test_the_commands_allow_the_service_and_applications_and_nobody_else(
    secure: EmbeddedCluster, tmp_path: Path
) -> None:
    acls = Acls(secure, tmp_path)
    *adding, listing = commands()
    assert len(adding) == 4
    for arguments in adding:
        acls.run(arguments)
    with Service(secure, user="caughtup", application_id="caughtup") as service:
        service.wait_value(6, "group_lag_records", group="readers")
        assert "is not fenced" not in service.log
        wait_for("end offsets are seen", lambda: service.value("active") == 1)
        denied = KafkaError.TOPIC_AUTHORIZATION_FAILED
        for user in ("orders", "stranger"):
            assert refusal(secure, user, RECOMMENDATIONS) == denied, user
        for topic in REPORTS:
            assert refusal(secure, "orders", topic) is None, topic
            assert refusal(secure, "stranger", topic) == denied, topic
        assert refusal(secure, "caughtup", RECOMMENDATIONS) is None
        assert not service.value("probe_errors_total", probe="publish")
    listed = acls.run(listing)
    assert "principal=User:caughtup" in listed
    writers = re.findall(r"principal=(User:\w+), host=\*, operation=WRITE", listed)
    assert set(writers) == {"User:caughtup"}, listed

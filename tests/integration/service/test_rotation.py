"""A password that is rotated while the service runs: Kafka has another one, and so has the file."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from caughtup.demo.cluster.broker_config import Security
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.load import produce
from caughtup.demo.cluster.topics import create_topics
from tests.support.service import Service, commit, wait_for

FIRST, SECOND = "first-hunter2", "second-hunter2"
#: Brokers end a login after so long: a client has to log in anew, or loses the connection.
LOGIN_MS = 3_000
SCRAM = {
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
    "listener.name.client.scram-sha-512.sasl.jaas.config": (
        "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    ),
    "connections.max.reauth.ms": str(LOGIN_MS),
}


def set_password(admin: AdminClient, password: str) -> None:
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    wanted = UserScramCredentialUpsertion("us", info, password.encode())
    for altered in admin.alter_user_scram_credentials([wanted]).values():
        altered.result(30)


class Rotated(EmbeddedCluster):
    """A cluster whose clients log in as the service's user, with the password in a file."""

    def __init__(self, path: Path) -> None:
        super().__init__(security=_Login("sasl_plaintext", {"admin": "x"}), broker_properties=SCRAM)
        _Login.path = path


class _Login(Security):
    path: Path

    def client_config(self, user: str | None) -> dict[str, str | int | float | bool]:
        if user != "us":
            return super().client_config(user)
        return {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": "us",
            "sasl.password_file": str(self.path),
        }


@pytest.mark.thorough
def test_the_service_goes_on_with_the_new_password(tmp_path: Path) -> None:
    path = tmp_path / "password"
    path.write_text(FIRST)
    with Rotated(path) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.internal_bootstrap_servers})
        set_password(admin, FIRST)
        create_topics(cluster, {"words": 1})
        produce(cluster, "words", 10)
        commit(cluster, "readers", "words", 4)
        with Service(cluster, user="us") as service:
            service.wait_value(6, "group_lag_records", group="readers")
            path.write_text(SECOND)
            set_password(admin, SECOND)
            wait_for("it has read it", lambda: "clients that use it from now on" in service.log)
            over, lag = time.monotonic() + 3 * LOGIN_MS / 1000, 6
            while time.monotonic() < over:  # until every login from before is over, and beyond
                produce(cluster, "words", 1)
                lag += 1
                service.wait_value(lag, "group_lag_records", group="readers")
            commit(cluster, "readers", "words", 9)
            service.wait_value(lag - 5, "group_lag_records", group="readers")
            assert service.ready()
            assert FIRST not in service.log
            assert SECOND not in service.log

"""GSSAPI, by a real key server, where this machine has one and the clients are built for it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import pytest

from caughtup.agents.kafka.property_problems import has_gssapi
from caughtup.demo.cluster.broker_config import Security
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.processes.children import Processes
from tests.support.kafka.kerberos import REALM, Realm, lacking
from tests.support.kafka.topics import words_read
from tests.support.service import caughtup, settings_file

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(lacking() is not None, reason=lacking() or ""),
]

ROOT = Path(__file__).parents[3]
GSSAPI = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "GSSAPI",
    "sasl.kerberos.service.name": "kafka",
}
#: Our own connections, as `caughtup check` asks over them what is in movement.
ASK = """
import asyncio, sys
from caughtup.agents.kafka.config import aiokafka_config
from caughtup.agents.kafka.protocol.client import ClusterProtocol
from caughtup.agents.settings import Settings
async def ask():
    kafka = dict(pair.split("=") for pair in sys.argv[2:])
    async with ClusterProtocol(
        aiokafka_config(Settings(bootstrap_servers=sys.argv[1], kafka=kafka))
    ) as protocol:
        print(await protocol.list_reassignments(), len(await protocol.brokers()))
asyncio.run(ask())
"""


class Place(NamedTuple):
    """A cluster that wants tickets, the realm that issues them, and who may log in."""

    cluster: EmbeddedCluster
    servers: str
    realm: Realm
    keytab: Path


class _Cluster(EmbeddedCluster):
    """Its broker is `localhost`, which tickets are issued for."""

    def __init__(self, realm: Realm, keytab: Path, processes: Processes) -> None:
        login = (
            "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true "
            f'keyTab="{keytab}" principal="kafka/localhost@{REALM}";'
        )
        super().__init__(
            security=Security("sasl_plaintext", {"admin": "x"}),
            processes=processes,
            broker_properties={
                "sasl.enabled.mechanisms": "PLAIN,GSSAPI",
                "listener.name.client.gssapi.sasl.jaas.config": login,
                "sasl.kerberos.service.name": "kafka",
            },
        )
        (mine,) = self._ports.values()
        self.by_name = f"localhost:{mine.client}"
        self._overrides["advertised.listeners"] = (
            f"CLIENT://{self.by_name},INTERNAL://127.0.0.1:{mine.internal}"
        )
        self._java = f"-Djava.security.krb5.conf={realm.config}"

    def start(self) -> None:
        """Start it, with Java's own way to the realm."""
        with patch.dict(os.environ, {"JAVA_TOOL_OPTIONS": self._java}):
            super().start()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with Processes() as processes, Realm(tmp_path_factory.mktemp("realm"), processes) as realm:
        service = realm.keytab("kafka/localhost")
        keytab = realm.keytab("caughtup")
        realm.get_ticket("caughtup", keytab)
        with _Cluster(realm, service, processes) as cluster:
            words_read(cluster, 10, 4)
            yield Place(cluster, cluster.by_name, realm, keytab)


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The extra, built with Debian's headers: where it is."""
    target = tmp_path_factory.mktemp("gssapi")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--target"]
    made = subprocess.run(
        [*pip, str(target), "gssapi>=1.8"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=280,
        check=False,
    )
    if made.returncode:
        pytest.skip(f"gssapi cannot be built (libkrb5-dev, gcc): {made.stdout[-300:]}")
    return target


def test_our_own_connections_log_in_with_a_ticket(place: Place, packages: Path) -> None:
    asked = subprocess.run(
        [sys.executable, "-c", ASK, place.servers, *(f"{k}={v}" for k, v in GSSAPI.items())],
        env={**os.environ, **place.realm.environment, "PYTHONPATH": f"{packages}:{ROOT}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (asked.returncode, asked.stdout) == (0, "{} 1\n"), asked.stderr


def test_without_what_it_takes_it_is_refused_by_name(place: Place, tmp_path: Path) -> None:
    if has_gssapi():
        pytest.skip("this librdkafka has GSSAPI")
    for command in (["lag"], ["check"], ["run"]):
        path = settings_file(tmp_path, place.servers, GSSAPI)
        ran = caughtup(*command, "--config", path, directory=tmp_path)
        assert ran.code == 1
        assert "setting kafka.sasl.mechanism: librdkafka is built without GSSAPI here" in ran.err


def test_commands_log_in_with_a_ticket(place: Place, packages: Path, tmp_path: Path) -> None:
    if not has_gssapi():
        pytest.skip("confluent-kafka's wheel has a librdkafka without GSSAPI; build one with it")
    kafka = {
        **GSSAPI,
        "sasl.kerberos.principal": f"caughtup@{REALM}",
        "sasl.kerberos.keytab": str(place.keytab),
    }
    path = settings_file(tmp_path, place.servers, kafka)
    environment = {**place.realm.environment, "PYTHONPATH": f"{packages}:{ROOT}"}
    place.realm.cache.unlink()  # librdkafka gets one by itself, which our connections take
    for command in (["check"], ["lag", "readers"]):
        ran = caughtup(
            *command,
            *("--format", "json", "--config", path),
            directory=tmp_path,
            environment=environment,
        )
        assert ran.code == 0, ran.err
    assert [line["lag"] for line in ran.lines] == [6]

"""The jobs on Spark log in as the service does, with the same settings, by Kafka's Java client."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from caughtup.demo.cluster.broker_config import Tls
from caughtup.demo.cluster.topics import create_topics
from tests.support.kafka.acls import allow
from tests.support.kafka.keystores import as_pkcs8
from tests.support.kafka.logins import PASSWORD, USER, Guarded
from tests.support.kafka.secured import FEWEST
from tests.support.kafka.tokens import TokenEndpoint
from tests.support.kafka.topics import words_read
from tests.support.service import caughtup, settings_file

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def guarded(tls: Tls) -> Iterator[Guarded]:
    with TokenEndpoint({}) as tokens, Guarded(tls, tokens) as cluster:
        allow(cluster.admin(), USER, *FEWEST)
        words_read(cluster, 10, 4)
        create_topics(cluster, {"caughtup-end-offsets": 1})
        yield cluster


@pytest.mark.parametrize("way", ["SCRAM-SHA-256", "OAUTHBEARER", "PEM files", "PKCS #12"])
def test_a_job_reads_the_log_of_groups(guarded: Guarded, tmp_path: Path, way: str) -> None:
    login = guarded.login(way, USER, tmp_path)
    if key := login.kafka.get("ssl.key.location"):  # Java reads PKCS #8
        Path(key).write_bytes(as_pkcs8(Path(key).read_bytes()))
    before = {name: len(hellos) for name, hellos in guarded.hellos.items()}
    path = settings_file(tmp_path, login.bootstrap_servers, login.kafka)
    output = f"file://{tmp_path}/generations"
    arguments = ("--config", path, "--output", output, "--master", "local[1]")
    ran = caughtup("pipeline", "generations", *arguments, directory=tmp_path, seconds=200)
    assert ran.code == 0, ran.err
    assert ran.out == "wrote 0 new generations\n"
    assert PASSWORD not in ran.err
    listener = "certificate" if way in ("PEM files", "PKCS #12") else "sasl"
    assert len(guarded.hellos[listener]) > before[listener]
    assert guarded.unencrypted() == []

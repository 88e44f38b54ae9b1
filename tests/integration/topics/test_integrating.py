"""The consumers of docs/integrating.md, run as they stand there, beside a real broker."""

from __future__ import annotations

import json
import os
import queue
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.models.records.topics import RECOMMENDATIONS
from caughtup.models.security.signing import HEADER, read_keys, sign
from caughtup.pipelines.java.command_lines import compiler_command
from caughtup.pipelines.java.find import find_java
from caughtup.pipelines.java.jars import classpath
from tests.integration.conftest import MakeTopic
from tests.support.documented import blocks
from tests.support.own_topics.records import service_records
from tests.support.topics.page import examples

KEYS = "# both are good\nold b2xkIG9sZCBvbGQgb2xkIG9sZCBvbGQgb2xkIG9sZCE=\n" + (
    "new bmV3IG5ldyBuZXcgbmV3IG5ldyBuZXcgbmV3IG5ldyE=\n"
)
SECONDS = 60.0


def java(directory: Path) -> list[str]:
    paths = []
    for source in blocks("java"):
        (name,) = re.findall(r"^(?:public )?class (\w+)", source, re.MULTILINE)
        paths.append(directory / f"{name}.java")
        paths[-1].write_text(source)
    compiled = subprocess.run(
        compiler_command(paths, directory), capture_output=True, text=True, check=False
    )
    assert compiled.returncode == 0, compiled.stdout + compiled.stderr
    where = os.pathsep.join((str(directory), classpath()))
    return [os.fspath(find_java().program), "-cp", where, "Recommendations"]


def python(directory: Path) -> list[str]:
    (source,) = blocks("python")
    path = directory / "recommendations.py"
    path.write_text(source)
    return [sys.executable, str(path)]


@pytest.fixture(scope="module", params=[python, java], ids=["python", "java"])
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return list(request.param(tmp_path_factory.mktemp("program")))


@contextmanager
def reading(command: list[str]) -> Iterator[Callable[[], str]]:
    """Run a program; what it gives returns its next line, once that is there."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    lines: queue.Queue[str] = queue.Queue()

    def pump() -> None:
        for line in process.stdout or ():
            lines.put(line.rstrip("\n"))

    pumping = threading.Thread(target=pump, daemon=True)
    pumping.start()

    def next_line() -> str:
        try:
            return lines.get(timeout=SECONDS)
        except queue.Empty:
            process.kill()
            pytest.fail(f"no line came: {(process.stderr or sys.stdin).read()[-2000:]}")

    try:
        yield next_line
    finally:
        process.kill()
        process.wait()
        pumping.join()
        for stream in (process.stdout, process.stderr):
            assert stream is not None
            stream.close()


def expected(group: str, value: bytes) -> list[str]:
    found = json.loads(value)
    costs = (found["cost"]["copies"], found["kafka_cost"]["copies"])
    return [
        f"{group} {found['generation']}: {costs[0]} copies, Kafka's assignor {costs[1]}",
        *(f"  {move['task']} to {move['to']}: {move['kind']}" for move in found["movements"]),
    ]


def test_they_print_what_is_recommended_and_take_only_what_is_signed(
    cluster: EmbeddedCluster, make_topic: MakeTopic, program: list[str], tmp_path: Path
) -> None:
    """Records of a real run and of a generated group, signed for this group and cluster or not."""
    (own,) = (own for own in service_records() if own.topic == RECOMMENDATIONS)
    (real,) = examples()[RECOMMENDATIONS]
    value = json.dumps(real["value"]).encode()
    keys, topic = tmp_path / "keys", make_topic("recommended")
    keys.write_text(KEYS)
    old, new = read_keys(KEYS)
    admin = AdminClient(cluster.client_config())  # Held: a collected client drops its requests.
    identity = str(admin.list_topics(timeout=30).cluster_id)
    producer = Producer(cluster.client_config())

    def publish(group: str, value: bytes | None, signature: bytes | None = None) -> None:
        headers = None if signature is None else {HEADER: signature}
        producer.produce(topic, value, group.encode(), headers=headers)
        assert producer.flush(30) == 0

    generated = own.key.decode()
    good = sign(new, identity, "orders", value)
    publish("orders", value, good)
    publish(generated, own.encoded, sign(old, identity, generated, own.encoded))
    publish("unsigned", value)
    publish("forged", value, good)
    publish("elsewhere", value, sign(new, "another-cluster", "elsewhere", value))
    publish("damaged", value, b"hmac-sha256:new")
    publish("orders", None)
    signed = [
        *expected("orders", value),
        *expected(generated, own.encoded),
        *(f"{group}: not signed" for group in ("unsigned", "forged", "elsewhere", "damaged")),
        "orders: gone",
    ]
    with reading([*program, cluster.bootstrap_servers, topic, str(keys)]) as next_line:
        assert [next_line() for _ in signed] == signed
        publish("later", value, sign(old, identity, "later", value))
        assert next_line() == expected("later", value)[0]
    with reading([*program, cluster.bootstrap_servers, topic]) as next_line:
        every = [*signed[: len(signed) - 5], *expected("unsigned", value)]
        assert [next_line() for _ in every] == every


@pytest.mark.parametrize("language", ["python", "java"])
def test_they_are_short(language: str) -> None:
    for source in blocks(language):
        assert len(source.splitlines()) <= 40
        assert max(map(len, source.splitlines())) <= 105

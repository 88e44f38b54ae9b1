"""``caughtup pipeline history`` as its user runs it: a secured cluster, a signal, an error."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Position
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
    ResourceType,
)

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.topics import create_topics
from caughtup.pipelines.java.jars import spark_connector
from caughtup.pipelines.schema import SERVICE_TOPICS
from tests.support.kafka.acls import READ, allow, prefixed, topic
from tests.support.own_topics.end_offsets import end_offsets_record
from tests.support.pipelines.delta import rows_of

pytestmark = pytest.mark.xdist_group("spark")

COMMAND = [sys.executable, "-m", "caughtup.agents", "pipeline", "history"]
#: All that the job's user may do.
TOPICS = tuple(SERVICE_TOPICS.values())
RIGHTS = (
    *(topic(name, READ) for name in TOPICS),
    topic("__consumer_offsets", READ),
    prefixed(ResourceType.GROUP, "caughtup-history", READ),
)


#: What a file may have while the disk is full, and commits that need more than that.
FILE_BYTES, COMMITS, METADATA_BYTES = 300_000, 300, 4_000


@contextmanager
def running(arguments: list[str], log: Path, directory: Path) -> Iterator[subprocess.Popen[bytes]]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYSPARK_")}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*COMMAND, *arguments],
            stderr=output,
            stdout=output,
            cwd=directory,
            env=environment,
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()


def rows(table: Path) -> list[tuple[str, int, int]]:
    """Read the table of lag as any tool would."""
    found = rows_of(table, "lag")
    return sorted((row["group"], row["committed"], row["lag"]) for row in found)


def processes_in(directory: Path) -> list[str]:
    """Return the command lines of the processes that still run in a directory."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes().decode(errors="replace")
            inside = (process / "cwd").resolve() == directory
        except OSError:
            continue
        if inside:
            found.append(command.replace("\0", " "))
    return found


@pytest.mark.thorough
def test_a_user_with_few_rights_writes_history_until_told_to_stop(
    secure: EmbeddedCluster, tmp_path: Path
) -> None:
    client = {**secure.client_config("admin"), "log_level": 0}
    admin = AdminClient(client)
    for name in ("orders", *TOPICS):
        admin.create_topics([NewTopic(name, 1)])[name].result(30)
    allow(admin, "spark", *RIGHTS)
    consumer = Consumer({**client, "group.id": "billing"})
    consumer.commit(offsets=[Position("orders", 0, 4)], asynchronous=False)
    key, value = end_offsets_record("orders", 0, 9, time.time_ns() // 1_000_000)
    producer = Producer(client)
    producer.produce("caughtup-end-offsets", value, key)
    assert producer.flush(30) == 0

    settings = tmp_path / "caughtup.toml"
    secured = secure.client_config("spark")
    lines = [f"{json.dumps(name)} = {json.dumps(value)}" for name, value in secured.items()]
    kafka = [line for line in lines if not line.startswith('"bootstrap.servers"')]
    settings.write_text("\n".join(["[kafka]", *kafka]))
    table, log = tmp_path / "table", tmp_path / "log"
    arguments = ["--bootstrap-servers", secure.bootstrap_servers, "--config", str(settings)]
    arguments += ["--output", str(table), "--checkpoint", str(tmp_path / "checkpoint")]
    directory = tmp_path / "elsewhere"
    directory.mkdir()
    with running([*arguments, "--trigger-seconds", "1"], log, directory) as process:
        wait_for(table, [("billing", 4, 5)], process, log)
        consumer.commit(offsets=[Position("orders", 0, 7)], asynchronous=False)
        wait_for(table, [("billing", 4, 5), ("billing", 7, 2)], process, log)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0, log.read_text()
    consumer.close()
    assert "Traceback" not in log.read_text()
    assert secure.security.users["spark"] not in log.read_text()
    deadline = time.monotonic() + 30
    while processes_in(directory):
        assert time.monotonic() < deadline, f"left behind: {processes_in(directory)}"
        time.sleep(0.2)


def wait_for(
    table: Path, expected: list[tuple[str, int, int]], process: subprocess.Popen[bytes], log: Path
) -> None:
    deadline = time.monotonic() + 150
    while rows(table) != expected:
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, f"{rows(table)}\n{log.read_text()}"
        time.sleep(0.2)


@pytest.mark.thorough
def test_a_full_disk_ends_it_in_one_line_and_the_next_start_goes_on(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    """A limit on the size of files is what the job can be given; a disk says the same later."""
    group = f"group-{uuid.uuid4().hex[:8]}"
    create_topics(cluster, {group: 1})
    consumer = Consumer({**cluster.client_config(), "group.id": group, "log_level": 0})
    consumer.commit(offsets=[Position(group, 0, 0)], asynchronous=False)
    tables, log = tmp_path / "tables", tmp_path / "log"
    arguments = ["--bootstrap-servers", cluster.bootstrap_servers]
    arguments += ["--output", str(tables), "--checkpoint", str(tmp_path / "checkpoint")]
    with running([*arguments, "--trigger-seconds", "1"], log, tmp_path) as process:
        deadline = time.monotonic() + 240
        # Members of a group make the job write what Spark compresses: it unpacks a library first.
        join(Consumer({**cluster.client_config(), "group.id": f"{group}-members"}), group)
        while not (
            committed(tables, group) and list(tables.glob("_state/kind=groups/**/*.parquet"))
        ):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.2)
        for pid in workers_below(process.pid):
            subprocess.run(["prlimit", f"--pid={pid}", f"--fsize={FILE_BYTES}"], check=True)
        for offset in range(1, COMMITS):
            noise = secrets.token_hex(METADATA_BYTES // 2)
            position = Position(group, 0, offset, metadata=noise)
            consumer.commit(offsets=[position], asynchronous=False)
        consumer.close()
        assert process.wait(240) == 1, log.read_text()
    said = [line for line in log.read_text().splitlines() if line.startswith("caughtup: ")]
    assert len(said) == 1
    assert said[0].startswith(f"caughtup: the history ended: OSError: can't write {tables}/")
    assert "File too large" in said[0]

    with running([*arguments, "--once"], log, tmp_path) as process:
        assert process.wait(240) == 0, log.read_text()
    assert committed(tables, group) == list(range(COMMITS))


def join(consumer: Consumer, topic: str) -> None:
    """Join a group as a member for a moment."""
    consumer.subscribe([topic])
    deadline = time.monotonic() + 60
    while not consumer.assignment():
        assert time.monotonic() < deadline, "no assignment"
        consumer.poll(0.2)
    consumer.close()


def committed(tables: Path, group: str) -> list[int]:
    """Return what a group committed, as the table has it."""
    read = rows_of(tables, "commits")
    return sorted(row["committed"] for row in read if row["group"] == group)


def workers_below(pid: int) -> list[int]:
    """Return the Python processes below one, which are Spark's workers."""
    # By the thread that started them: a JVM has many.
    listed = Path(f"/proc/{pid}/task").glob("*/children")
    children = [int(child) for path in listed for child in path.read_text().split()]
    found = [one for child in children for one in (child, *workers_below(child))]
    return [one for one in found if Path(f"/proc/{one}/comm").read_text().strip() != "java"]


@pytest.mark.thorough
def test_brokers_that_do_not_answer_are_said_in_one_line(tmp_path: Path) -> None:
    arguments = ["--bootstrap-servers", "127.0.0.1:1", "--once"]
    arguments += ["--output", str(tmp_path / "table"), "--checkpoint", str(tmp_path / "checkpoint")]
    log = tmp_path / "log"
    with running(arguments, log, tmp_path) as process:
        assert process.wait(120) == 1
    lines = [line for line in log.read_text().splitlines() if line.startswith("caughtup: ")]
    assert len(lines) == 1
    assert lines[0].startswith("caughtup: no answer from 127.0.0.1:1: ")
    assert "Traceback" not in log.read_text()


@pytest.mark.thorough
def test_a_spark_without_the_connector_says_what_to_give_it(tmp_path: Path) -> None:
    program = """
from caughtup.pipelines.history.stream import HistoryOptions, history
from caughtup.pipelines.spark.session import spark_session
history(spark_session("test"), HistoryOptions("127.0.0.1:1", "/x", "/y", None), lambda: False)
"""
    ended = subprocess.run(
        [sys.executable, "-c", program],
        check=False,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    last = ended.stderr.strip().splitlines()[-1]
    assert last.endswith(
        "connector_missing: Spark has no Kafka connector; give spark-submit --packages "
        + spark_connector()
    )

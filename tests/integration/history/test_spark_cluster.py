"""The jobs on a Spark cluster whose machines have no caughtup but what spark-submit ships."""

from __future__ import annotations

import re
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from caughtup.bench.movement.changes import Change, Variety
from caughtup.bench.replay.histories import generated_history, write_histories
from caughtup.pipelines.java.jars import spark_connector
from tests.integration.conftest import MakeCluster
from tests.support.own_topics.end_offsets import end_offsets_record
from tests.support.pipelines.delta import rows_of
from tests.support.pipelines.spark_cluster import LOCAL_CLUSTER, SECONDS, WORKERS, SparkCluster
from tests.support.service import commit

ROOT = Path(__file__).resolve().parents[3]
CONNECTOR = spark_connector()
GROUPS = ("billing", "orders", "shipping")

#: Several JVMs start, one after the other, on a machine that does other things, too.
pytestmark = [pytest.mark.timeout(1_200), pytest.mark.thorough]


@pytest.fixture(scope="module")
def spark_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with SparkCluster(tmp_path_factory.mktemp("spark")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, ROOT]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def program(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program for spark-submit, as ``unzip -j`` takes it out of the wheel."""
    taken = tmp_path_factory.mktemp("program") / "submit.py"
    with zipfile.ZipFile(wheel) as shipped:
        taken.write_bytes(shipped.read("caughtup/agents/submit.py"))
    return taken


def found(table: Path) -> list[dict[str, Any]]:
    """Read the table of lag."""
    return rows_of(table, "lag")


def said(ran: subprocess.CompletedProcess[str]) -> str:
    """Return the one line of ours: spark-submit writes what its program says to standard output."""
    (line,) = (line for line in ran.stdout.splitlines() if line.startswith("caughtup: "))
    return line


def busy(executors: list[Path], wheel: Path) -> list[str]:
    """Name the executors that ended a task, each of which had got the wheel."""
    for executor in executors:
        assert (executor / wheel.name).read_bytes() == wheel.read_bytes()
    return [
        str(executor)
        for executor in executors
        if "Finished task" in (executor / "stderr").read_text()
    ]


def test_neither_the_driver_nor_the_workers_have_caughtup(spark_cluster: SparkCluster) -> None:
    def lacking(python: Path, names: str) -> list[str]:
        ran = subprocess.run(
            [python, "-E", "-c", f"import {names}"],
            cwd=python.parent,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return re.findall(r"No module named '(\w+)'", ran.stderr)

    driver, worker = spark_cluster.driver_python, spark_cluster.worker_python
    assert lacking(driver, "pyspark, click, confluent_kafka") == []
    assert lacking(worker, "pyarrow, pandas, msgspec, deltalake") == []
    assert lacking(driver, "caughtup") == lacking(worker, "caughtup") == ["caughtup"]
    assert lacking(worker, "confluent_kafka") == ["confluent_kafka"]


def test_executors_write_history_with_nothing_of_caughtup_but_the_wheel(
    spark_cluster: SparkCluster,
    wheel: Path,
    program: Path,
    make_cluster: MakeCluster,
    tmp_path: Path,
) -> None:
    kafka = make_cluster()
    topics = {"invoices": 1, "caughtup-end-offsets": 1}
    admin = AdminClient(kafka.client_config())
    created = admin.create_topics([NewTopic(*topic) for topic in topics.items()])
    for done in created.values():
        done.result(30)
    for number, group in enumerate(GROUPS):
        commit(kafka, group, "invoices", number)
    key, value = end_offsets_record("invoices", 0, 9, time.time_ns() // 1_000_000)
    producer = Producer(kafka.client_config())
    producer.produce("caughtup-end-offsets", value, key)
    assert producer.flush(30) == 0

    before = len(spark_cluster.executors())
    ran = spark_cluster.submit(
        *("--packages", CONNECTOR, "--py-files", wheel),
        *(program, "pipeline", "history", "--bootstrap-servers", kafka.bootstrap_servers),
        *("--output", (tmp_path / "table").as_uri()),
        *("--checkpoint", (tmp_path / "checkpoint").as_uri(), "--once"),
    )
    assert ran.returncode == 0, ran.stdout
    assert "Spark's executors have no aiokafka: Spark's source reads" in ran.stdout
    rows = {(row["group"], row["committed"], row["lag"]) for row in found(tmp_path / "table")}
    assert rows == {(group, number, 9 - number) for number, group in enumerate(GROUPS)}
    assert len(busy(spark_cluster.executors()[before:], wheel)) == WORKERS


@pytest.mark.parametrize("master", [None, LOCAL_CLUSTER], ids=["standalone", "local-cluster"])
def test_a_replay_on_the_cluster_says_what_it_says_here(
    spark_cluster: SparkCluster, wheel: Path, program: Path, tmp_path: Path, master: str | None
) -> None:
    histories = [
        generated_history(f"group-{seed}", Change(3, 4, 12), Variety(0, False, False, False), seed)
        for seed in range(6)
    ]
    write_histories(tmp_path / "generations", histories)
    table = (tmp_path / "generations").as_uri()
    asked = ["replay", "--from", table, "--what", "max.warmup.replicas=2,4", "--format", "json"]
    before = len(spark_cluster.executors())
    there = spark_cluster.submit("--py-files", wheel, program, *asked, master=master)
    assert there.returncode == 0, there.stdout
    here = subprocess.run(
        [sys.executable, "-m", "caughtup.agents", *asked, "--master", "local[1]"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert here.returncode == 0, here.stderr
    answers = [line for line in there.stdout.splitlines() if line.startswith("{")]
    assert answers == here.stdout.splitlines()
    assert len(answers) > 2
    assert len(busy(spark_cluster.executors()[before:], wheel)) == WORKERS


def test_without_the_wheel_it_says_what_to_give(spark_cluster: SparkCluster, program: Path) -> None:
    ran = spark_cluster.submit(program, "pipeline", "history")
    assert ran.returncode == 1
    assert "--py-files caughtup-" in said(ran)
    assert "Traceback" not in ran.stdout + ran.stderr


def test_without_the_connector_it_says_which_package_to_give(
    spark_cluster: SparkCluster, wheel: Path, program: Path, tmp_path: Path
) -> None:
    ran = spark_cluster.submit(
        *("--py-files", wheel, program, "pipeline", "history"),
        *("--output", tmp_path / "table", "--checkpoint", tmp_path / "checkpoint"),
    )
    assert ran.returncode == 1
    assert f"--packages {CONNECTOR}" in said(ran)

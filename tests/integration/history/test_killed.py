"""The history under SIGKILL: of its driver, and of Spark's executors in between.

``HISTORY_KILLS`` says how often, with ``make thorough``; each time the job is started again where it was.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.dataset
import pytest

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.topics import create_topics
from tests.integration.conftest import MakeTopic
from tests.support.pipelines.committing import Committing

pytestmark = pytest.mark.xdist_group("spark")

KILLS = int(os.environ.get("HISTORY_KILLS", "10"))
SEED = int(os.environ.get("HISTORY_SEED", str(time.time_ns() % 1_000_000)))
#: Executors are processes of their own there.
LOCAL_CLUSTER = "local-cluster[2,1,1024]"
_SECONDS = 240.0


class Job:
    """``caughtup pipeline history`` with tables and a checkpoint that outlive it."""

    def __init__(self, cluster: EmbeddedCluster, prefix: str, directory: Path) -> None:
        self.tables = directory / "tables"
        self.log = directory / "log"
        self._directory = directory
        self._arguments = ["--bootstrap-servers", cluster.bootstrap_servers]
        self._arguments += ["--output", str(self.tables)]
        self._arguments += ["--checkpoint", str(directory / "checkpoint")]
        self._environment = {k: v for k, v in os.environ.items() if not k.startswith("PYSPARK_")}
        self._environment["CAUGHTUP_TOPIC_PREFIX"] = prefix

    @contextmanager
    def running(self, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
        command = [sys.executable, "-m", "caughtup.agents", "pipeline", "history"]
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [*command, *self._arguments, *arguments],
                stdout=log,
                stderr=log,
                cwd=self._directory,
                env=self._environment,
            )
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def finish(self) -> None:
        with self.running("--once", "--master", "local[1]") as process:
            assert process.wait(_SECONDS) == 0, self.said()

    def said(self) -> str:
        return self.log.read_text(errors="replace")[-6000:]

    def rows(self, table: str, *columns: str) -> list[tuple[Any, ...]]:
        found = pyarrow.dataset.dataset(self.tables / table, partitioning="hive")
        table_of = found.to_table(columns=list(columns)).to_pylist()
        return [tuple(row[name] for name in columns) for row in table_of]


def executors(driver: int) -> list[int]:
    """Return the process ids of a driver's executors."""
    parents, found = {}, []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(path.name)] = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            if b"CoarseGrainedExecutorBackend" in (path / "cmdline").read_bytes():
                found.append(int(path.name))
        except OSError:
            continue

    def is_below(pid: int) -> bool:
        while pid in parents and pid != driver:
            pid = parents[pid]
        return pid == driver

    return [pid for pid in sorted(found) if is_below(pid)]


def wait_for(what: str, look: Any, job: Job, process: subprocess.Popen[bytes]) -> Any:
    deadline = time.monotonic() + _SECONDS
    while not (found := look()):
        assert process.poll() is None, job.said()
        assert time.monotonic() < deadline, f"never: {what}\n{job.said()}"
        time.sleep(0.05)
    return found


def files(job: Job) -> int:
    # Not below _staging, where folders come and go while somebody looks.
    return len(list(job.tables.glob("[a-z]*/date=*/*_bucket=*/*.parquet")))


@pytest.mark.parametrize("kills", [KILLS])
@pytest.mark.thorough
@pytest.mark.timeout(300 + 120 * KILLS)
def test_each_committed_record_is_there_once_however_often_it_is_killed(
    cluster: EmbeddedCluster, make_topic: MakeTopic, tmp_path: Path, kills: int
) -> None:
    random = Random(SEED)
    print(f"HISTORY_SEED={SEED} HISTORY_KILLS={kills}")
    prefix = f"killed-{uuid.uuid4().hex[:8]}-"
    end_offsets = f"{prefix}end-offsets"
    create_topics(cluster, {end_offsets: 1})
    job = Job(cluster, prefix, tmp_path)

    with Committing(cluster, make_topic("orders"), end_offsets) as committing:
        for number in range(kills):
            separate = number % 3 == 1
            master = LOCAL_CLUSTER if separate else "local[1]"
            before = files(job)
            with job.running("--trigger-seconds", "1", "--master", master) as driver:
                if separate:
                    pids = wait_for("executors", lambda: executors(driver.pid), job, driver)
                    os.kill(random.choice(pids), signal.SIGKILL)
                wait_for("files", lambda b=before: files(job) > b, job, driver)
                time.sleep(random.uniform(0, 4))  # the moment to kill it at, and no waiting for it
                if separate and (pids := executors(driver.pid)):
                    os.kill(random.choice(pids), signal.SIGKILL)
                    time.sleep(random.uniform(0, 2))
                assert driver.poll() is None, job.said()
                driver.kill()
    job.finish()

    where = ("log_partition", "log_offset")
    ours = [
        row[:2]
        for row in job.rows("commits", *where, "group")
        if row[2].startswith(committing.prefix)
    ]
    assert len(ours) > 100, "the groups hardly committed"
    assert sorted(ours) == committing.committed()
    assert sorted(job.rows("end_offsets", *where)) == committing.looks()
    lag = job.rows("lag", "group", "as_of", "committed", "end_offset", "source")
    assert len(lag) == len(set(lag)), "a change of lag is there twice"
    told = {(group, committed) for group, _, committed, _, _ in lag}
    every = {
        (group, committed)
        for group, committed in job.rows("commits", "group", "committed")
        if group.startswith(committing.prefix)
    }
    assert {one for one in told if one[0].startswith(committing.prefix)} == every

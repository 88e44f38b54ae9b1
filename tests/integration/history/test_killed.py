"""The history under SIGKILL: of its driver, and of Spark's executors in between.

``HISTORY_KILLS`` says how often, with ``make thorough``; each time the job is started again where it
was. Compaction and vacuum run beside, all the time, and every version of every table is counted by
a reader that shares no code with the job; in the end each table is what a history has that nobody
killed. Once more with the tables on S3, by a way that fails after the store took a commit.
"""

from __future__ import annotations

import os
import signal
import time
import uuid
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any

import pytest
from deltalake import DeltaTable

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.topics import create_topics
from caughtup.pipelines.history.tables import LAYOUTS
from caughtup.pipelines.java.jars import ensure_spark_jars
from caughtup.pipelines.spark.session import spark_session
from tests.integration.conftest import MakeTopic
from tests.support.pipelines.committing import Committing
from tests.support.pipelines.delta import counted, rows_of
from tests.support.pipelines.history_job import Beside, EndedError, Job, executors, wait_for
from tests.support.pipelines.s3 import between, s3_server
from tests.support.pipelines.unkilled import write_unkilled

pytestmark = pytest.mark.xdist_group("spark")

KILLS = int(os.environ.get("HISTORY_KILLS", "10"))
SEED = int(os.environ.get("HISTORY_SEED", str(time.time_ns() % 1_000_000)))
#: Executors are processes of their own there.
LOCAL_CLUSTER = "local-cluster[2,1,1024]"
#: What is said of a commit that the store took: nothing, or that it didn't.
FAULTS = ("lost", "503")


@pytest.mark.parametrize("kills", [KILLS])
@pytest.mark.thorough
@pytest.mark.timeout(900 + 120 * KILLS)
@pytest.mark.parametrize("stored", ["files", "s3"])
def test_each_committed_record_is_there_once_however_often_it_is_killed(
    cluster: EmbeddedCluster, make_topic: MakeTopic, tmp_path: Path, kills: int, stored: str
) -> None:
    random = Random(SEED)
    print(f"HISTORY_SEED={SEED} HISTORY_KILLS={kills}")
    prefix = f"killed-{uuid.uuid4().hex[:8]}-"
    end_offsets = f"{prefix}end-offsets"
    create_topics(cluster, {end_offsets: 1})
    with ExitStack() as stack:
        s3 = way = None
        if stored == "s3":
            s3 = stack.enter_context(s3_server(tmp_path / "s3.log"))
            way = stack.enter_context(between(s3, tmp_path / "between.log"))
        job = Job(cluster, prefix, tmp_path, s3, way and way.url)
        committing = stack.enter_context(Committing(cluster, make_topic("orders"), end_offsets))
        beside = Beside(job)
        beside.start()
        stack.callback(beside.stop)
        number = ended = failed = 0
        while number < kills:
            if way is not None:
                # Of each commit's first request, which the store took, it isn't heard that it did.
                way.fail("/_delta_log/", FAULTS[number % len(FAULTS)], once=True)
            try:
                kill(job, random, separate=number % 3 == 1)
                number += 1
            except EndedError as error:
                print(error)
                assert way is not None
                ended += 1
                assert ended <= kills
            failed += 0 if way is None else way.stop_failing()
        committing.stop()
        job.finish()
        beside.stop()
        print(f"{beside.runs} times kept up, {beside.compacted} files compacted")
        # What writes at once may have to be done again; nothing else may fail.
        assert not [one for one in beside.problems if "oncurrent" not in one], beside.problems
        assert beside.compacted > 0
        assert way is None or failed > kills
        if way is not None:
            print(
                f"{failed} requests failed after the store took them; the job ended {ended} times"
            )
        check(job, committing)
        compare(job, cluster, tmp_path / "unkilled")


def kill(job: Job, random: Random, *, separate: bool) -> None:
    """Start the job and kill it, its executors before where they are processes of their own."""
    master = LOCAL_CLUSTER if separate else "local[1]"
    with job.running("--trigger-seconds", "1", "--master", master) as driver:
        if separate:
            pids = wait_for("executors", lambda: executors(driver.pid), job, driver)
            os.kill(random.choice(pids), signal.SIGKILL)
        before = max(job.batch(), -1)
        wait_for("a batch", lambda: job.batch() > before, job, driver)
        time.sleep(random.uniform(0, 4))  # the moment to kill it at, and no waiting for it
        if separate and (pids := executors(driver.pid)):
            os.kill(random.choice(pids), signal.SIGKILL)
            time.sleep(random.uniform(0, 2))
        wait_for("it to run still", lambda: driver.poll() is None, job, driver)
        driver.kill()


def check(job: Job, committing: Committing) -> None:
    """Hold every table against the log, and every version of each against the one before."""
    where = ("log_partition", "log_offset")
    ours = [
        row[:2]
        for row in job.rows("commits", *where, "group")
        if row[2].startswith(committing.prefix)
    ]
    assert len(ours) > 100, "the groups hardly committed"
    assert sorted(ours) == committing.committed()
    assert sorted(job.rows("end_offsets", *where)) == committing.end_offsets()
    change = ("group", "as_of", "committed", "end_offset", "source")
    lag = job.rows("lag", *change)
    assert len(lag) == len(set(lag)), "a change of lag is there twice"
    told = {(group, committed) for group, _, committed, _, _ in lag}
    every = {
        (group, committed)
        for group, committed in job.rows("commits", "group", "committed")
        if group.startswith(committing.prefix)
    }
    assert {one for one in told if one[0].startswith(committing.prefix)} == every
    for table, key in (("commits", where), ("end_offsets", where), ("lag", change)):
        count_versions(job, table, key)


def compare(job: Job, cluster: EmbeddedCluster, unkilled: Path) -> None:
    """Hold every table against one of a history that nobody killed, with the same batches."""
    spark = spark_session("caughtup unkilled", master="local[1]", jars=ensure_spark_jars())
    try:
        batches = write_unkilled(
            spark, cluster.bootstrap_servers, job.prefix, job.checkpoint, unkilled
        )
    finally:
        spark.stop()
    for layout in LAYOUTS:
        names = [name for name in layout.columns.names if name != "seen"]
        ours = counted(rows_of(job.tables, layout.name, None, job.options), *names)
        assert ours == counted(rows_of(unkilled, layout.name), *names), layout.name
    print(f"{batches} batches: {len(LAYOUTS)} tables as of a history that nobody killed")


def count_versions(job: Job, table: str, key: tuple[str, ...]) -> None:
    """See that a version has what the one before had, each once, and batches whole."""
    delta = DeltaTable(f"{job.tables}/{table}", storage_options=job.options)
    said = {one["version"]: one["operation"] for one in delta.history()}
    before = Counter[tuple[Any, ...]]()
    for version in range(delta.version() + 1):
        rows = counted(rows_of(job.tables, table, version, job.options), *key)
        assert max(rows.values(), default=1) == 1, f"{table} at {version}: a row twice"
        assert rows >= before, f"{table} at {version}: a row is gone"
        # Only a batch's commit adds rows: all of it at once.
        assert rows == before or said[version] == "WRITE", f"{table} at {version}: {said[version]}"
        before = rows
    print(f"{table}: {delta.version() + 1} versions, {before.total()} rows")

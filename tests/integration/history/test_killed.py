"""The history under SIGKILL: of its driver, and of Spark's executors in between.

``HISTORY_KILLS`` says how often, with ``make thorough``; each time the job is started again where it
was. Compaction and vacuum run beside, all the time, and every version of every table is counted by
a reader that shares no code with the job. Once more with the tables on S3.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest
from deltalake import DeltaTable

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.topics import create_topics
from caughtup.models.errors import CaughtupError
from caughtup.pipelines.delta.store import Store
from caughtup.pipelines.delta.upkeep import UpkeepOptions, keep_up
from caughtup.pipelines.history.tables import LAYOUTS
from tests.integration.conftest import MakeTopic
from tests.support.pipelines.committing import Committing
from tests.support.pipelines.delta import counted, rows_of, unseen
from tests.support.pipelines.s3 import BUCKET, options, s3_server

pytestmark = pytest.mark.xdist_group("spark")

KILLS = int(os.environ.get("HISTORY_KILLS", "10"))
SEED = int(os.environ.get("HISTORY_SEED", str(time.time_ns() % 1_000_000)))
#: Executors are processes of their own there.
LOCAL_CLUSTER = "local-cluster[2,1,1024]"
_SECONDS = 240.0
_BESIDE_SECONDS = 1.0


class Job:
    """``caughtup pipeline history`` with tables and a checkpoint that outlive it."""

    def __init__(
        self, cluster: EmbeddedCluster, prefix: str, directory: Path, s3: str | None = None
    ) -> None:
        self.tables = str(directory / "tables") if s3 is None else f"s3://{BUCKET}/{prefix}"
        self.options = {} if s3 is None else options(s3)
        self.log = directory / "log"
        self._directory = directory
        self._arguments = ["--bootstrap-servers", cluster.bootstrap_servers]
        self._arguments += ["--output", self.tables]
        self._arguments += ["--checkpoint", str(directory / "checkpoint")]
        self._environment = {k: v for k, v in os.environ.items() if not k.startswith("PYSPARK_")}
        self._environment["CAUGHTUP_TOPIC_PREFIX"] = prefix
        self._environment |= self.options

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
        rows = rows_of(self.tables, table, None, self.options)
        return [tuple(row[name] for name in columns) for row in rows]

    def batch(self) -> int:
        """Return the last batch that is whole, -1 before the first."""
        place = f"{self.tables}/_state"
        if not DeltaTable.is_deltatable(place, self.options):
            return -1
        state = DeltaTable(place, storage_options=self.options)
        history = state.metadata().configuration["caughtup.history"]
        return -1 if (last := state.transaction_version(history)) is None else last


class Beside(threading.Thread):
    """Compacts and vacuums a history again and again, until told to stop."""

    def __init__(self, job: Job) -> None:
        super().__init__(daemon=True)
        self._root = Store(job.tables, job.options)
        self._told = threading.Event()
        self.problems: list[str] = []
        self.compacted = self.runs = 0

    def run(self) -> None:
        names = [layout.name for layout in LAYOUTS]
        # No day is left alone: what the job writes now is compacted, too.
        given = UpkeepOptions(datetime.now(UTC).date(), keep_days=0)
        while not self._told.wait(_BESIDE_SECONDS):
            try:
                found = keep_up(self._root, names, given, unseen)
            except CaughtupError as error:
                if error.code != "no_table":
                    self.problems.append(error.message)
                continue
            self.runs += 1
            self.problems += found.problems
            self.compacted += sum(one.files_before for one in found.tables)

    def stop(self) -> None:
        self._told.set()
        self.join()


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


def wait_for(what: str, ask: Any, job: Job, process: subprocess.Popen[bytes]) -> Any:
    deadline = time.monotonic() + _SECONDS
    while not (found := ask()):
        assert process.poll() is None, job.said()
        assert time.monotonic() < deadline, f"never: {what}\n{job.said()}"
        time.sleep(0.05)
    return found


@pytest.mark.parametrize("kills", [KILLS])
@pytest.mark.thorough
@pytest.mark.timeout(300 + 120 * KILLS)
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
        s3 = None
        if stored == "s3":
            s3 = stack.enter_context(s3_server(tmp_path / "s3.log"))
        job = Job(cluster, prefix, tmp_path, s3)
        committing = stack.enter_context(Committing(cluster, make_topic("orders"), end_offsets))
        beside = Beside(job)
        beside.start()
        stack.callback(beside.stop)
        for number in range(kills):
            kill(job, random, separate=number % 3 == 1)
        committing.stop()
        job.finish()
        beside.stop()
        print(f"{beside.runs} times kept up, {beside.compacted} files compacted")
        # What writes at once may have to be done again; nothing else may fail.
        assert not [one for one in beside.problems if "oncurrent" not in one], beside.problems
        assert beside.compacted > 0
        check(job, committing)


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
        assert driver.poll() is None, job.said()
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

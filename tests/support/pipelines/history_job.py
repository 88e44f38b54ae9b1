"""``caughtup pipeline history`` as a killed process, and concurrent upkeep of its tables."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.models.errors import CaughtupError
from caughtup.pipelines.delta.store import Store
from caughtup.pipelines.delta.upkeep import UpkeepOptions, keep_up
from caughtup.pipelines.history.tables import LAYOUTS
from tests.support.pipelines.delta import rows_of, unseen
from tests.support.pipelines.s3 import BUCKET, options

#: Under load three JVMs take minutes to start.
_SECONDS = 480.0
_BESIDE_SECONDS = 1.0


class EndedError(Exception):
    """The job ended by itself because its store failed; its one line is the message."""


class Job:
    """``caughtup pipeline history`` with tables and a checkpoint that outlive it."""

    def __init__(
        self,
        cluster: EmbeddedCluster,
        prefix: str,
        directory: Path,
        s3: str | None = None,
        way: str | None = None,
    ) -> None:
        self.tables = str(directory / "tables") if s3 is None else f"s3://{BUCKET}/{prefix}"
        self.options = {} if s3 is None else options(s3)
        self.prefix, self.checkpoint = prefix, directory / "checkpoint"
        self.log = directory / "log"
        self._directory = directory
        self._arguments = ["--bootstrap-servers", cluster.bootstrap_servers]
        self._arguments += ["--output", self.tables]
        self._arguments += ["--checkpoint", str(self.checkpoint)]
        self._environment = {k: v for k, v in os.environ.items() if not k.startswith("PYSPARK_")}
        self._environment["CAUGHTUP_TOPIC_PREFIX"] = prefix
        self._environment |= self.options if way is None else options(way)

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
        """Return the last complete batch, -1 before the first."""
        place = f"{self.tables}/_state"
        if not DeltaTable.is_deltatable(place, self.options):
            return -1
        state = DeltaTable(place, storage_options=self.options)
        history = state.metadata().configuration["caughtup.history"]
        return -1 if (last := state.transaction_version(history)) is None else last


class Beside(threading.Thread):
    """Compacts and vacuums a history repeatedly, until stopped."""

    def __init__(self, job: Job) -> None:
        super().__init__(daemon=True)
        self._root = Store(job.tables, job.options)
        self._stopped = threading.Event()
        self.problems: list[str] = []
        self.compacted = self.runs = 0

    def run(self) -> None:
        names = [layout.name for layout in LAYOUTS]
        # All days are included: new files are compacted, too.
        given = UpkeepOptions(datetime.now(UTC).date(), keep_days=0)
        while not self._stopped.wait(_BESIDE_SECONDS):
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
        self._stopped.set()
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


def wait_for(what: str, ask: Callable[[], Any], job: Job, process: subprocess.Popen[bytes]) -> Any:
    """Call ``ask`` until it returns a true value. Raises EndedError if the job ended by itself."""
    deadline = time.monotonic() + _SECONDS
    while not (found := ask()):
        if process.poll() is not None:
            last = job.said().splitlines()[-1:]
            assert process.returncode == 1, job.said()
            assert last[0].startswith("caughtup: "), job.said()
            raise EndedError(last[0])
        assert time.monotonic() < deadline, f"never: {what}\n{job.said()}"
        time.sleep(0.05)
    return found

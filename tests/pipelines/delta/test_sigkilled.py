"""A writer of batches under SIGKILL at any moment, with compaction and vacuum beside.

All but Kafka and Spark is the job's own: with them it is tests/integration/history/test_killed.py.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from random import Random
from typing import Any

import pytest
from deltalake import DeltaTable

from caughtup.pipelines.delta.store import Store
from caughtup.pipelines.delta.upkeep import UpkeepOptions, keep_up
from caughtup.pipelines.history.tables import LAYOUTS
from tests.support.pipelines.by_hand import records_of, write_batch
from tests.support.pipelines.delta import OWNER, counted, new_tables, rows_of, unseen
from tests.support.pipelines.s3 import BUCKET, options, s3_server

pytestmark = pytest.mark.heavy

ROOT = Path(__file__).resolve().parents[3]
SEED = int(os.environ.get("HISTORY_SEED", str(time.time_ns() % 1_000_000)))
NAMES = [layout.name for layout in LAYOUTS]
#: By what a table's rows are known; of lag a batch has several.
KEYS = {
    "commits": ("log_partition", "log_offset"),
    "end_offsets": ("log_partition", "log_offset"),
    "lag": ("group", "as_of", "committed", "end_offset", "source"),
}
_SECONDS = 240.0


@contextmanager
def writing(root: Store, batches: int, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "tests.support.pipelines.by_hand", root.uri, str(batches)]
    with log.open("ab") as out:
        process = subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, **root.options}, stdout=out, stderr=out
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def last_batch(root: Store) -> int:
    """Return the last whole batch, -1 before the first."""
    place, given = f"{root.uri}/_state", dict(root.options)
    if not DeltaTable.is_deltatable(place, given):
        return -1
    last = DeltaTable(place, storage_options=given).transaction_version(OWNER.history)
    return -1 if last is None else last


class Beside(threading.Thread):
    """Compacts and vacuums again and again, until told to stop."""

    def __init__(self, root: Store) -> None:
        super().__init__(daemon=True)
        self._root, self._told = root, threading.Event()
        self.problems: list[str] = []
        self.compacted = 0

    def run(self) -> None:
        while not self._told.wait(0.3):
            found = keep_up(self._root, NAMES, UpkeepOptions(date(2026, 11, 23)), unseen)
            self.problems += found.problems
            self.compacted += sum(one.files_before for one in found.tables)

    def stop(self) -> None:
        self._told.set()
        self.join()


def check(root: Store, batches: int, whole: Path) -> None:
    """Count every version of every table; the newest has what one that nobody killed has."""
    for batch in range(batches):
        write_batch(new_tables(whole), batch, records_of(batch))
    for table, key in KEYS.items():
        delta = DeltaTable(f"{root.uri}/{table}", storage_options=dict(root.options))
        said = {one["version"]: one["operation"] for one in delta.history()}
        before = Counter[tuple[Any, ...]]()
        for version in range(delta.version() + 1):
            rows = counted(rows_of(root.uri, table, version, root.options), *key)
            assert max(rows.values(), default=1) == 1, f"{table} at {version}: a row twice"
            assert rows >= before, f"{table} at {version}: a row is gone"
            # Only a batch's commit adds rows: all of it at once.
            assert rows == before or said[version] == "WRITE", f"{table} at {version}"
            before = rows
        assert before == counted(rows_of(whole, table), *key)
        print(f"{table}: {delta.version() + 1} versions, {before.total()} rows")


def killed(root: Store, kills: int, directory: Path) -> None:
    """Kill a writer so many times, each after a batch more and a moment, and let the last end."""
    print(f"HISTORY_SEED={SEED}")
    random, log = Random(SEED), directory / "log"
    new_tables(root)
    beside = Beside(root)
    beside.start()
    try:
        batches = write_and_kill(root, kills, random, log)
    finally:
        beside.stop()
    # What changes the same files at once has to be done again; nothing else may fail.
    assert not [one for one in beside.problems if "oncurrent" not in one], beside.problems
    assert beside.compacted > 0
    check(root, batches, directory / "whole")


def write_and_kill(root: Store, kills: int, random: Random, log: Path) -> int:
    """Return how many batches there are in the end."""
    for _ in range(kills):
        before, deadline = last_batch(root), time.monotonic() + _SECONDS
        with writing(root, 10_000, log) as process:
            while last_batch(root) == before:
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < deadline, "no batch is whole"
                time.sleep(0.01)
            time.sleep(random.uniform(0, 0.3))  # the moment to kill it at, and no waiting for it
            process.kill()
    batches = last_batch(root) + 3
    with writing(root, batches, log) as process:
        assert process.wait(_SECONDS) == 0, log.read_text()
    return batches


def test_killed_at_any_moment_each_version_has_whole_batches_once(tmp_path: Path) -> None:
    killed(Store(str(tmp_path / "tables")), 2, tmp_path)


@pytest.mark.thorough
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("stored", ["files", "s3"])
def test_ten_kills(tmp_path: Path, stored: str) -> None:
    if stored == "files":
        killed(Store(str(tmp_path / "tables")), 10, tmp_path)
        return
    with s3_server(tmp_path / "s3.log") as url:
        killed(Store(f"s3://{BUCKET}/tables", options(url)), 10, tmp_path)

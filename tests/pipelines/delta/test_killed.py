"""Whenever a batch ends, and whatever runs beside: no version of a table has half of one, or twice."""

from __future__ import annotations

from collections import Counter
from datetime import date
from pathlib import Path
from random import Random
from typing import Any

import pytest
from deltalake import DeltaTable

from caughtup.pipelines.delta import table as delta_table
from caughtup.pipelines.delta.upkeep import UpkeepOptions, keep_up
from caughtup.pipelines.history.tables import LAYOUTS
from tests.support.pipelines.by_hand import GROUPS, records_of, write_batch
from tests.support.pipelines.delta import counted, new_tables, rows_of, unseen

NAMES = [layout.name for layout in LAYOUTS]
BATCHES = 5
TODAY = date(2026, 11, 23)
#: By what a table's rows are known, and how many a batch has of each.
KEYS = {
    "commits": (("log_offset",), len(GROUPS)),
    "end_offsets": (("log_offset",), 1),
    "lag": (("group", "as_of", "committed", "end_offset", "source"), None),
}


class Killed(BaseException):
    """Ends a batch at once, as a kill does."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Counter[tuple[Any, ...]]]:
    """Return what the tables have that nobody killed."""
    root = tmp_path_factory.mktemp("whole")
    for batch in range(BATCHES):
        write_batch(new_tables(root), batch, records_of(batch))
    return {name: counted(rows_of(root, name), *key) for name, (key, _) in KEYS.items()}


def upkeep(root: Path) -> None:
    found = keep_up(new_tables(root).root, NAMES, UpkeepOptions(TODAY), unseen)
    assert found.problems == []


def check_every_version(root: Path, whole: dict[str, Counter[tuple[Any, ...]]]) -> int:
    """Count each version with a reader that shares no code with us; return how many there were."""
    versions = 0
    for name, (key, of_batch) in KEYS.items():
        before = Counter[tuple[Any, ...]]()
        for version in range(DeltaTable(root / name).version() + 1):
            rows = counted(rows_of(root, name, version), *key)
            assert max(rows.values(), default=1) == 1, f"{name} at {version}: a row twice"
            assert rows >= before, f"{name} at {version}: a row is gone"
            assert of_batch is None or not rows.total() % of_batch, f"{name} at {version}: a half"
            before, versions = rows, versions + 1
        assert before == whole[name]
    return versions


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_killed_around_any_commit_each_version_has_whole_batches_once(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    whole: dict[str, Counter[tuple[Any, ...]]],
    after: bool,
) -> None:
    commit = delta_table.HistoryTable.commit
    left = 0

    def killed(*arguments: Any, **named: Any) -> None:
        nonlocal left
        left -= 1
        if left == 0 and not after:
            raise Killed
        commit(*arguments, **named)
        if left == 0:
            raise Killed

    monkeypatch.setattr(delta_table.HistoryTable, "commit", killed)
    kills = 0
    for batch in range(BATCHES):
        left = batch + 1  # commits, end_offsets, lag and the state have one each
        try:
            write_batch(new_tables(tmp_path), batch, records_of(batch))
        except Killed:
            kills += 1
            left = 0
            if batch % 2:
                upkeep(tmp_path)
            # What is compacted is gone from the log: what was written at first must stay.
            write_batch(new_tables(tmp_path), batch, records_of(batch))
    assert kills == 4
    assert check_every_version(tmp_path, whole) > 3 * BATCHES


def test_compaction_and_vacuum_beside_change_no_row_at_any_version(
    tmp_path: Path, whole: dict[str, Counter[tuple[Any, ...]]]
) -> None:
    random = Random(20)
    tables = new_tables(tmp_path)  # whose handles know nothing of what is compacted
    for batch in range(BATCHES):
        write_batch(tables, batch, records_of(batch), buckets=random.choice((4, 8)))
        upkeep(tmp_path)
    check_every_version(tmp_path, whole)


def test_a_batch_that_is_done_again_and_reads_less_takes_nothing_back(tmp_path: Path) -> None:
    write_batch(new_tables(tmp_path), 0, records_of(0))
    version = DeltaTable(tmp_path / "commits").version()
    tables = new_tables(tmp_path)
    tables.add(0, {})
    write_batch(tables, 0, records_of(0)[:2])
    assert DeltaTable(tmp_path / "commits").version() == version
    assert len(rows_of(tmp_path, "commits")) == len(GROUPS)


def test_the_last_whole_batch_tells_the_versions_that_belong_together(tmp_path: Path) -> None:
    tables = new_tables(tmp_path)
    write_batch(tables, 0, records_of(0))
    write_batch(tables, 1, records_of(1)[1:])  # without a look at a log's end
    said = DeltaTable(tmp_path / "_state").history(1)[0]
    assert said["caughtup.batch"] == "history-1 1"
    told = {name: int(said[f"caughtup.version.{name}"]) for name in KEYS}
    assert told == {"commits": 2, "end_offsets": 1, "lag": 2}
    assert len(rows_of(tmp_path, "commits", told["commits"])) == 2 * len(GROUPS)

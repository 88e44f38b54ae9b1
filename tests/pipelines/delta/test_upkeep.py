"""What upkeep changes, and what it leaves."""

from __future__ import annotations

import os
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from deltalake import DeltaTable

from caughtup.models.errors import CaughtupError
from caughtup.pipelines.delta.store import Store
from caughtup.pipelines.delta.upkeep import TableUpkeep, Upkeep, UpkeepOptions, keep_up
from caughtup.pipelines.history.stream import DailyUpkeep
from caughtup.pipelines.history.tables import LAYOUTS
from tests.support.pipelines.by_hand import GROUPS, records_of, write_batch
from tests.support.pipelines.commit_batches import NOW_MS
from tests.support.pipelines.delta import new_tables, rows_of, unseen

NAMES = [layout.name for layout in LAYOUTS]
#: Batches are half a day apart, from this day on.
FIRST = datetime.fromtimestamp(NOW_MS / 1000, UTC).date()
LATER = date(FIRST.year + 2, 1, 1)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    tables = new_tables(tmp_path)
    for batch in range(6):
        write_batch(tables, batch, records_of(batch))
    return tmp_path


def kept(root: Path, options: UpkeepOptions) -> dict[str, TableUpkeep]:
    found = keep_up(Store(str(root)), NAMES, options, unseen)
    assert found.problems == []
    return {one.table: one for one in found.tables}


def files(root: Path, table: str) -> int:
    return len(DeltaTable(root / table).file_uris())


def test_a_dry_run_says_what_would_be_done_and_the_last_days_are_left(root: Path) -> None:
    before = files(root, "end_offsets")
    options = UpkeepOptions(LATER, dry_run=True)
    planned = kept(root, options)["end_offsets"]
    assert files(root, "end_offsets") == before == 6
    done = kept(root, UpkeepOptions(LATER))["end_offsets"]
    assert (planned.files_before, planned.days) == (done.files_before, done.days)
    assert files(root, "end_offsets") == before - done.files_before + done.files_after < before
    assert kept(root, UpkeepOptions(FIRST))["commits"].files_before == 0, "no day is past"


def test_old_days_are_left_out_and_can_be_read_back_until_vacuum(root: Path) -> None:
    version = DeltaTable(root / "commits").version()
    days = {row["date"] for row in rows_of(root, "commits")}
    today = date.fromordinal(max(days).toordinal() + 10)
    done = kept(root, UpkeepOptions(today, keep=10))["commits"]
    assert done.files_of_old_days > 0
    assert {row["date"] for row in rows_of(root, "commits")} == {max(days)}
    assert len(rows_of(root, "commits", version)) == 6 * len(GROUPS)
    write_batch(new_tables(root), 6, records_of(6))


def test_vacuum_leaves_what_a_batch_has_not_added_yet(root: Path) -> None:
    folder = Path(DeltaTable(root / "commits").file_uris()[0]).parent
    young, old = folder / "young.parquet", folder / "old.parquet"
    for path in (young, old):
        path.write_bytes(b"PAR1")
    os.utime(old, (1, 1))
    assert kept(root, UpkeepOptions(LATER))["commits"].files_vacuumed == 1
    assert (young.exists(), old.exists()) == (True, False)


def test_the_history_keeps_its_tables_up_once_a_day(
    root: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    days = []

    def seen(_root: Store, _names: object, options: UpkeepOptions, _progress: object) -> Upkeep:
        days.append(options.today)
        return Upkeep([], ["can't vacuum lag: the store doesn't answer"])

    monkeypatch.setattr("caughtup.pipelines.history.stream.keep_up", seen)
    for today in (FIRST, FIRST, LATER, LATER):
        DailyUpkeep(new_tables(root), None).keep_up(today)
    assert days == [FIRST, LATER]
    assert "maintaining the tables: can't vacuum lag" in caplog.text
    write_batch(new_tables(root), 6, records_of(6))


def test_what_is_no_history_is_said(tmp_path: Path, root: Path) -> None:
    with pytest.raises(CaughtupError, match="there are no tables of a history at"):
        keep_up(Store(str(tmp_path / "nowhere")), NAMES, UpkeepOptions(FIRST), unseen)
    with pytest.raises(CaughtupError, match=r"there is no table lags at .*, but commits, lag"):
        keep_up(Store(str(root)), NAMES, UpkeepOptions(FIRST, tables=["lags"]), unseen)

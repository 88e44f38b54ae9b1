"""Small files become one, and whenever it ends, each row is there exactly once in the end."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own way to import it)

from caughtup.models.errors import CaughtupError
from caughtup.pipelines import compact as job
from caughtup.pipelines.compact import Compactions, CompactOptions, compact
from caughtup.pipelines.sized_files import SizedFiles
from tests.support.small_files import (
    BATCHES,
    LATER,
    ROWS,
    TODAY,
    folder,
    is_tidy,
    names_in,
    rows_in,
    write_file,
    write_history,
)

JOURNAL = "lag.date=2026-11-20.group_bucket=1.compacted-0000000001-0000000004"
MADE = "compacted-0000000001-0000000004-000.parquet"


@contextmanager
def silent(_what: str, _steps: int) -> Iterator[Callable[[int], None]]:
    yield lambda _: None


def run(spark: SparkSession, root: Path, **options: Any) -> Compactions:
    return compact(spark, CompactOptions(str(root), TODAY, **options), silent)


def small_history(root: Path) -> Path:
    """Write one folder of three files, whose rows compacting has to keep, and a newer batch."""
    place = folder(root, "lag", 2, "group_bucket", 1)
    for batch in (1, 2, 4):
        write_file(place, batch, TODAY)
    write_file(folder(root, "lag", 0, "group_bucket", 1), 5, TODAY)
    return place


def test_each_past_days_files_become_one_with_all_their_columns_sorted(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_history(tmp_path)
    write_history(tmp_path, "end_offsets", "topic_bucket")
    before, today = rows_in(tmp_path), folder(tmp_path, "lag", 0, "group_bucket", 1)
    (folder(tmp_path, "lag", 2, "group_bucket", 1) / "notes.txt").write_text("somebody's")
    untouched = names_in(today)

    found = run(spark, tmp_path)

    assert found.problems == []
    ends, lag = found.tables
    for table, name in ((ends, "end_offsets"), (lag, "lag")):
        assert (table.table, table.days) == (name, {"date=2026-11-20", "date=2026-11-21"})
        assert (table.files_before, table.files_after) == (2 * 2 * BATCHES, 4)
        assert table.bytes_before > (table.bytes_after or 0) > 0
    assert rows_in(tmp_path) == before
    assert is_tidy(tmp_path)
    assert names_in(today) == untouched
    assert (folder(tmp_path, "lag", 2, "group_bucket", 1) / "notes.txt").exists()
    made = folder(tmp_path, "lag", 1, "group_bucket", 3) / (
        "compacted-0000000004-0000000007-000.parquet"
    )
    assert names_in(made.parent) == [made.name]
    file = pyarrow.parquet.ParquetFile(made)
    assert set(file.schema_arrow.names) == set(LATER.names)
    assert file.metadata.row_group(0).column(0).compression == "ZSTD"
    keys = ("group", "as_of", "log_partition", "log_offset")
    rows = [tuple(row[key] for key in keys) for row in file.read().to_pylist()]
    assert rows == sorted(rows)

    again = run(spark, tmp_path)
    assert [table.files_before for table in again.tables] == [0, 0]


def test_large_ones_become_several_in_order_and_compacting_again_changes_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    place = folder(tmp_path, "lag", 2, "group_bucket", 1)
    for batch in range(1, 9):
        write_file(place, batch, TODAY, rows=2_000)
    write_file(folder(tmp_path, "lag", 0, "group_bucket", 1), 9, TODAY)
    before, size = rows_in(tmp_path), sum(path.stat().st_size for path in place.iterdir())

    (table,) = run(spark, tmp_path, target_bytes=size // 3).tables

    names = names_in(place)
    assert 1 < table.files_after == len(names) <= 4
    assert rows_in(tmp_path) == before
    groups = [
        group
        for name in names
        for group in pyarrow.parquet.ParquetFile(place / name).read(["group"])["group"].to_pylist()
    ]
    assert groups == sorted(groups)
    while table.files_before:  # what came out smaller than half the target
        (table,) = run(spark, tmp_path, target_bytes=size // 3).tables
    assert rows_in(tmp_path) == before


def test_the_newest_batch_and_what_appears_meanwhile_stay_as_they_are(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = small_history(tmp_path)
    write_file(place, 5, TODAY)  # late, by a batch that may be written again
    write_file(place, 3, TODAY).rename(tmp_path / "waiting")
    write = job._write

    def meanwhile(*arguments: Any) -> Any:
        (tmp_path / "waiting").rename(place / "batch-0000000003.parquet")
        return write(*arguments)

    monkeypatch.setattr(job, "_write", meanwhile)
    (table,) = run(spark, tmp_path).tables
    assert table.files_before == 3
    assert names_in(place) == ["batch-0000000003.parquet", "batch-0000000005.parquet", MADE]


def test_a_dry_run_tells_and_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    write_history(tmp_path)
    everything = sorted(tmp_path.rglob("*"))
    (table,) = run(spark, tmp_path, dry_run=True).tables
    assert (table.files_before, table.files_after, table.bytes_after) == (2 * 2 * BATCHES, 4, None)
    assert sorted(tmp_path.rglob("*")) == everything


class Killed(BaseException):
    """Ends a run at once, as a kill does: nothing is tidied up."""


class Mortal(SizedFiles):
    """Files whose driver is killed before the change of a certain number."""

    left = 0

    def _change(self) -> None:
        if Mortal.left == 0:
            raise Killed
        Mortal.left -= 1

    def put(self, source: str, target: str) -> bool:
        self._change()
        return super().put(source, target)

    def delete(self, path: str) -> None:
        self._change()
        super().delete(path)

    def write(self, path: str, content: bytes) -> None:
        self._change()
        super().write(path, content)


def test_killed_at_any_change_the_next_run_leaves_each_row_exactly_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_history(tmp_path / "whole")
    before = rows_in(tmp_path / "whole")
    kills = 0
    while True:
        root = tmp_path / str(kills)
        shutil.copytree(tmp_path / "whole", root)
        with monkeypatch.context() as patched:
            patched.setattr(job, "SizedFiles", Mortal)
            Mortal.left = kills
            try:
                run(spark, root)
                break
            except Killed:
                kills += 1
        seen = rows_in(root)
        assert seen.keys() == before.keys(), f"killed before change {kills}"
        run(spark, root)
        assert rows_in(root) == before, f"killed before change {kills}"
        assert is_tidy(root)
        assert names_in(folder(root, "lag", 2, "group_bucket", 1)) == [MADE]
        shutil.rmtree(root)
    assert kills >= 9  # two journals, each moved into place, a new file, three old ones, tidying


def test_killed_while_it_ends_what_another_left_it_is_ended_by_the_third(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_history(tmp_path / "whole")
    before = rows_in(tmp_path / "whole")
    for first in (4, 6):
        for second in range(6):
            root = tmp_path / f"{first}-{second}"
            shutil.copytree(tmp_path / "whole", root)
            for left in (first, second):
                with monkeypatch.context() as patched:
                    patched.setattr(job, "SizedFiles", Mortal)
                    Mortal.left = left
                    with pytest.raises(Killed):
                        run(spark, root)
                assert rows_in(root).keys() == before.keys()
            run(spark, root)
            assert rows_in(root) == before
            assert is_tidy(root)


def test_killed_while_spark_writes_it_is_undone_and_done_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = small_history(tmp_path)
    before, write = rows_in(tmp_path), job._write

    def killed(*arguments: Any) -> Any:
        (made,) = write(*arguments)
        half = Path(arguments[-1]) / made.staged
        half.write_bytes(half.read_bytes()[:100])
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(job, "_write", killed)
        with pytest.raises(Killed):
            run(spark, tmp_path)
    assert not is_tidy(tmp_path)
    assert rows_in(tmp_path) == before
    run(spark, tmp_path)
    assert rows_in(tmp_path) == before
    assert is_tidy(tmp_path)
    assert names_in(place) == [MADE]


@pytest.mark.parametrize("harm", ["footer", "pages", "empty", "type"])
def test_a_file_that_cannot_be_read_is_named_and_its_folder_left_alone(
    spark: SparkSession, tmp_path: Path, harm: str
) -> None:
    write_history(tmp_path)
    place = folder(tmp_path, "lag", 2, "group_bucket", 1)
    broken = place / "batch-0000000002.parquet"
    content = broken.read_bytes()
    match harm:
        case "footer":
            broken.write_bytes(content[:-9])
        case "pages":
            broken.write_bytes(
                b"PAR1" + b"\xff" * (len(content) // 2) + content[4 + len(content) // 2 :]
            )
        case "empty":
            broken.write_bytes(b"")
        case "type":
            table = pyarrow.table({"group": [1.5]})
            pyarrow.parquet.write_table(table, broken)
    everything = sorted(place.rglob("*"))

    found = run(spark, tmp_path)

    (problem,) = found.problems
    assert problem.startswith("can't compact lag/date=2026-11-20/group_bucket=1: ")
    assert len(problem.splitlines()) == 1
    assert sorted(place.rglob("*")) == everything
    assert is_tidy(tmp_path)
    assert found.tables[0].files_after == 3
    for back, number in ((2, 3), (1, 1), (1, 3)):
        assert len(names_in(folder(tmp_path, "lag", back, "group_bucket", number))) == 1


def test_where_rows_would_be_missing_nothing_changes(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = small_history(tmp_path)
    everything, read = sorted(place.rglob("*")), job._read

    def losing(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
        found = read(spark, paths)
        return found if "_staging" not in paths[0] else found.where(F.col("log_offset") != 1_003)

    monkeypatch.setattr(job, "_read", losing)
    (problem,) = run(spark, tmp_path).problems
    whole = 3 * ROWS
    assert problem.endswith(f"group_bucket=1: {whole - 1} of {whole} rows would be left")
    assert sorted(place.rglob("*")) == everything
    assert is_tidy(tmp_path)


def test_what_another_run_left_and_nobody_understands_keeps_its_folder_from_being_touched(
    spark: SparkSession, tmp_path: Path
) -> None:
    place = small_history(tmp_path)
    journals = tmp_path / "_compactions"
    journals.mkdir()
    everything = sorted(place.rglob("*"))
    for content, words in (
        (b"{", r"can't read .*old\.json"),
        (b'{"schema":2,"folder":"","files":{}}', "later release"),
    ):
        (journals / f"{JOURNAL}.old.json").write_bytes(content)
        found = run(spark, tmp_path)
        (problem,) = found.problems
        assert re.match(rf"can't end the compaction {JOURNAL}: .*{words}", problem)
        assert found.tables[0].files_before == 0
        assert sorted(place.rglob("*")) == everything


def journal(root: Path, new: dict[str, int]) -> None:
    """Write what a run leaves that was killed once new files were whole."""
    journals, sizes = root / "_compactions", {}
    place = folder(root, "lag", 2, "group_bucket", 1)
    for batch in (1, 2, 4):
        path = place / f"batch-{batch:010}.parquet"
        sizes[path.name] = path.stat().st_size if path.exists() else 1
    old = {"schema": 1, "folder": str(place.relative_to(root)), "files": sizes}
    files = [{"staged": f"part-{name}", "name": name, "bytes": size} for name, size in new.items()]
    journals.mkdir(exist_ok=True)
    (journals / f"{JOURNAL}.old.json").write_text(json.dumps(old))
    (journals / f"{JOURNAL}.new.json").write_text(json.dumps({"schema": 1, "files": files}))


def test_where_a_new_file_is_nowhere_the_old_ones_stay_and_others_of_it_go(
    spark: SparkSession, tmp_path: Path
) -> None:
    place = small_history(tmp_path)
    before = rows_in(tmp_path)
    shutil.copyfile(place / "batch-0000000001.parquet", place / MADE)
    lost = MADE.replace("000.parquet", "001.parquet")
    journal(tmp_path, {MADE: (place / MADE).stat().st_size, lost: 77})
    assert run(spark, tmp_path).problems == []
    assert rows_in(tmp_path) == before
    assert names_in(place) == [MADE]
    assert is_tidy(tmp_path)


def test_where_old_and_new_files_are_gone_nothing_is_deleted(
    spark: SparkSession, tmp_path: Path
) -> None:
    place = small_history(tmp_path)
    (place / "batch-0000000002.parquet").unlink()
    shutil.copyfile(place / "batch-0000000001.parquet", place / MADE)
    everything = sorted(place.rglob("*"))
    journal(tmp_path, {MADE: 99})
    (problem,) = run(spark, tmp_path).problems
    assert "batch-0000000002.parquet is gone, and what was to replace it isn't whole" in problem
    assert sorted(place.rglob("*")) == everything


@pytest.mark.parametrize(
    ("root", "tables", "words"),
    [
        ("nowhere", (), r"^no_table: there are no tables of a history at .*nowhere$"),
        ("", ("lags",), r"^no_table: there is no table lags at .*, but end_offsets, lag$"),
        ("nothing://x/y", (), r"^unreadable: can't read nothing://x/y: [^\n]*nothing[^\n]*$"),
    ],
)
def test_what_is_no_history_is_said_in_one_line(
    spark: SparkSession, tmp_path: Path, root: str, tables: Sequence[str], words: str
) -> None:
    for name in ("end_offsets", "lag"):
        write_file(folder(tmp_path, name, 2, "group_bucket", 1), 1, TODAY)
    (tmp_path / "checkpoint" / "offsets").mkdir(parents=True)
    output = root if "://" in root else str(tmp_path / root)
    options = CompactOptions(output, TODAY, tables)
    with pytest.raises(CaughtupError, match=words):
        compact(spark, options, silent)

"""Small files become one, and whenever it ends, each row is there exactly once in the end."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own way to import it)

from caughtup.models.errors import CaughtupError
from caughtup.pipelines.compaction import job
from caughtup.pipelines.schema import BUCKETS
from caughtup.pipelines.tables import LAG
from tests.support.pipelines.compacting import MADE, run_compaction, small_history
from tests.support.pipelines.small_files import (
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
from tests.support.pipelines.written_history import write_lag

pytestmark = pytest.mark.xdist_group("spark")


def test_each_past_days_files_become_one_with_all_their_columns_sorted(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_history(tmp_path)
    write_history(tmp_path, "end_offsets", "topic_bucket")
    before, today = rows_in(tmp_path), folder(tmp_path, "lag", 0, "group_bucket", 1)
    (folder(tmp_path, "lag", 2, "group_bucket", 1) / "notes.txt").write_text("somebody's")
    untouched = names_in(today)

    found = run_compaction(spark, tmp_path)

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

    again = run_compaction(spark, tmp_path)
    assert [table.files_before for table in again.tables] == [0, 0]


@pytest.mark.thorough
def test_large_ones_become_several_in_order_and_compacting_again_changes_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    place = folder(tmp_path, "lag", 2, "group_bucket", 1)
    for batch in range(1, 9):
        write_file(place, batch, TODAY, rows=2_000)
    write_file(folder(tmp_path, "lag", 0, "group_bucket", 1), 9, TODAY)
    before, size = rows_in(tmp_path), sum(path.stat().st_size for path in place.iterdir())

    (table,) = run_compaction(spark, tmp_path, target_bytes=size // 3).tables

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
        (table,) = run_compaction(spark, tmp_path, target_bytes=size // 3).tables
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
    (table,) = run_compaction(spark, tmp_path).tables
    assert table.files_before == 3
    assert names_in(place) == ["batch-0000000003.parquet", "batch-0000000005.parquet", MADE]


def test_a_batch_that_the_history_writes_again_finds_what_it_wrote(
    spark: SparkSession, tmp_path: Path
) -> None:
    start = datetime.combine(TODAY - timedelta(days=1), time(), UTC)

    def write(batch: int) -> None:
        at = {"as_of": start + timedelta(minutes=batch), "topic": "orders"}
        rows = [{**at, "group": f"group-{number}", "partition": number} for number in range(40)]
        write_lag(spark, tmp_path, batch, rows)

    for batch in range(3):
        write(batch)
    (table,) = run_compaction(spark, tmp_path).tables
    assert (table.files_before, table.files_after) == (2 * BUCKETS, BUCKETS)
    write(2)
    write(3)
    run_compaction(spark, tmp_path)
    write(3)
    found = spark.read.schema(LAG.stored).parquet(str(tmp_path / "lag"))
    minutes = found.groupBy(F.minute("as_of").alias("minute")).count().collect()
    assert sorted(minutes) == [(batch, 40) for batch in range(4)]
    bucket = found.where(F.col("group") == "group-7").select("group_bucket").distinct().collect()
    assert [row.group_bucket for row in bucket] == [zlib.crc32(b"group-7") % BUCKETS]


def test_a_dry_run_tells_and_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    write_history(tmp_path)
    everything = sorted(tmp_path.rglob("*"))
    (table,) = run_compaction(spark, tmp_path, dry_run=True).tables
    assert (table.files_before, table.files_after, table.bytes_after) == (2 * 2 * BATCHES, 4, None)
    assert sorted(tmp_path.rglob("*")) == everything


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

    found = run_compaction(spark, tmp_path)

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
    (problem,) = run_compaction(spark, tmp_path).problems
    whole = 3 * ROWS
    assert problem.endswith(f"group_bucket=1: {whole - 1} of {whole} rows would be left")
    assert sorted(place.rglob("*")) == everything
    assert is_tidy(tmp_path)


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
    with pytest.raises(CaughtupError, match=words):
        run_compaction(spark, output, tables=tables)

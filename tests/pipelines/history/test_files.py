"""What keeps a history whole over kills: names of files, states of batches, whose tables they are."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from caughtup.models.errors import CaughtupError
from caughtup.models.ids import TopicPartition
from caughtup.pipelines.history.buckets.tables import NEW_FILES
from caughtup.pipelines.history.identity import check_identity
from caughtup.pipelines.history.lost_ranges import LostRange, batch_offsets, lost_ranges
from caughtup.pipelines.history.state import HistoryState
from caughtup.pipelines.history.table_writer import TableWriter
from caughtup.pipelines.schema import bucket
from caughtup.pipelines.spark.files import Files
from caughtup.pipelines.tables import LAG
from tests.support.pipelines.written_history import write_lag

pytestmark = pytest.mark.xdist_group("spark")

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
CLUSTER = "2VRiQaSTRTyA9bBbE_kRyQ"
ORDERS = TopicPartition("orders", 0)


@pytest.fixture(scope="module")
def files(spark: SparkSession) -> Files:
    return Files(spark)


def lag(*committed: int, group: str = "billing") -> list[dict[str, Any]]:
    return [{"as_of": NOON, "group": group, "committed": number} for number in committed]


def written(spark: SparkSession, root: Path) -> list[int]:
    table = spark.read.schema(LAG.stored).parquet(str(root / "lag"))
    return sorted(row["committed"] for row in table.collect())


def test_a_batch_that_is_done_again_adds_what_is_missing_and_nothing_twice(
    spark: SparkSession, tmp_path: Path
) -> None:
    both = [*lag(1, 2), *lag(3, group="shipping")]
    assert bucket("billing") != bucket("shipping")
    write_lag(spark, tmp_path, 7, both)
    (first, second) = sorted(tmp_path.glob("lag/date=*/group_bucket=*/*.parquet"))
    assert {first.name, second.name} == {"batch-0000000007.parquet"}
    kept = first.read_bytes()

    second.unlink()  # as a kill between the two would have it
    write_lag(spark, tmp_path, 7, both)

    assert written(spark, tmp_path) == [1, 2, 3]
    assert first.read_bytes() == kept
    assert list((tmp_path / "_staging").iterdir()) == []


def test_what_a_killed_driver_left_aside_is_written_over(
    spark: SparkSession, tmp_path: Path
) -> None:
    aside = tmp_path / "_staging" / "batch-7" / "folder=tables%2Flag%2Fdate=2026-11-21"
    aside.mkdir(parents=True)
    (aside / "part-0.txt").write_bytes(b"half of a file")
    write_lag(spark, tmp_path, 7, lag(1))
    assert written(spark, tmp_path) == [1]


def test_a_files_bytes_reach_its_place_unchanged(spark: SparkSession, tmp_path: Path) -> None:
    """Spark writes them as a text: what is no UTF-8, and what ends a line, must come through."""
    spark.conf.set("mapreduce.output.fileoutputformat.compress", "true")  # as a cluster's may be
    content = bytes(range(256)) * 1_000 + b"\r\n\x00\xff\xfePAR1"
    files = spark.createDataFrame([("tables/lag/date=2026-11-21", bytearray(content))], NEW_FILES)
    writer = TableWriter(spark, str(tmp_path))
    writer.put(7, writer.stage(7, files))
    place = tmp_path / "lag" / "date=2026-11-21" / "batch-0000000007.parquet"
    assert place.read_bytes() == content


def test_tables_and_state_stand_on_any_file_system_that_hadoop_knows(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Hadoop's viewfs stands for hdfs and s3a: nothing of ours may look at what a path means."""
    spark.conf.set("fs.viewfs.mounttable.caughtup.link./here", tmp_path.as_uri())
    root = "viewfs://caughtup/here"
    write_lag(spark, f"{root}/tables", 7, lag(1, 2))
    assert written(spark, tmp_path / "tables") == [1, 2]
    state = HistoryState(spark, f"{root}/state")
    (tmp_path / "aside").write_text("5")
    state.leave(0, {"commits-0": f"{root}/aside"})
    (path,) = state.before(1).values()
    (found,) = spark.read.format("binaryFile").load([path]).select("content").collect()
    assert bytes(found.content) == b"5"


def leave(state: HistoryState, aside: Path, batch: int, **contents: str) -> None:
    changed = {}
    for name, content in contents.items():
        path = aside / f"aside-{name}"
        path.write_text(content)
        changed[name] = str(path)
    state.leave(batch, changed)


def remembered(state: HistoryState, batch: int) -> dict[str, str]:
    return {name: Path(path).read_text() for name, path in state.before(batch).items()}


@pytest.fixture
def state(spark: SparkSession, tmp_path: Path) -> HistoryState:
    return HistoryState(spark, str(tmp_path / "state"))


def test_a_batch_finds_what_the_one_before_it_left(state: HistoryState, tmp_path: Path) -> None:
    assert remembered(state, 0) == {}
    leave(state, tmp_path, 0, commits="1", ends="2")
    state.leave(1, {})
    assert remembered(state, 1) == remembered(state, 2) == {"commits": "1", "ends": "2"}
    leave(state, tmp_path, 2, ends="3")
    leave(state, tmp_path, 2, ends="4")  # done again: what was left first stays
    assert remembered(state, 3) == {"commits": "1", "ends": "3"}


def test_only_the_last_states_are_kept(state: HistoryState, tmp_path: Path) -> None:
    for batch in range(8):
        leave(state, tmp_path, batch, **({} if batch == 1 else {"ends-0": str(batch)}))
    found = (tmp_path / "state").iterdir()
    names = sorted(path.name for path in found if not path.name.startswith("."))
    assert names == [
        *(f"ends-0-{batch:010}.parquet" for batch in (5, 6, 7)),
        *(f"state-{batch:010}.json" for batch in (5, 6, 7)),
    ]


@pytest.mark.parametrize("spoil", [Path.unlink, lambda path: path.write_text("{half")])
def test_a_state_that_is_missing_or_broken_is_named(
    state: HistoryState, tmp_path: Path, spoil: Callable[[Path], object]
) -> None:
    state.leave(0, {})
    spoil(tmp_path / "state" / "state-0000000000.json")
    (tmp_path / "state" / ".state-0000000000.json.crc").unlink()
    with pytest.raises(CaughtupError, match="state of batch 0") as caught:
        state.before(1)
    assert caught.value.code == "bad_checkpoint"


def test_tables_and_their_checkpoint_are_known_to_belong_together(
    files: Files, tmp_path: Path
) -> None:
    output, checkpoint = str(tmp_path / "out"), str(tmp_path / "check")
    for _ in range(2):
        check_identity(files, output, checkpoint, CLUSTER)
    with pytest.raises(CaughtupError, match="written with another checkpoint") as caught:
        check_identity(files, output, str(tmp_path / "another"), CLUSTER)
    assert caught.value.code == "bad_output"


def test_a_checkpoint_is_one_clusters(files: Files, tmp_path: Path) -> None:
    output, checkpoint = str(tmp_path / "out"), str(tmp_path / "check")
    check_identity(files, output, checkpoint, CLUSTER)
    with pytest.raises(CaughtupError, match=f"of the cluster {CLUSTER}, and this is another"):
        check_identity(files, output, checkpoint, "another")


def test_a_kill_between_the_two_marks_is_made_good(files: Files, tmp_path: Path) -> None:
    output, checkpoint = str(tmp_path / "out"), str(tmp_path / "check")
    check_identity(files, output, checkpoint, CLUSTER)
    mark = tmp_path / "out" / "_caughtup.json"
    before = mark.read_text()
    mark.unlink()
    check_identity(files, output, checkpoint, CLUSTER)
    assert mark.read_text() == before


@pytest.mark.parametrize("name", ["date=2026-11-20", "_spark_metadata"])
def test_a_table_of_an_older_release_is_left_alone(files: Files, tmp_path: Path, name: str) -> None:
    (tmp_path / "out" / name).mkdir(parents=True)
    with pytest.raises(CaughtupError, match="older release"):
        check_identity(files, str(tmp_path / "out"), str(tmp_path / "check"), CLUSTER)
    assert [path.name for path in (tmp_path / "out").iterdir()] == [name]


@pytest.mark.parametrize("schema", [2, 99])
def test_tables_of_another_release_and_other_checkpoints_are_refused(
    files: Files, tmp_path: Path, schema: int
) -> None:
    output, checkpoint = tmp_path / "out", tmp_path / "check"
    check_identity(files, str(output), str(checkpoint), CLUSTER)
    for mark in (output, checkpoint):
        path = mark / "_caughtup.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "schema": schema}))
        (mark / "._caughtup.json.crc").unlink()
    with pytest.raises(CaughtupError, match=f"schema {schema}"):
        check_identity(files, str(output), str(checkpoint), CLUSTER)
    foreign = tmp_path / "foreign"
    (foreign / "offsets").mkdir(parents=True)
    (foreign / "offsets" / "0").write_text("v1\n{}\n{}")
    with pytest.raises(CaughtupError, match="no checkpoint of this release"):
        check_identity(files, str(tmp_path / "new"), str(foreign), CLUSTER)


def test_a_batchs_offsets_are_read_from_sparks_checkpoint(files: Files, tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "3").write_text('v1\n{"batchWatermarkMs":0}\n{"orders":{"0":7}}')
    (tmp_path / "offsets" / "4").write_text("v2\nanother format")
    assert batch_offsets(files, str(tmp_path), 3) == {ORDERS: 7}
    assert batch_offsets(files, str(tmp_path), -1) == {}
    with pytest.raises(CaughtupError, match="offsets/4"):
        batch_offsets(files, str(tmp_path), 4)


@pytest.mark.parametrize(
    ("until", "first", "expected"),
    [
        (9, 5, []),
        (9, 0, []),
        (9, 7, [(5, 7, "gone")]),
        (9, 20, [(5, 9, "gone")]),
        (3, 0, [(0, 3, "the log ended at 5 and then at 3: the topic was made anew")]),
        (0, 0, []),
        (None, None, [(5, 5, "the topic was deleted")]),
    ],
)
def test_ranges_that_no_batch_can_have(
    until: int | None, first: int | None, expected: list[tuple[int, int, str]]
) -> None:
    ends = {} if until is None else {ORDERS: until}
    firsts = {} if first is None else {ORDERS: first}
    found = lost_ranges({ORDERS: 5}, ends, firsts, "gone")
    assert found == [LostRange(ORDERS, *one) for one in expected]

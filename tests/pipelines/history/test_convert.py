"""Folders of 0.1 become tables in their place: the same rows, and the job goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from caughtup.models.errors import CaughtupError
from caughtup.pipelines.delta.store import Store
from caughtup.pipelines.delta.table import Owner
from caughtup.pipelines.history import convert as conversion
from caughtup.pipelines.history.convert import Converted, convert
from caughtup.pipelines.history.generations import GROUP_RECORDS
from caughtup.pipelines.spark.arrow import arrow_schema
from tests.support.pipelines.by_hand import GROUPS, records_of, write_batch
from tests.support.pipelines.delta import new_tables, rows_of, unseen
from tests.support.pipelines.old_layout import CLUSTER, HISTORY, OldHistory, put

OWNER = Owner(HISTORY, CLUSTER)
Rows = list[dict[str, Any]]


@pytest.fixture
def old(tmp_path: Path) -> OldHistory:
    history = OldHistory(tmp_path)
    for batch in range(3):
        history.write(batch, records_of(batch))
    return history


def converted(old: OldHistory) -> list[Converted]:
    return convert(Store(str(old.tables)), Store(str(old.checkpoint)), unseen)


def ordered(rows: Rows) -> Rows:
    return sorted(rows, key=lambda row: [str(row[name]) for name in sorted(row)])


def in_folders(old: OldHistory, table: str) -> Rows:
    """Read a table as 0.1's readers did: bare Parquet in folders."""
    found = ds.dataset(old.tables / table, partitioning="hive", format="parquet")
    folders = {"date", "group_bucket", "topic_bucket"}
    rows = found.to_table().to_pylist()
    return [{n: v for n, v in row.items() if n not in folders} for row in rows]


def in_table(old: OldHistory, table: str) -> Rows:
    folders = {"date", "group_bucket", "topic_bucket"}
    rows = rows_of(old.tables, table)
    return [{n: v for n, v in row.items() if n not in folders} for row in rows]


def test_every_row_is_there_and_the_history_goes_on_as_if_nothing_was(
    old: OldHistory, tmp_path: Path
) -> None:
    before = {name: in_folders(old, name) for name in ("commits", "end_offsets", "lag")}
    files = {path: path.read_bytes() for path in old.tables.rglob("*.parquet")}
    old.write(3, records_of(3), whole=False)  # the job does it again

    told = {one.table: one for one in converted(old)}
    for name, rows in before.items():
        assert ordered(in_table(old, name)) == ordered(rows)
        assert told[name].rows == len(rows)
    assert {path: path.read_bytes() for path in files} == files
    assert not (old.tables / "_caughtup.json").exists()

    tables, rebucket = new_tables(old.tables, OWNER), new_tables(tmp_path / "anew")
    for batch in range(5):
        write_batch(rebucket, batch, records_of(batch))
    for batch in (3, 4):
        write_batch(tables, batch, records_of(batch))
    for name in before:
        assert ordered(in_table(old, name)) == ordered(
            [
                {k: v for k, v in row.items() if "bucket" not in k and k != "date"}
                for row in rows_of(tmp_path / "anew", name)
            ]
        )


def test_groups_records_that_wait_go_along(old: OldHistory) -> None:
    """Spark wrote them, into a folder."""
    place = old.checkpoint / "caughtup"
    named = place / "state-0000000002.json"
    left = json.loads(named.read_text())
    named.write_text(json.dumps({**left, "groups": "groups-0000000002.parquet"}))
    waiting = {"partition": 3, "offset": 5, "timestamp_ms": 7, "key": b"k", "value": b"v"}
    rows = pa.Table.from_pylist([{**waiting, "told": False}], schema=arrow_schema(GROUP_RECORDS))
    put(place / "groups-0000000002.parquet" / "part-0.parquet", rows)
    (place / "groups-0000000002.parquet" / "_SUCCESS").write_bytes(b"")
    converted(old)
    (row,) = (row for row in rows_of(old.tables, "_state") if row["kind"] == "groups")
    assert {name: row[name] for name in waiting} == waiting


@pytest.mark.parametrize("step", ["_take_in", "_take_state", "_write_mark"])
def test_killed_at_any_step_the_next_run_ends_it(
    old: OldHistory, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    rows = in_folders(old, "commits")
    with monkeypatch.context() as patched:
        patched.setattr(conversion, step, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            converted(old)
    converted(old)
    assert ordered(in_table(old, "commits")) == ordered(rows)
    mark = json.loads((old.checkpoint / "_caughtup.json").read_text())
    assert (mark["history"], mark["schema"]) == (HISTORY, 4)
    assert not (old.checkpoint / "._caughtup.json.crc").exists(), "Hadoop would refuse the mark"
    with pytest.raises(CaughtupError, match="is of schema 4, and only schema 3 can be converted"):
        converted(old)


def test_what_does_not_belong_together_is_refused_with_nothing_written(
    old: OldHistory, tmp_path: Path
) -> None:
    other = OldHistory(tmp_path / "other")
    (other.checkpoint / "_caughtup.json").write_text(
        json.dumps({"history": "another", "cluster": CLUSTER, "schema": 3})
    )
    with pytest.raises(CaughtupError, match=r"has no folders that .* is the checkpoint of"):
        convert(Store(str(old.tables)), Store(str(other.checkpoint)), unseen)
    with pytest.raises(CaughtupError, match=r"can't read .*nowhere/_caughtup.json"):
        convert(Store(str(old.tables)), Store(str(tmp_path / "nowhere")), unseen)
    assert not (old.tables / "commits" / "_delta_log").exists()


def test_an_unfinished_compaction_of_01_is_ended_first(old: OldHistory) -> None:
    (old.tables / "_compactions").mkdir()
    (old.tables / "_compactions" / "lag.old.json").write_text("{}")
    with pytest.raises(CaughtupError, match=r"compaction of .* ended early"):
        converted(old)


@pytest.mark.parametrize("broken", ["garbage", "another type"])
def test_a_file_that_is_not_the_tables_is_named(old: OldHistory, broken: str) -> None:
    (path, *_) = sorted((old.tables / "commits").rglob("batch-0000000001.parquet"))
    if broken == "garbage":
        path.write_bytes(b"not Parquet")
    else:
        put(path, pa.table({"group": [1]}))
    with pytest.raises(CaughtupError, match=path.name) as caught:
        converted(old)
    assert "\n" not in caught.value.message
    assert not (old.tables / "commits" / "_delta_log").exists()


def test_a_state_that_is_gone_is_named(old: OldHistory) -> None:
    (old.checkpoint / "caughtup" / "state-0000000002.json").unlink()
    with pytest.raises(CaughtupError, match=r"state of batch 2, .*state-0000000002.json"):
        converted(old)
    assert len(GROUPS) == len(in_folders(old, "commits")) // 3

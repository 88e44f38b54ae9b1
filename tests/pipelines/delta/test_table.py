"""What a table refuses, each in one line and with nothing lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError

from caughtup.models.errors import CaughtupError
from caughtup.pipelines.delta.files import NewFile, write_file
from caughtup.pipelines.delta.table import Owner
from caughtup.pipelines.history.tables import HistoryTables
from tests.support.pipelines.by_hand import GROUPS, records_of, write_batch
from tests.support.pipelines.delta import OWNER, new_tables, rows_of


def a_file(tables: HistoryTables) -> list[NewFile]:
    rows = pa.table({"group": ["billing"]})
    folder = "date=2026-11-23/group_bucket=1"
    return [write_file(tables.root, "commits", folder, "batch", rows, ())]


def test_two_jobs_with_one_checkpoint_write_no_batch_twice(tmp_path: Path) -> None:
    first, second = new_tables(tmp_path), new_tables(tmp_path)
    for tables in (first, second):
        tables["commits"].batch(OWNER)
    first["commits"].commit(OWNER, 0, a_file(first))
    with pytest.raises(
        CaughtupError, match="another job writes with this checkpoint: it wrote the table"
    ):
        second["commits"].commit(OWNER, 0, a_file(second))
    assert len(rows_of(tmp_path, "commits")) == 1


def test_a_second_history_on_the_tables_is_refused_by_name(tmp_path: Path) -> None:
    new_tables(tmp_path)
    with pytest.raises(CaughtupError, match="is written by the history history-1") as caught:
        new_tables(tmp_path, Owner("history-2", OWNER.cluster))
    assert caught.value.code == "bad_output"


def test_somebody_elses_table_is_left_alone(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "commits", pa.table({"x": [1]}))
    with pytest.raises(CaughtupError, match="commits is a Delta table, but not one of caughtup's"):
        new_tables(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["commits"]


def changed(tmp_path: Path, name: str, change: Any) -> None:
    """Change an action of the first commit of the table of commits."""
    log = tmp_path / "commits" / "_delta_log" / "00000000000000000000.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if name in action:
            change(action[name])
    log.write_text("\n".join(map(json.dumps, actions)))


def test_a_table_of_a_later_release_is_refused(tmp_path: Path) -> None:
    new_tables(tmp_path)
    changed(tmp_path, "metaData", lambda m: m["configuration"].update({"caughtup.schema": "5"}))
    with pytest.raises(CaughtupError, match="is of schema 5, and this release writes schema 4"):
        new_tables(tmp_path)


def test_a_table_of_a_protocol_that_the_library_does_not_know_is_refused(tmp_path: Path) -> None:
    new_tables(tmp_path)
    changed(
        tmp_path,
        "protocol",
        lambda p: p.update(
            minReaderVersion=3,
            minWriterVersion=7,
            readerFeatures=["unheardOf"],
            writerFeatures=["unheardOf"],
        ),
    )
    with pytest.raises(CaughtupError) as caught:
        write_batch(new_tables(tmp_path), 0, records_of(0))
    assert "\n" not in caught.value.message


def test_a_checkpoint_that_is_behind_or_ahead_of_its_tables_is_refused(tmp_path: Path) -> None:
    tables = new_tables(tmp_path)
    for batch in (0, 1):
        write_batch(tables, batch, records_of(batch))
    for batch in (0, 3):
        with pytest.raises(
            CaughtupError, match=f"at batch {batch}, and the last one of the tables is 1"
        ):
            tables.state.is_whole(batch, f"digest-{batch}")
    with pytest.raises(CaughtupError, match="an older copy"):
        tables.state.is_whole(1, "the same batch up to other offsets")
    assert len(rows_of(tmp_path, "commits")) == 2 * len(GROUPS)


class Failing:
    """A handle of a table whose store fails at a commit, before it took it or after."""

    def __init__(self, delta: DeltaTable, *, after: bool) -> None:
        self._delta, self._after = delta, after

    def create_write_transaction(self, *arguments: Any, **named: Any) -> None:
        if self._after:
            self._delta.create_write_transaction(*arguments, **named)
        raise CommitFailedError("Generic S3 error: 503\n\x1b[31m↳\x1b[0m connection closed")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._delta, name)


def test_a_store_that_fails_after_it_took_a_commit_took_it(tmp_path: Path) -> None:
    tables = new_tables(tmp_path)
    table = tables["commits"]
    table.batch(OWNER)
    table._delta = Failing(table._delta, after=True)
    table.commit(OWNER, 0, a_file(tables))
    assert len(rows_of(tmp_path, "commits")) == 1


def test_a_store_that_fails_is_said_in_one_line_and_the_batch_is_done_again(
    tmp_path: Path,
) -> None:
    tables = new_tables(tmp_path)
    table = tables["lag"]
    whole, table._delta = table._delta, Failing(table._delta, after=False)
    with pytest.raises(
        CaughtupError, match=r"can't write .*/lag: Generic S3 error: 503: conn"
    ) as e:
        write_batch(tables, 0, records_of(0))
    assert (e.value.code, "\n" in e.value.message) == ("output_unwritable", False)
    table._delta = whole
    write_batch(tables, 0, records_of(0))
    assert len(rows_of(tmp_path, "commits")) == len(rows_of(tmp_path, "lag")) == len(GROUPS)

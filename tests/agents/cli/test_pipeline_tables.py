"""The commands that keep the history's tables: compact and convert."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from deltalake import DeltaTable

from caughtup.agents.cli import pipeline_tables as compact_command
from caughtup.agents.cli.pipeline_tables import convert
from tests.support.pipelines.by_hand import GROUPS, records_of, write_batch
from tests.support.pipelines.commit_batches import NOW_MS
from tests.support.pipelines.delta import counted, new_tables, rows_of
from tests.support.pipelines.old_layout import OldHistory

BATCHES = 4


@pytest.fixture(autouse=True)
def _today(monkeypatch: pytest.MonkeyPatch) -> None:
    later = datetime.fromtimestamp(NOW_MS / 1000, UTC) + timedelta(days=30)
    monkeypatch.setattr(compact_command, "now_ms", lambda: int(later.timestamp() * 1000))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    tables = new_tables(tmp_path)
    for batch in range(BATCHES):
        write_batch(tables, batch, records_of(batch))
    return tmp_path


def compact(*arguments: str) -> Result:
    return CliRunner().invoke(compact_command.compact, arguments)


def test_it_says_what_it_would_do_and_does_it(root: Path) -> None:
    before = counted(rows_of(root, "commits"), "group", "log_offset")
    files = len(DeltaTable(root / "commits").file_uris())
    asked = compact("--output", str(root), "--dry-run", "--master", "local[1]")
    assert asked.exit_code == 0, asked.output
    assert "Would be done" in asked.stdout
    assert len(DeltaTable(root / "commits").file_uris()) == files

    done = compact("--output", root.as_uri(), "--table", "commits", "--format", "json")
    assert done.exit_code == 0, done.output
    (line,) = map(json.loads, done.stdout.splitlines())
    assert line["table"] == "commits"
    assert line["files_before"] > line["files_after"] > 0
    assert line["bytes_before"] > line["bytes_after"] > 0
    left = files - line["files_before"] + line["files_after"]
    assert len(DeltaTable(root / "commits").file_uris()) == left
    assert counted(rows_of(root, "commits"), "group", "log_offset") == before


def test_days_that_are_not_kept_are_left_out(root: Path) -> None:
    done = compact("--output", str(root), "--keep", "29d", "--format", "json")
    assert done.exit_code == 0, done.output
    lines = {line["table"]: line for line in map(json.loads, done.stdout.splitlines())}
    assert lines["commits"]["files_of_old_days"] > 0
    assert 0 < len(rows_of(root, "commits")) < BATCHES * len(GROUPS)
    refused = compact("--output", str(root), "--keep", "29")
    assert refused.exit_code == 2
    assert "such as 90d" in refused.output


def test_a_place_without_a_history_is_said_in_one_line(tmp_path: Path) -> None:
    result = compact("--output", str(tmp_path / "nowhere"))
    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        f"caughtup: there are no tables of a history at {tmp_path}/nowhere"
    ]
    assert result.stdout == ""


def test_it_says_what_the_tables_took_in(tmp_path: Path) -> None:
    old = OldHistory(tmp_path)
    for batch in range(2):
        old.write(batch, records_of(batch))
    arguments = ["--output", old.tables.as_uri(), "--checkpoint", str(old.checkpoint)]
    done = CliRunner().invoke(convert, arguments)
    assert done.exit_code == 0, done.output
    (line,) = (line for line in done.stdout.splitlines() if " commits " in line)
    assert [word for word in line.split() if word.isdigit()][-1] == str(2 * len(GROUPS))
    assert len(rows_of(old.tables, "commits")) == 2 * len(GROUPS)

    again = CliRunner().invoke(convert, arguments)
    assert again.exit_code == 1
    assert again.stderr.splitlines() == [
        f"caughtup: {old.checkpoint} is of schema 4, and only schema 3 can be converted"
    ]

"""``caughtup pipeline compact`` as its user runs it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from caughtup.agents.cli.pipeline import compact as compact_command
from tests.support.pipelines.small_files import (
    BATCHES,
    TODAY,
    folder,
    is_tidy,
    rows_in,
    write_history,
)

pytestmark = pytest.mark.xdist_group("spark")


@pytest.fixture(autouse=True)
def _today(monkeypatch: pytest.MonkeyPatch) -> None:
    noon = datetime(TODAY.year, TODAY.month, TODAY.day, 12, tzinfo=UTC)
    monkeypatch.setattr(compact_command, "now_ms", lambda: int(noon.timestamp() * 1000))


def compact(*arguments: str) -> Result:
    return CliRunner().invoke(compact_command.compact, ["--master", "local[1]", *arguments])


def test_it_says_what_it_would_do_and_does_it(tmp_path: Path) -> None:
    write_history(tmp_path)
    write_history(tmp_path, "end_offsets", "topic_bucket")
    before = rows_in(tmp_path)
    asked = compact("--output", str(tmp_path), "--dry-run")
    assert asked.exit_code == 0, asked.output
    assert "Would be compacted" in asked.stdout
    assert rows_in(tmp_path) == before

    done = compact("--output", tmp_path.as_uri(), "--table", "lag", "--format", "json")
    assert done.exit_code == 0, done.output
    (line,) = map(json.loads, done.stdout.splitlines())
    sizes = line.pop("bytes_before"), line.pop("bytes_after")
    assert sizes[0] > sizes[1] > 0
    assert line == {"table": "lag", "days": 2, "files_before": 4 * BATCHES, "files_after": 4}
    assert rows_in(tmp_path) == before
    assert is_tidy(tmp_path)

    rest = compact("--output", str(tmp_path), "--keep-days", "2")
    assert rest.exit_code == 0, rest.output
    (ends,) = (line for line in rest.stdout.splitlines() if "end_offsets" in line)
    # Of one day only, and nothing of the table that was done already.
    assert [word for word in ends.split() if word.isdigit()][:3] == ["1", str(2 * BATCHES), "2"]


def test_a_file_that_cannot_be_read_is_named_after_all_others_are_done(tmp_path: Path) -> None:
    write_history(tmp_path)
    broken = folder(tmp_path, "lag", 2, "group_bucket", 3) / "batch-0000000001.parquet"
    broken.write_bytes(b"not Parquet")
    result = compact("--output", str(tmp_path), "--format", "json")
    assert result.exit_code == 1
    (problem,) = result.stderr.splitlines()
    assert problem.startswith("caughtup: can't compact lag/date=2026-11-20/group_bucket=3: ")
    assert json.loads(result.stdout)["files_after"] == 3


def test_a_place_without_a_history_is_said_in_one_line(tmp_path: Path) -> None:
    result = compact("--output", str(tmp_path / "nowhere"))
    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        f"caughtup: there are no tables of a history at {tmp_path}/nowhere"
    ]
    assert result.stdout == ""

"""Whenever a compaction ends, and whatever it leaves, each row is there exactly once in the end."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from caughtup.pipelines.compaction import job
from caughtup.pipelines.compaction.sized_files import SizedFiles
from tests.support.pipelines.compacting import JOURNAL, MADE, run_compaction, small_history
from tests.support.pipelines.small_files import folder, is_tidy, names_in, rows_in

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.thorough]


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
                run_compaction(spark, root)
                break
            except Killed:
                kills += 1
        seen = rows_in(root)
        assert seen.keys() == before.keys(), f"killed before change {kills}"
        run_compaction(spark, root)
        assert rows_in(root) == before, f"killed before change {kills}"
        assert is_tidy(root)
        assert names_in(folder(root, "lag", 2, "group_bucket", 1)) == [MADE]
        shutil.rmtree(root)
    assert kills >= 9  # two journals, each moved into place, a new file, three old ones, tidying


@pytest.mark.thorough
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
                        run_compaction(spark, root)
                assert rows_in(root).keys() == before.keys()
            run_compaction(spark, root)
            assert rows_in(root) == before
            assert is_tidy(root)


@pytest.mark.parametrize("undone_before", [False, True])
def test_killed_while_spark_writes_it_is_undone_and_done_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, undone_before: bool
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
            run_compaction(spark, tmp_path)
    assert not is_tidy(tmp_path)
    assert rows_in(tmp_path) == before
    if undone_before:  # and a killed driver's executors went on writing
        for journal in (tmp_path / "_compactions").iterdir():
            journal.unlink()
    run_compaction(spark, tmp_path)
    assert rows_in(tmp_path) == before
    assert is_tidy(tmp_path)
    assert names_in(place) == [MADE]


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
        found = run_compaction(spark, tmp_path)
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
    assert run_compaction(spark, tmp_path).problems == []
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
    (problem,) = run_compaction(spark, tmp_path).problems
    assert "batch-0000000002.parquet is gone, and what was to replace it isn't whole" in problem
    assert sorted(place.rglob("*")) == everything

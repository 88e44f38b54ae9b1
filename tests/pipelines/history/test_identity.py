"""Which tables belong to a checkpoint: the others are refused, with nothing written."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from caughtup.models.errors import CaughtupError
from caughtup.pipelines.delta.store import Store
from caughtup.pipelines.history.identity import own_tables
from caughtup.pipelines.history.tables import HistoryTables
from caughtup.pipelines.spark.session import Files
from tests.support.pipelines.by_hand import GROUPS, records_of, write_batch
from tests.support.pipelines.delta import rows_of
from tests.support.pipelines.old_layout import OldHistory

pytestmark = pytest.mark.xdist_group("spark")

CLUSTER = "2VRiQaSTRTyA9bBbE_kRyQ"


class Place:
    """Tables and a checkpoint in a directory, as the job opens them at its start."""

    def __init__(self, spark: SparkSession, directory: Path) -> None:
        self._files = Files(spark)
        self.output, self.checkpoint = directory / "out", directory / "check"
        self.mark = self.checkpoint / "_caughtup.json"

    def open(self, cluster: str = CLUSTER) -> HistoryTables:
        return own_tables(self._files, Store(str(self.output)), str(self.checkpoint), cluster)

    def write(self, batch: int) -> None:
        """Write a batch, and note it as done, as Spark does."""
        write_batch(self.open(), batch, records_of(batch))
        for name in ("offsets", "commits"):
            (self.checkpoint / name).mkdir(exist_ok=True)
            (self.checkpoint / name / str(batch)).write_text("v1\n{}\n{}")


@pytest.fixture
def place(spark: SparkSession, tmp_path: Path) -> Place:
    return Place(spark, tmp_path)


def test_tables_and_their_checkpoint_go_on_together(place: Place) -> None:
    for batch in range(3):
        place.write(batch)
    assert len(rows_of(place.output, "commits")) == 3 * len(GROUPS)


def test_tables_without_their_checkpoint_are_refused(place: Place, spark: SparkSession) -> None:
    place.write(0)
    shutil.rmtree(place.checkpoint)
    for _ in range(2):
        with pytest.raises(
            CaughtupError, match=r"commits is written by the history \w+, whose checkpoint is anot"
        ):
            place.open()
    assert not place.mark.exists()


@pytest.mark.parametrize("gone", ["", "lag"])
def test_a_checkpoint_without_its_tables_is_refused(place: Place, gone: str) -> None:
    place.write(0)
    shutil.rmtree(place.output / gone)
    with pytest.raises(CaughtupError, match=f"there is no table {gone or 'commits'} at") as caught:
        place.open()
    assert caught.value.code == "bad_output"
    assert not (place.output / gone).exists()


def test_a_kill_before_all_tables_are_made_is_made_good(place: Place) -> None:
    place.open()
    shutil.rmtree(place.output / "lag")
    place.write(0)
    assert len(rows_of(place.output, "lag")) > 0


def test_a_checkpoint_is_one_clusters(place: Place) -> None:
    place.open()
    with pytest.raises(CaughtupError, match=f"of the cluster {CLUSTER}, and this is another"):
        place.open("another")


def test_a_checkpoint_of_another_schema_and_one_of_another_job_are_refused(place: Place) -> None:
    place.open()
    place.mark.write_text(json.dumps({**json.loads(place.mark.read_text()), "schema": 99}))
    (place.checkpoint / "._caughtup.json.crc").unlink()
    with pytest.raises(CaughtupError, match="is of schema 99") as caught:
        place.open()
    assert caught.value.code == "bad_checkpoint"
    place.mark.unlink()
    (place.checkpoint / "offsets").mkdir()
    (place.checkpoint / "offsets" / "0").write_text("v1\n{}\n{}")
    with pytest.raises(CaughtupError, match="not a checkpoint of this release"):
        place.open()


@pytest.mark.parametrize("name", ["date=2026-11-20", "_spark_metadata"])
def test_a_table_of_an_older_release_is_left_alone(place: Place, name: str) -> None:
    (place.output / name).mkdir(parents=True)
    with pytest.raises(CaughtupError, match="older release"):
        place.open()
    assert [path.name for path in place.output.iterdir()] == [name]


def test_folders_of_01_are_refused_with_what_to_do(place: Place, tmp_path: Path) -> None:
    old = OldHistory(tmp_path / "old")
    old.write(0, records_of(0))
    place.output = old.tables
    with pytest.raises(CaughtupError, match="`caughtup pipeline convert` makes tables"):
        place.open()
    place.checkpoint, place.output = old.checkpoint, tmp_path / "elsewhere"
    (old.checkpoint / "._caughtup.json.crc").unlink()
    with pytest.raises(CaughtupError, match="is of schema 3, and this release writes schema 4"):
        place.open()
    assert not place.output.exists()

"""Generations in the history: each once, when what bounds its leader's view is there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from caughtup.models.polls.batch import Record
from caughtup.models.wire.record_keys import CONSUMER_OFFSETS
from caughtup.pipelines.generations.rows import MetadataRecord, generation_rows
from caughtup.pipelines.generations.schema import GENERATIONS
from caughtup.pipelines.history.batch import HistoryBatches
from caughtup.pipelines.replay.job import recorded_generations
from caughtup.pipelines.replay.rows import read_recorded
from caughtup.pipelines.schema import END_OFFSETS_TOPIC
from tests.pipelines.generations.test_job import RECORDS, ends
from tests.support.groups import streams
from tests.support.groups.records import GROUP, START_MS
from tests.support.own_topics.end_offsets import end_offsets_record
from tests.support.pipelines.delta import in_ms, new_tables
from tests.support.states import ENDS, TOLD

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.thorough]

MINUTE = 60_000
PARAMETERS = {GROUP: TOLD}
Row = tuple[Any, ...]


def group_record(generation: int, members: tuple[Any, ...], minute: int) -> Row:
    at_ms = START_MS + minute * MINUTE
    key, value = streams.generation(generation, *members, at_ms=at_ms)
    return CONSUMER_OFFSETS, 0, generation, at_ms, key, value


SEVEN = group_record(7, streams.WARMING, 0)
EIGHT = group_record(8, streams.HANDING_OVER, 1)
NINE = group_record(9, streams.HANDED_OVER, 2)


def end_offsets(*minutes: int) -> list[Row]:
    rows = []
    for minute in minutes:
        at_ms = START_MS + minute * MINUTE
        for partition, end in ENDS.items():
            offset = 10 * (minute + 1) + partition
            record = end_offsets_record(streams.CHANGELOG, partition, end, at_ms)
            rows.append((END_OFFSETS_TOPIC, 0, offset, at_ms, *record))
    return rows


class HistoryJob:
    """The history's batches, made of given records."""

    def __init__(self, spark: SparkSession, directory: Path) -> None:
        self.spark = spark
        self.root = directory / "tables"
        self.batches = HistoryBatches(
            spark,
            new_tables(self.root),
            {END_OFFSETS_TOPIC: "end_offsets"},
            PARAMETERS,
        )

    def write(self, batch: int, *records: Row) -> list[int | None]:
        self.batches.write(batch, str(batch), self.spark.createDataFrame(records, RECORDS), [])
        return [row["generation"] for row in self.rows()]

    def rows(self) -> list[dict[str, Any]]:
        found = DeltaTable(self.root / GENERATIONS.name).to_pyarrow_table().to_pylist()
        for row in found:
            row["as_of_ms"] = in_ms(row["as_of"])
            row["next_rebalance_ms"] = in_ms(row["next_rebalance"])
        return sorted(found, key=lambda row: (row["log_offset"], row["as_of"]))


def test_a_generation_waits_for_end_offsets_and_is_decided_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    history = HistoryJob(spark, tmp_path)
    assert history.write(0, *end_offsets(-1, 0), SEVEN, EIGHT) == []
    assert history.write(1, *end_offsets(1)) == [7]
    assert history.write(1, *end_offsets(1)) == [7], "a batch that is done again"
    assert history.write(2, NINE, *end_offsets(2, 3, 4)) == [7, 8, 9]
    assert history.write(3, *end_offsets(5)) == [7, 8, 9]

    records: list[tuple[Record, int, int]] = [
        ((row[4], row[5]), row[2], row[3]) for row in (SEVEN, EIGHT, NINE)
    ]
    metadata = [
        MetadataRecord(0, offset, at_ms, key, value) for (key, value), offset, at_ms in records
    ]
    expected = [
        read_recorded(row._asdict()) for row in generation_rows(metadata, ends(), PARAMETERS)
    ]
    assert [read_recorded(row) for row in history.rows()] == expected
    assert not any(one.doubts for one in expected)
    replayed = recorded_generations(spark, str(history.root / GENERATIONS.name), [GROUP])
    assert sorted(row["generation"] for row in replayed.collect()) == [7, 8, 9]
    other = recorded_generations(spark, str(history.root / GENERATIONS.name), ["another"])
    assert other.isEmpty()


@pytest.mark.thorough
def test_without_end_offsets_it_is_decided_after_a_while_with_its_doubts(
    spark: SparkSession, tmp_path: Path
) -> None:
    history = HistoryJob(spark, tmp_path)
    assert history.write(0, SEVEN) == []
    assert history.write(1, group_record(8, streams.HANDING_OVER, 20)) == [7]
    (row,) = history.rows()
    assert any("end offsets" in doubt for doubt in row["doubts"])


@pytest.mark.thorough
def test_a_record_that_nobody_can_read_is_told_with_its_place(
    spark: SparkSession, tmp_path: Path
) -> None:
    history = HistoryJob(spark, tmp_path)
    broken = (*SEVEN[:2], 8, SEVEN[3] + 1, SEVEN[4], b"\x7f\xff")
    assert history.write(0, *end_offsets(-1, 0, 1), SEVEN, broken) == [7, None]
    assert history.rows()[1]["error"]
    assert history.write(1, EIGHT, *end_offsets(2)) == [7, None, 8]

"""The table of generations: what is read of the wire's records, and that nothing comes twice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import (
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from caughtup.models.decisions.inputs.gathering import CLOCK_ALLOWANCE_MS, gather_inputs
from caughtup.models.errors import CaughtupError
from caughtup.models.histories.end_offset_table import EndOffsetTable
from caughtup.models.ids import TopicPartition
from caughtup.models.offsets import EndOffsets
from caughtup.models.parameters import ApplicationParameters
from caughtup.models.polls.batch import Record
from caughtup.models.replay.recorded import RecordedGeneration, lag_of
from caughtup.models.wire.record_keys import CONSUMER_OFFSETS
from caughtup.pipelines.generations.job import (
    add_generations,
    end_offset_packs,
    group_generations,
    known_generations,
)
from caughtup.pipelines.generations.rows import GenerationRow, MetadataRecord, generation_rows
from caughtup.pipelines.generations.schema import GENERATION_ROW, GROUP_GENERATIONS
from caughtup.pipelines.replay.rows import read_recorded
from caughtup.pipelines.schema import END_OFFSETS_TOPIC, bucket
from tests.support import wire
from tests.support.groups import streams
from tests.support.groups.records import (
    GROUP,
    SOURCE,
    START_MS,
    commit,
    consumer_generation,
    group_tombstone,
)
from tests.support.own_topics.end_offsets import end_offsets_record
from tests.support.recorded import recorded_generation
from tests.support.states import ENDS, TOLD, cluster_state, list_ends, read

pytestmark = pytest.mark.xdist_group("spark")

PARAMETERS = {GROUP: TOLD}
#: Three generations a minute apart, among records that aren't any.
LOG = [
    commit(0, 4),
    streams.generation(7, *streams.WARMING),
    consumer_generation(1, {"c-1": (TopicPartition("other-in", 0),)}, group="plain"),
    streams.generation(8, *streams.HANDING_OVER, at_ms=START_MS + 60_000),
    streams.generation(8, *streams.HANDING_OVER, at_ms=START_MS + 60_000),
    group_tombstone("plain"),
    streams.generation(9, *streams.HANDED_OVER, at_ms=START_MS + 120_000),
]
#: How a record looks that no version of ours can read.
UNREADABLE: Record = (wire.group_key(GROUP), b"\x7f\xff")
RECORDS = StructType(
    [
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp_ms", LongType()),
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
    ]
)


def ends() -> EndOffsetTable:
    state = cluster_state()
    for minute in range(-1, 5):
        list_ends(state, at_ms=START_MS + minute * 60_000)
    return state.ends


def metadata(log: list[Record]) -> Iterator[MetadataRecord]:
    """Return a log's group metadata as Spark does: a group's records together, in order."""
    for offset, (key, value) in sorted(enumerate(log), key=lambda one: (one[1][0], one[0])):
        if key is not None and key.startswith(b"\x00\x02"):
            yield MetadataRecord(0, offset, START_MS + offset, key, value)


def recorded(rows: list[GenerationRow]) -> list[RecordedGeneration]:
    return [read_recorded(row._asdict()) for row in rows]


def test_a_row_holds_what_the_service_gathers_of_the_same_record() -> None:
    rows = list(generation_rows(metadata(LOG), ends(), PARAMETERS))
    assert [(row.group, row.generation, row.log_offset) for row in rows] == [
        (GROUP, 7, 1),
        (GROUP, 8, 3),
        (GROUP, 9, 6),
    ]
    state = cluster_state()
    state.ends = ends()
    for row, of_row in zip(rows, recorded(rows), strict=True):
        read(state, LOG[row.log_offset])
        newest = state.applications[GROUP].newest
        seen_ms = START_MS + row.log_offset + CLOCK_ALLOWANCE_MS
        inputs = gather_inputs(newest, TOLD, ends(), {}, seen_ms)
        assert of_row == recorded_generation(newest, inputs)
        assert (row.doubts, row.inferred, row.assumed) == ([], [], [])
    assert [row.next_rebalance_ms for row in rows] == [
        START_MS,
        START_MS + 60_000,
        None,
    ]


def test_doubts_stand_in_the_row() -> None:
    (row,) = generation_rows(metadata(LOG[:2]), EndOffsetTable(), PARAMETERS)
    assert row.doubts == [
        f"task 0_{n}: its changelogs' end offsets around the rebalance" for n in (0, 1)
    ]
    (row,) = generation_rows(metadata(LOG[:2]), ends(), {})
    assert "max.warmup.replicas" in row.assumed


def test_a_source_that_serves_as_changelog_ends_where_the_log_does_at_most() -> None:
    table = EndOffsetTable()
    for partition, end in ENDS.items():
        at = TopicPartition(SOURCE, partition)
        table.apply(at, EndOffsets(0, end, end, START_MS + 60_000))
    told = {GROUP: replace(TOLD, changelogs=None)}
    (row,) = generation_rows(metadata(LOG[:2]), table, told)
    assert row.scenario is not None
    scenario = json.loads(row.scenario)
    behind = [lag_of(scenario, str(streams.process(2)), task) for task in ("0_0", "0_1")]
    assert behind == [50_000, 50_000]
    assert any(SOURCE in line for line in row.inferred)


def test_an_unreadable_record_is_a_row_with_its_error_and_place_and_the_others_are_served() -> None:
    rows = list(generation_rows(metadata([*LOG[:3], UNREADABLE, *LOG[3:]]), ends(), PARAMETERS))
    assert [row.generation for row in rows] == [7, None, 8, 9]
    error = rows[1].error
    assert error is not None
    assert (rows[1].group, rows[1].log_offset, len(error.splitlines())) == (
        GROUP,
        3,
        1,
    )
    with pytest.raises(CaughtupError, match="unread"):
        read_recorded(rows[1]._asdict())


def test_a_scenario_that_is_no_json_is_said() -> None:
    (row,) = generation_rows(metadata(LOG[:2]), ends(), PARAMETERS)
    with pytest.raises(CaughtupError, match="bad_json: scenario: "):
        read_recorded(row._replace(scenario="{")._asdict())


def test_the_rows_have_the_tables_columns() -> None:
    assert list(GenerationRow._fields) == GENERATION_ROW.names
    names = {name.removesuffix("_ms") for name in GENERATION_ROW.names}
    assert names | {"date"} == set(GROUP_GENERATIONS.names)


def log_rows(topic: str, log: list[Record]) -> list[tuple[Any, ...]]:
    return [
        (topic, 0, offset, START_MS + offset, key, value) for offset, (key, value) in enumerate(log)
    ]


def test_spark_writes_each_generation_once_however_often_it_is_run(
    spark: SparkSession, tmp_path: Path
) -> None:
    output = str(tmp_path / "generations")
    listed = [
        end_offsets_record(streams.CHANGELOG, partition, end, START_MS + minute * 60_000)
        for minute in range(-1, 5)
        for partition, end in ENDS.items()
    ]
    packs = end_offset_packs(
        spark.createDataFrame(log_rows(END_OFFSETS_TOPIC, [(b"x", b"{"), *listed]), RECORDS)
    )

    def run(log: list[Record], parameters: dict[str, ApplicationParameters] = PARAMETERS) -> int:
        records = spark.createDataFrame(log_rows(CONSUMER_OFFSETS, log), RECORDS)
        found = group_generations(spark, records, packs, parameters)
        return add_generations(spark, found, output)

    assert known_generations(spark, output) is None
    log = [*LOG[:6], UNREADABLE]
    assert run(log) == 3
    assert run(log) == 0
    # Compaction leaves the newest record of a key.
    assert run([*LOG[:1], *LOG[6:]]) == 1
    table = known_generations(spark, output)
    assert table is not None
    assert table.schema.simpleString() == GROUP_GENERATIONS.simpleString()
    written = [
        {**row.asDict(recursive=True), "as_of_ms": row.as_of_ms, "next_rebalance_ms": row.next_ms}
        for row in table.selectExpr(
            "*", "unix_millis(as_of) AS as_of_ms", "unix_millis(next_rebalance) AS next_ms"
        )
        .where("error IS NULL")
        .orderBy("as_of")
        .collect()
    ]
    rows = generation_rows(metadata(LOG[:6]), ends(), PARAMETERS)
    assert [read_recorded(row) for row in written][:2] == recorded(list(rows))
    assert [row["generation"] for row in written] == [7, 8, 9]
    assert table.where("error IS NOT NULL").count() == 1
    day = Path(output, f"date={written[0]['date']}", f"group_bucket={bucket(GROUP)}")
    assert len(list(day.glob("*.parquet"))) == 2, "a file for each run that found something"

"""The tables of the history, and the page that documents them."""

from __future__ import annotations

import re
import zlib
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from caughtup.pipelines.generation_schema import GENERATIONS
from caughtup.pipelines.own_rows import own_table
from caughtup.pipelines.own_schema import KINDS
from caughtup.pipelines.schema import BUCKETS, LATEST_MS, OWN_TOPICS, bucket
from caughtup.pipelines.tables import COMMITS, LAG, QUARANTINE, Table, bucket_column, timestamp

TABLES = [COMMITS, LAG, GENERATIONS, QUARANTINE, *map(own_table, sorted(KINDS))]
PAGE = Path(__file__).resolve().parents[2] / "docs" / "history.md"


def documented() -> dict[str, list[str]]:
    """Read the columns that the page names, by table."""
    lines = [line for line in PAGE.read_text().splitlines() if re.match(r"\| `\w+` \|", line)]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {name.strip("`"): re.findall(r"`(\w+)`", columns) for name, *_, columns in cells}


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_the_page_names_a_tables_columns_in_their_order(table: Table) -> None:
    assert documented()[table.name] == table.columns.names


def test_the_page_names_no_other_tables() -> None:
    assert documented().keys() == {table.name for table in TABLES}


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_a_table_is_filed_by_columns_that_it_has(table: Table) -> None:
    assert {table.time, *table.bucket_by} <= set(table.columns.names)
    assert table.stored.names == [*table.columns.names, "date", table.bucket]


def test_each_of_the_services_topics_that_is_kept_has_a_table() -> None:
    assert OWN_TOPICS.keys() == KINDS.keys()


def test_a_bucket_is_the_same_in_spark_as_in_python(spark: SparkSession) -> None:
    names = ["orders", "", "größer", "a" * 249, "__consumer_offsets"]
    frame = spark.createDataFrame([(name, None) for name in names], "group string, topic string")
    found = frame.select("group", bucket_column(["topic", "group"]).alias("b")).collect()
    assert {row["group"]: row["b"] for row in found} == {name: bucket(name) for name in names}
    assert bucket("orders") == zlib.crc32(b"orders") % BUCKETS
    nothing = spark.createDataFrame([(None,)], "group string")
    assert nothing.select(bucket_column(["group"])).first()[0] == bucket("")


def test_a_time_that_no_calendar_has_is_null(spark: SparkSession) -> None:
    times = [-1, 0, LATEST_MS, LATEST_MS + 1, 2**63 - 1, -(2**63), None]
    frame = spark.createDataFrame([(time,) for time in times], "time_ms bigint")
    found = frame.select(timestamp("time_ms").alias("t")).selectExpr("unix_millis(t)").collect()
    assert [row[0] for row in found] == [None, 0, LATEST_MS, None, None, None, None]

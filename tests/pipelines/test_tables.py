"""The tables of the history, and the page that documents them."""

from __future__ import annotations

import re
import zlib
from pathlib import Path

import pyarrow as pa
import pytest

from caughtup.pipelines.generations.schema import GENERATIONS
from caughtup.pipelines.history.decoding.batches import buckets_of, by_bucket
from caughtup.pipelines.history.decoding.topic_columns import own_table
from caughtup.pipelines.history.decoding.topic_schema import TOPIC_TABLES
from caughtup.pipelines.schema import BUCKETS, LATEST_MS, SERVICE_TOPICS, bucket, buckets_for
from caughtup.pipelines.tables import COMMITS, LAG, QUARANTINE, REBALANCES, Table, timestamps

TABLES = [COMMITS, LAG, REBALANCES, GENERATIONS, QUARANTINE, *map(own_table, sorted(TOPIC_TABLES))]
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
    assert SERVICE_TOPICS.keys() == TOPIC_TABLES.keys()


def test_rows_are_dealt_by_their_names_buckets() -> None:
    names = ["orders", "", "größer", "a" * 249, "__consumer_offsets", None, "orders"]
    column = pa.array(names, pa.string())
    expected = [bucket(name or "") for name in names]
    assert buckets_of(column, BUCKETS).tolist() == expected
    assert buckets_of(column.dictionary_encode(), BUCKETS).tolist() == expected
    assert bucket("orders") == zlib.crc32(b"orders") % BUCKETS
    rows = pa.RecordBatch.from_arrays([column], ["group"])
    dealt = {number: own.column(0).to_pylist() for number, own in by_bucket(rows, column, BUCKETS)}
    assert dealt == {
        number: [name for name, own in zip(names, expected, strict=True) if own == number]
        for number in set(expected)
    }


def test_a_time_that_no_calendar_has_is_null() -> None:
    times = [-1, 0, LATEST_MS, LATEST_MS + 1, 2**63 - 1, -(2**63), None]
    found = timestamps(pa.array(times, pa.int64())).cast(pa.int64()).to_pylist()
    assert found == [None, 0, LATEST_MS * 1000, None, None, None, None]


@pytest.mark.parametrize(
    ("cores", "expected"), [(1, 4), (2, 4), (4, 4), (5, 8), (16, 16), (17, 20), (1_000, 64)]
)
def test_a_batch_has_a_bucket_for_each_core_and_each_is_of_one_folder(
    cores: int, expected: int
) -> None:
    assert buckets_for(cores) == expected
    assert bucket("orders", expected) % BUCKETS == bucket("orders")

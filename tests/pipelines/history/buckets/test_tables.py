"""A bucket's packs to its parts: sorted, one for each day, and what the next batch needs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from caughtup.models.wire.consumer_offsets import OffsetKey
from caughtup.pipelines.events import KafkaRecord
from caughtup.pipelines.history.buckets.tables import KNOWN_COMMITS, KNOWN_ENDS, bucket_parts
from caughtup.pipelines.history.decoding.batches import pack_records
from caughtup.pipelines.history.decoding.topic_columns import own_table
from caughtup.pipelines.schema import BUCKETS, LATEST_MS, bucket
from caughtup.pipelines.tables import COMMITS, LAG, Table
from tests.pipelines.history.decoding.test_batches import batches
from tests.support import wire
from tests.support.pipelines.commit_batches import NOW_MS, commit, record
from tests.support.pipelines.end_offsets import TOPIC_TABLES, end_offsets
from tests.support.pipelines.parts import as_file

GROUP, OTHER = "billing", next(g for g in map(str, range(99)) if bucket(g) == bucket("billing"))
BUCKET = bucket(GROUP)
DAY_MS = 86_400_000


def files_of(
    records: list[KafkaRecord],
    *,
    rebucket: bool = False,
    bucket: int = BUCKET,
    buckets: int = BUCKETS,
    **known: bytes,
) -> dict[str, pa.Table]:
    """Return a bucket's rows by table and folder, each as it is read back from its file."""
    packs: dict[str, list[bytes]] = {name: [content] for name, content in known.items()}
    for made in pack_records(TOPIC_TABLES, buckets, batches(records)):
        for row in made.to_pylist():
            if row["bucket"] == bucket:
                packs.setdefault(row["kind"], []).append(row["data"])
    found = {}
    for part in bucket_parts(bucket, packs, buckets, rebucket=rebucket):
        assert set(part.texts) <= {*part.rows.column_names, "group", "topic"}
        found[f"{part.table}/{part.folder}"] = part.rows
    return found


def a_commit(at: int, group: str = GROUP, partition: int = 0, **changes: Any) -> KafkaRecord:
    changes = {"commit_timestamp_ms": NOW_MS, "offset": at, **changes}
    return commit(key=OffsetKey(group, "orders", partition), **changes)._replace(offset=at)


def _state(kind: str) -> str:
    return f"_state/kind={kind}/bucket={BUCKET}/buckets={BUCKETS}"


def day(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("date=%Y-%m-%d")


def test_a_file_has_its_tables_columns_and_the_rows_of_a_group_together() -> None:
    places = [(GROUP, 2), (OTHER, 0), (GROUP, 0), (GROUP, 2), (OTHER, 0), (GROUP, 0)]
    records = [a_commit(at, *place) for at, place in enumerate(places)]
    found = files_of([*reversed(records), end_offsets("orders", 0), end_offsets("orders", 1)])
    table = found[f"commits/{day(NOW_MS)}/group_bucket={BUCKET}"]
    assert table.schema.names == COMMITS.columns.names
    columns = ("group", "partition", "log_offset")
    rows = list(zip(*(table.column(name).to_pylist() for name in columns), strict=True))
    assert rows == sorted((*place, at) for at, place in enumerate(places))
    for of in (LAG, own_table("end_offsets")):
        check_columns(of, found)


def check_columns(table: Table, found: dict[str, pa.Table]) -> None:
    for folder, rows in found.items():
        if folder.startswith(f"{table.name}/"):
            assert rows.schema.names == table.columns.names


def test_rows_are_filed_by_the_day_of_their_own_time() -> None:
    records = [a_commit(at, commit_timestamp_ms=NOW_MS + at * DAY_MS) for at in range(3)]
    found = files_of(records)
    days = {
        folder: table.column("committed").to_pylist()
        for folder, table in found.items()
        if folder.startswith("commits/")
    }
    assert days == {
        f"commits/{day(NOW_MS + at * DAY_MS)}/group_bucket={BUCKET}": [at] for at in range(3)
    }


def test_times_that_no_calendar_has_are_null() -> None:
    (table,) = (
        table
        for folder, table in files_of([a_commit(0, expire_timestamp_ms=LATEST_MS + 1)]).items()
        if folder.startswith("commits/")
    )
    assert table.column("expire_timestamp").to_pylist() == [None]


def test_the_state_is_the_last_commit_of_each_unless_it_is_gone() -> None:
    first = files_of([a_commit(0), a_commit(1), a_commit(2, OTHER), end_offsets("orders", 0)])
    state = f"_state/kind=commits/bucket={BUCKET}/buckets={BUCKETS}"
    rows = first[state].select(["group", "committed"]).to_pylist()
    assert sorted(rows, key=str) == sorted(
        [{"group": GROUP, "committed": 1}, {"group": OTHER, "committed": 2}], key=str
    )
    gone = record(wire.offset_key(OffsetKey(GROUP, "orders", 0)), None, 3)
    second = files_of([gone], **{KNOWN_COMMITS: as_file(first[state])})
    assert second[state].column("group").to_pylist() == [OTHER]
    assert not any(folder.startswith("lag/") for folder in second), "no end offsets are known"


def test_what_did_not_change_is_not_left_again() -> None:
    first = files_of([a_commit(0), end_offsets("orders", 0)])
    known = {KNOWN_COMMITS: first[_state("commits")]}
    if _state("ends") in first:
        known[KNOWN_ENDS] = first[_state("ends")]
    packs = {name: as_file(table) for name, table in known.items()}
    assert files_of([], **packs) == {}
    again = files_of([end_offsets("orders", 1)], **packs)
    assert _state("commits") not in again
    assert again[_state("ends")].num_rows == (bucket("orders") == BUCKET)


def test_with_other_buckets_than_before_the_state_is_parted_again() -> None:
    groups = [f"group-{number}" for number in range(40)]
    known = {
        KNOWN_COMMITS: as_file(
            pa.concat_tables(
                part
                for number in range(BUCKETS)
                for part in state_of(
                    files_of(
                        [a_commit(at, group) for at, group in enumerate(groups)], bucket=number
                    )
                )
            )
        )
    }
    left = {
        number: files_of([], rebucket=True, bucket=number, buckets=12, **known)
        for number in range(12)
    }
    for number, found in left.items():
        (rows,) = state_of(found)
        assert sorted(rows.column("group").to_pylist()) == sorted(
            group for group in groups if bucket(group, 12) == number
        )
        assert found[f"_state/kind=ends/bucket={number}/buckets=12"].num_rows == 0


def state_of(found: dict[str, pa.Table]) -> list[pa.Table]:
    return [rows for place, rows in found.items() if place.startswith("_state/kind=commits/")]

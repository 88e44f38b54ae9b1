"""Records to packs: each kind in the bucket that its rows are of, and what is broken apart."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest

from caughtup.models.wire.consumer_offsets import OffsetKey
from caughtup.pipelines.events import KafkaRecord
from caughtup.pipelines.history.decoding import batches as decode
from caughtup.pipelines.history.decoding.batches import (
    COMMITS,
    GROUPS,
    SAMPLES,
    pack_records,
    unpack,
)
from caughtup.pipelines.history.decoding.commit_columns import NAMES
from caughtup.pipelines.history.decoding.log_records import RECORD_COLUMNS
from caughtup.pipelines.schema import BUCKETS, bucket
from tests.support.groups import streams
from tests.support.pipelines.commit_batches import NOW_MS, commit, record
from tests.support.pipelines.end_offsets import ENDS, TOPIC_TABLES, end_offsets

Packs = dict[tuple[str, int], list[dict[str, Any]]]


def batches(records: list[KafkaRecord], rows: int = 3) -> Iterable[pa.RecordBatch]:
    for start in range(0, len(records), rows):
        part = [one._asdict() for one in records[start : start + rows]]
        yield pa.RecordBatch.from_pylist(part, schema=RECORD_COLUMNS)


def packed(records: list[KafkaRecord]) -> Packs:
    """Decode records; give the rows of all packs, by kind and bucket."""
    found: Packs = {}
    for made in pack_records(TOPIC_TABLES, BUCKETS, batches(records)):
        for row in made.to_pylist():
            rows = unpack(row["data"]).to_pylist()
            found.setdefault((row["kind"], row["bucket"]), []).extend(rows)
    return found


@pytest.mark.parametrize(("bound", "held"), [("_ROWS", 1), ("_BYTES", 1), ("_ROWS", 1 << 17)])
def test_commits_are_dealt_by_their_groups_in_the_order_of_their_log(
    bound: str, held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decode, bound, held)
    groups = [f"group-{number % 7}" for number in range(40)]
    records = [
        commit(key=OffsetKey(group, "orders", 3), offset=at)._replace(offset=at)
        for at, group in enumerate(groups)
    ]
    found = packed(records)
    for number in range(BUCKETS):
        own = [(at, group) for at, group in enumerate(groups) if bucket(group) == number]
        rows = found.pop((COMMITS, number), [])
        assert [(row["log_offset"], row["group"]) for row in rows] == own
        assert [row["committed"] for row in rows] == [at for at, _ in own]
    assert found == {}


def test_end_offsets_go_to_their_topics_bucket_whole_and_to_every_bucket_for_lag() -> None:
    found = packed(
        [
            end_offsets("orders", 0),
            end_offsets("payments", 1),
            end_offsets("orders", 2, end_offset=12),
        ]
    )
    for number in range(BUCKETS):
        ends = [row["end_offset"] for row in found.pop((SAMPLES, number))]
        assert ends == [9, 9, 12]
        topics = [row["topic"] for row in found.pop(("end_offsets", number), [])]
        assert topics == [t for t in ("orders", "payments", "orders") if bucket(t) == number]
    assert found == {}


def test_what_is_broken_is_set_apart_with_its_place_and_costs_the_others_nothing() -> None:
    key, value = streams.generation(7, *streams.WARMING, at_ms=NOW_MS)
    unread = record(b"\x00\x01\x00\x09short", b"", 5)
    broken = end_offsets("orders", 6)._replace(value=b"{half")
    found = packed([commit(), unread, record(key, value, 8), end_offsets("orders", 4), broken])
    (kept,) = found.pop((COMMITS, bucket("billing")))
    assert kept["committed"] == 1041
    (group,) = found.pop((GROUPS, 0))
    assert (group["key"], group["value"], group["offset"]) == (key, value, 8)
    (only,) = found.pop(("end_offsets", bucket("orders")))
    assert only["end_offset"] == 9
    quarantined = [row for (kind, _), rows in found.items() if kind == "quarantine" for row in rows]
    assert {(row["topic"], row["log_offset"], row["value"]) for row in quarantined} == {
        ("__consumer_offsets", 5, b""),
        (ENDS, 6, b"{half"),
    }
    assert all(row["why"] and row["seen"] and not row["until_offset"] for row in quarantined)


def test_names_are_kept_once_beside_the_rows() -> None:
    (made,) = pack_records(TOPIC_TABLES, BUCKETS, batches([commit(), commit()]))
    rows = unpack(made.column("data")[0].as_py())
    assert rows.schema.field("group").type == rows.schema.field("topic").type == NAMES

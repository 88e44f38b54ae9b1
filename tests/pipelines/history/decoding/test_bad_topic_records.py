"""Records of the service's own topics as nobody should write them: undecodable, and alone so."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caughtup.models.records.reassignments import CLUSTER_KEY
from caughtup.pipelines.events import Undecodable
from caughtup.pipelines.history.decoding.topic_columns import decode_own
from caughtup.pipelines.history.decoding.topic_schema import TOPIC_TABLES
from tests.support.pipelines.topic_records import fitting, published, record

NO_TIME_BEFORE_MS, LATEST_MS = -1, 253_402_300_799_999
PUBLISHED = published()


@pytest.mark.parametrize(("table", "key", "value"), PUBLISHED)
def test_a_record_of_another_release_or_broken_says_so_in_one_line_and_loses_nothing_else(
    table: str, key: bytes, value: dict[str, Any]
) -> None:
    good = record(key, value, at=1)
    time = "at_ms" if "at_ms" in value else "as_of_ms"
    negative = "bad_time: -1" if table == "decisions" else ">= 0"
    broken = {
        "schema 9": {**value, "schema": 9},
        "schema 8": {"schema": 8},  # nothing else of it is known
        "schema": {name: of for name, of in value.items() if name != "schema"},
        negative: {**value, time: NO_TIME_BEFORE_MS},
        "<= 253402300799999": {**value, time: LATEST_MS + 1},
        "malformed": b"{]",
        "truncated": b"{",
        "utf-8": msgspec.json.encode(value)[:-1] + b',"later":"\xff"}',
        "object": b"[]",
        "nested deeper": b'{"later":' * 1_000,
        "bytes, more than": b"{" + b" " * (16 << 20) + b"}",
    }
    for words, wrong in broken.items():
        bad = record(key, wrong)
        rows, undecodable = decode_own(table, [good, bad, good])
        assert (len(rows), rows[0]) == (2, rows[1])
        (only,) = undecodable
        assert only.record == bad
        assert words in only.why
        assert len(str(only).splitlines()) == 1
    latest = {**value, time: LATEST_MS}
    assert len(decode_own(table, [record(key, latest)])[0]) == 1


@pytest.mark.parametrize(
    ("table", "key", "value", "why"),
    [
        ("end_offsets", None, None, "without a key"),
        ("end_offsets", b"orders-2147483648", None, "no topic has a partition 2147483648"),
        ("end_offsets", b"orders-" + b"9" * 5_000, None, "not a topic-partition"),
        ("reassignments", b"orders", None, "not a topic-partition"),
        ("transactions", b"orders", None, "malformed"),
        ("transactions", b"[4000,70000000000]", None, "Expected `int`"),
        ("decisions", None, None, "without a key"),
        ("decisions", b"\xff", None, "utf-8"),
        ("movements", b"orders", None, "without a value"),
    ],
)
def test_a_tombstone_of_nothing_is_undecodable(
    table: str, key: bytes | None, value: None, why: str
) -> None:
    rows, (only,) = decode_own(table, [record(key, value)])
    assert rows == []
    assert why in only.why


def test_tombstones_of_no_time_are_undecodable() -> None:
    gone = record(b"orders", None)._replace(timestamp_ms=-1)
    assert decode_own("decisions", [gone]) == (
        [],
        [Undecodable(gone, "bad_time: -1 ms is not a time since 1970")],
    )


JUNK: st.SearchStrategy[Any] = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"), max_size=5)
    | st.lists(st.integers(), max_size=3)
    | st.dictionaries(st.integers().map(str), st.integers(), max_size=3)
)


@given(
    st.sampled_from(PUBLISHED).flatmap(
        lambda one: st.tuples(
            st.just(one), st.dictionaries(st.sampled_from(sorted(one[2])), JUNK, max_size=3)
        )
    )
)
def test_whatever_stands_in_a_field_the_row_fits_its_table_or_there_is_none(
    changed: tuple[tuple[str, bytes, dict[str, Any]], dict[str, Any]],
) -> None:
    (table, key, value), changes = changed
    rows, undecodable = decode_own(table, [record(key, json.dumps({**value, **changes}).encode())])
    assert len(rows) + len(undecodable) == 1
    if rows:
        fitting(table, rows)


@given(
    st.sampled_from(sorted(TOPIC_TABLES)),
    st.none() | st.binary() | st.just(CLUSTER_KEY),
    st.none() | st.binary(),
)
def test_no_bytes_at_all_break_the_decoder(
    table: str, key: bytes | None, value: bytes | None
) -> None:
    rows, undecodable = decode_own(table, [record(key, value)])
    assert len(rows) + len(undecodable) == 1
    if rows:
        fitting(table, rows)

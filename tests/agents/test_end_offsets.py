"""Records of caughtup-end-offsets: taken, forgotten, and skipped when they are malformed."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from caughtup.agents.end_offsets import EndOffsetsRecord, apply_record
from caughtup.models.ids import TopicPartition
from caughtup.models.lag import EndOffsets
from tests.support.streams import cluster_state

PARTITION = TopicPartition("orders-in", 3)
KEY = b"orders-in-3"
FIELDS: dict[str, Any] = {
    "schema": 1,
    "topic": "orders-in",
    "partition": 3,
    "start_offset": 5,
    "last_stable_offset": 90,
    "end_offset": 100,
    "as_of_ms": 1_000,
    "readable_end_offset": 88,
    "topic_id": "00112233445566778899aabbccddeeff",
}


def encoded(**changes: Any) -> bytes:
    return json.dumps({**FIELDS, **changes}).encode()


def test_a_record_is_taken_whole() -> None:
    state = cluster_state()
    apply_record(state, KEY, encoded())
    assert state.ends.latest(PARTITION) == EndOffsets(5, 90, 100, 1_000, 88)
    assert state.topics.names == {bytes.fromhex(FIELDS["topic_id"]): "orders-in"}
    assert state.ends.partition_counts() == {"orders-in": 1}


def test_the_fields_are_those_that_are_written() -> None:
    assert list(FIELDS) == list(EndOffsetsRecord.__struct_fields__)


def test_fields_of_a_later_version_are_passed_over() -> None:
    state = cluster_state()
    apply_record(state, KEY, encoded(schema=2, leader_epoch=7))
    assert state.ends.latest(PARTITION) is not None


def test_a_tombstone_forgets_the_partition_that_its_key_names() -> None:
    state = cluster_state()
    apply_record(state, KEY, encoded())
    apply_record(state, b"orders-in-4", None)
    assert len(state.ends) == 1
    apply_record(state, KEY, None)
    assert len(state.ends) == 0


@pytest.mark.parametrize(
    ("key", "value"),
    [
        pytest.param(KEY, b"", id="empty"),
        pytest.param(KEY, b"\xff\xfe", id="not UTF-8"),
        pytest.param(KEY, b"[1, 2]", id="not an object"),
        pytest.param(KEY, encoded()[:-1], id="cut short"),
        pytest.param(KEY, encoded(end_offset="100"), id="a string for a number"),
        pytest.param(KEY, encoded(end_offset=None), id="null"),
        pytest.param(KEY, b'{"schema": 1, "topic": "orders-in"}', id="fields missing"),
        pytest.param(KEY, b"[" * 100_000, id="nested deeply"),
        pytest.param(None, None, id="a tombstone without a key"),
        pytest.param(b"", None, id="a tombstone with an empty key"),
        pytest.param(b"orders-in-x", None, id="a tombstone of no partition"),
        pytest.param(b"\xff-1", None, id="a tombstone of no topic"),
    ],
)
def test_a_malformed_record_is_logged_in_one_line_and_skipped(
    key: bytes | None, value: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    state = cluster_state()
    with caplog.at_level(logging.WARNING):
        apply_record(state, key, value)
    assert len(state.ends) == 0
    (line,) = caplog.messages
    assert "skipped a record of end offsets" in line
    assert "\n" not in line
    apply_record(state, KEY, encoded())
    assert len(state.ends) == 1

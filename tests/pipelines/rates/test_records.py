"""Records that rates are made of, and those that they are: formats, and what doesn't follow them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from caughtup.models.errors import CaughtupError
from caughtup.models.ids import TopicPartition
from caughtup.pipelines.events import KafkaRecord
from caughtup.pipelines.rates.slots import (
    EndOffsetSample,
    PositionReport,
    copy_key,
    decode,
    partition_key,
)

POSITIONS, ENDS = "caughtup-task-positions", "caughtup-end-offsets"
WRITTEN_MS = 1_800_000_000_000
COPY = copy_key("orders", "p", "1_7")
POSITION: dict[str, Any] = {
    "schema": 1,
    "group": "orders",
    "process": "p",
    "client_id": "b",
    "task": "1_7",
    "role": "standby",
    "lag": 7,
    "lags": {"a-changelog": 4, "b-changelog": 3},
    "leads": {"a-changelog": 40, "b-changelog": 30},
    "at_ms": 5,
}
LOOK: dict[str, Any] = {
    "schema": 1,
    "topic": "a-changelog",
    "partition": 7,
    "start_offset": 2,
    "last_stable_offset": 40,
    "end_offset": 44,
    "as_of_ms": WRITTEN_MS - 3,
    "topic_id": None,
}


def read(topic: str, key: bytes | None, value: bytes | None) -> Any:
    return decode(KafkaRecord(topic, 0, 12, WRITTEN_MS, key, value), POSITIONS)


def position(**changes: Any) -> bytes:
    return json.dumps(POSITION | changes).encode()


def end_offsets(**changes: Any) -> bytes:
    return json.dumps(LOOK | changes).encode()


def test_a_report_is_of_when_the_broker_got_it_and_a_sample_of_when_it_was_made() -> None:
    lags = {"a-changelog": 4, "b-changelog": 3}
    reported = PositionReport("orders", "p", "1_7", 7, 12, WRITTEN_MS, lags)
    assert read(POSITIONS, COPY, position()) == reported
    assert read(ENDS, b"a-changelog-7", end_offsets()) == EndOffsetSample(
        "a-changelog", 7, 12, WRITTEN_MS - 3, 44
    )


def test_a_copy_that_runs_or_is_gone_has_nothing_to_catch_up() -> None:
    gone = PositionReport("orders", "p", "1_7", 7, 12, WRITTEN_MS, None)
    assert read(POSITIONS, COPY, position(role="active")) == gone
    assert read(POSITIONS, COPY, None) == gone


def test_a_deleted_partition_is_named_by_its_key() -> None:
    assert read(ENDS, b"a-changelog-7", None) == EndOffsetSample(
        "a-changelog", 7, 12, WRITTEN_MS, None
    )


@pytest.mark.parametrize("lags", [{}, {"a-changelog": 4, "b-changelog": None}])
def test_a_report_without_every_changelogs_lag_tells_no_position(lags: dict[str, Any]) -> None:
    assert read(POSITIONS, COPY, position(lags=lags)) is None


@pytest.mark.parametrize(
    ("topic", "key", "value"),
    [
        pytest.param(POSITIONS, None, position(), id="no key"),
        pytest.param(POSITIONS, b'["orders", "p"]', position(), id="a key with too few parts"),
        pytest.param(POSITIONS, b'["orders", "p", "17"]', position(), id="not a task"),
        pytest.param(POSITIONS, COPY, b"[" * 100_000, id="a nesting bomb"),
        pytest.param(POSITIONS, COPY, b"\xff", id="not UTF-8"),
        pytest.param(POSITIONS, COPY, position(schema=2), id="a report of a later schema"),
        pytest.param(POSITIONS, COPY, position(lags={"a": -1}), id="a negative lag"),
        pytest.param(POSITIONS, COPY, position(lags={"a": 2**63}), id="a lag beyond all offsets"),
        pytest.param(
            ENDS, b"a-changelog-7", end_offsets(schema=2), id="a sample of a later schema"
        ),
        pytest.param(ENDS, b"a-changelog-7", end_offsets(end_offset=-1), id="a negative end"),
        pytest.param(ENDS, b"a-changelog-7", end_offsets(partition=-1), id="a negative partition"),
        pytest.param(
            ENDS, b"a-changelog-7", end_offsets(as_of_ms=2 * WRITTEN_MS), id="of the far future"
        ),
        pytest.param(ENDS, b"a-changelog", None, id="a tombstone of no partition"),
        pytest.param(ENDS, b"a-99999999999", None, id="a tombstone of too high a partition"),
        pytest.param(ENDS, None, None, id="a tombstone without a key"),
    ],
)
def test_a_record_that_does_not_follow_its_format_is_named_with_its_place(
    topic: str, key: bytes | None, value: bytes | None
) -> None:
    with pytest.raises(CaughtupError) as caught:
        read(topic, key, value)
    assert caught.value.code == "bad_record"
    assert caught.value.message.startswith(f"{topic}-0 offset 12: ")
    assert "\n" not in caught.value.message


def test_keys_of_copies_are_those_of_their_reports_and_partitions_have_two_parts() -> None:
    assert COPY == b'["orders","p","1_7"]'
    assert partition_key(TopicPartition("a-changelog", 7)) == b'["a-changelog",7]'

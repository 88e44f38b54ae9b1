"""Which records of groups make rows of the table of generations."""

from __future__ import annotations

import pytest

from caughtup.pipelines.generations.rows import MetadataRecord, source_topics
from tests.support import wire
from tests.support.groups import streams
from tests.support.pipelines.commit_batches import NOW_MS

KEY, VALUE = streams.generation(7, *streams.WARMING, at_ms=NOW_MS)


def record(value: bytes | None) -> MetadataRecord:
    return MetadataRecord(0, 5, NOW_MS, KEY, value)


def test_a_generation_of_kafka_streams_has_its_source_topics() -> None:
    found = source_topics(record(VALUE))
    assert found
    assert list(found) == sorted(found)


@pytest.mark.parametrize(
    "value",
    [
        None,
        wire.number("h", 3)
        + wire.number("h", 8)
        + b"consumer"
        + bytes.fromhex("00000007ffffffff" + "00" * 12),
    ],
    ids=["a deleted group", "a group without members"],
)
def test_what_is_no_generation_of_kafka_streams_concerns_nothing(value: bytes | None) -> None:
    assert source_topics(record(value)) is None


def test_a_record_that_cannot_be_read_makes_a_row() -> None:
    assert source_topics(record(VALUE[:9])) == ()

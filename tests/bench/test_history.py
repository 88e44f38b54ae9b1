"""The history's benchmark: what it writes beside the log."""

from __future__ import annotations

from caughtup.bench.history import topics_of
from caughtup.demo.fleet.offset_logs import Shape, records
from caughtup.models.wire.consumer_offsets import OffsetKey, decode_key


def test_there_is_a_look_at_every_topic_that_has_commits() -> None:
    shape = Shape(60, 10, 6)
    keys = [decode_key(record.key) for record in records("compacted", shape, 50, 0) if record.key]
    assert {key.topic for key in keys if isinstance(key, OffsetKey)} == set(topics_of(shape))

"""The history's benchmark: what it writes beside the log."""

from __future__ import annotations

import pytest

from caughtup.bench.history import _KINDS, topics_of
from caughtup.demo.fleet.offset_logs import LOGS, Shape, records
from caughtup.models.wire.consumer_offsets import OffsetKey, decode_key


def test_every_kind_of_log_can_be_asked_for() -> None:
    assert _KINDS == LOGS


@pytest.mark.parametrize("kind", LOGS)
def test_there_is_a_look_at_every_topic_that_has_commits(kind: str) -> None:
    shape = Shape(60, 10, 6)
    keys = [decode_key(record.key) for record in records(kind, shape, 50, 0) if record.key]
    assert {key.topic for key in keys if isinstance(key, OffsetKey)} == set(topics_of(shape))

"""Records of the service's own topics, in the form of the history's batches."""

from __future__ import annotations

import msgspec

from caughtup.pipelines.events import KafkaRecord
from tests.support.pipelines.commit_batches import NOW_MS

ENDS, MOVES = "caughtup-end-offsets", "caughtup-movements"
TOPIC_TABLES = {ENDS: "end_offsets", MOVES: "movements"}


def end_offsets(topic: str, at: int, **changes: object) -> KafkaRecord:
    value = {"schema": 1, "topic": topic, "partition": 0, "start_offset": 0, "as_of_ms": NOW_MS}
    value |= {"last_stable_offset": 9, "end_offset": 9, **changes}
    return KafkaRecord(ENDS, 0, at, NOW_MS, f"{topic}-0".encode(), msgspec.json.encode(value))

"""Records of the service's own topics, one of every form, and a check against their tables."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pyarrow

from caughtup.models.reassignments.controllers import target
from caughtup.models.reassignments.events import ReassignmentEvents
from caughtup.models.reassignments.tracker import ReassignmentTracker
from caughtup.models.records.end_offsets import EndOffsetsRecord
from caughtup.models.records.fields import changed, json_values
from caughtup.models.records.reassignments import CLUSTER_KEY, ClusterRecord
from caughtup.pipelines.events import KafkaRecord
from caughtup.pipelines.history.decoding.topic_schema import TOPIC_TABLES
from caughtup.pipelines.spark.arrow import arrow_schema
from tests.support.decisions import recommended_with_events
from tests.support.groups.records import GROUP
from tests.support.reassignments.one_reassignment import CLUSTER, an_observation

ENDS = EndOffsetsRecord(1, "orders", 3, 1, 90, 100, 5_000, topic_id="0" * 32)
LOOK = an_observation(3, {4: 60_000, 5: 20_000})


def record(key: bytes | None, value: object, at: int = 7) -> KafkaRecord:
    text = value if value is None or isinstance(value, bytes) else msgspec.json.encode(value)
    return KafkaRecord("caughtup-something", 0, at, 9_999, key, text)


def fitting(table: str, rows: list[tuple[Any, ...]]) -> None:
    """Fail if Arrow can't convert the rows to the table's columns, with strings as UTF-8."""
    columns = zip(*rows, strict=True)
    for field, values in zip(arrow_schema(TOPIC_TABLES[table].columns), columns, strict=True):
        pyarrow.array(values, field.type).validate(full=True)


def partition_events() -> list[dict[str, Any]]:
    """Return the events of a completed reassignment of a partition."""
    tracker, movements = ReassignmentTracker(), ReassignmentEvents()
    tracker.apply_cluster(CLUSTER)
    tracker.apply(LOOK)
    told = movements.new_events(tracker, LOOK.topic_partition)
    tracker.end(LOOK.topic_partition, target(LOOK), target(LOOK), LOOK.as_of_ms + 9)
    told += movements.new_events(tracker, LOOK.topic_partition)
    return [json_values(event) for event in told]


def published() -> list[tuple[str, bytes, dict[str, Any]]]:
    """Return a record of every form."""
    recommended, events = recommended_with_events()
    builtin: Any = json.loads(msgspec.json.encode(changed(LOOK, since_ms=1, original=(1, 2, 3))))
    return [
        ("end_offsets", b"orders-3", msgspec.to_builtins(ENDS)),
        ("decisions", GROUP.encode(), recommended),
        ("movements", GROUP.encode(), dict(events[0])),
        ("movements", b"events-0", partition_events()[0]),
        ("reassignments", b"events-0", builtin),
        ("reassignments", CLUSTER_KEY, json.loads(msgspec.json.encode(ClusterRecord(2, 5)))),
    ]

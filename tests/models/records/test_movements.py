"""Records of caughtup-movements: events written and read back, and what is none of ours refused."""

from __future__ import annotations

from typing import Any

import pytest

from caughtup.models.ids import TopicPartition
from caughtup.models.records import movements
from caughtup.models.records.decoding import RefusedError
from caughtup.models.records.fields import or_absent
from caughtup.models.records.keys import encode_partition
from caughtup.models.records.movements import (
    PartitionMovementRecord,
    TaskMovementRecord,
    read_movement,
)
from tests.support.own_topics.records import SERVICE_RECORDS, ServiceRecord

A, B = "0000000a-0000-0000-0000-000000000000", "0000000b-0000-0000-0000-000000000000"


def own(name: str) -> ServiceRecord:
    (found,) = (record for record in SERVICE_RECORDS if record.name == name)
    return found


@pytest.mark.parametrize("source", [A, None])
@pytest.mark.parametrize("lag", [7, None])
@pytest.mark.parametrize("why", ["the process is gone", None])
def test_a_tasks_event_is_read_back_as_it_was_written(
    source: str | None, lag: int | None, why: str | None
) -> None:
    event = TaskMovementRecord(
        schema=1,
        kind="warmup",
        event="dropped",
        group="orders",
        generation=7,
        decision_id="d1",
        at_ms=5,
        task="0_1",
        to=B,
        reason="it lags",
        from_=or_absent(source),
        plan="leader",
        lag=or_absent(lag),
        why=or_absent(why),
    )
    assert read_movement(b"orders", movements.TASKS.encode(event)) == event


@pytest.mark.parametrize("why", ["cancelled", None])
def test_a_partitions_event_is_read_back_as_it_was_written(why: str | None) -> None:
    partition = TopicPartition("orders", 3)
    event = PartitionMovementRecord(
        1, "dropped", "partition", *partition, 5, (3, 4), (1, 2), or_absent(why)
    )
    assert read_movement(encode_partition(partition), movements.PARTITIONS.encode(event)) == event


def test_a_process_in_upper_case_is_the_same() -> None:
    task = own("task movement")
    record = read_movement(task.key, task.changed(to=B.upper()))
    assert isinstance(record, TaskMovementRecord)
    assert record.to == B


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("task movement", {"event": "lost"}),
        ("task movement", {"task": "first"}),
        ("task movement", {"to": "b"}),
        ("task movement", {"plan": "somebody"}),
        ("task movement", {"decision_id": 5}),
        ("task movement", {"group": None}),
        ("partition movement", {"kind": 1}),
        ("partition movement", {"event": "warming"}),
        ("partition movement", {"topic": None}),
        ("partition movement", {"partition": "3"}),
        ("partition movement", {"partition": True}),
        ("partition movement", {"from": 1}),
        ("partition movement", {"to": ["3"]}),
    ],
)
def test_what_is_no_event_of_ours_is_refused(name: str, change: dict[str, Any]) -> None:
    event = own(name)
    with pytest.raises(RefusedError) as refused:
        read_movement(event.key, event.changed(**change))
    assert refused.value.code == "bad_type"

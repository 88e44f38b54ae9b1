"""Records of what changes workers in Connect groups, beside those of tasks and partitions."""

from __future__ import annotations

import json

import pytest

from caughtup.models.records.decoding import RefusedError
from caughtup.models.records.fields import ABSENT, changed
from caughtup.models.records.movements import CONNECT, ConnectMovementRecord, read_movement

EVENT = ConnectMovementRecord(
    schema=1,
    kind="connector-task",
    event="planned",
    group="connect",
    generation=7,
    at_ms=1_000,
    connector="orders-sink",
    to="w1:8083",
    reason="why",
    task=1,
    from_="w2:8083",
)


def test_an_event_is_read_as_it_was_written_with_the_fields_of_a_task_s():
    value = CONNECT.encode(EVENT)
    assert json.loads(value) == {
        "schema": 1,
        "kind": "connector-task",
        "event": "planned",
        "group": "connect",
        "generation": 7,
        "at_ms": 1_000,
        "connector": "orders-sink",
        "task": 1,
        "to": "w1:8083",
        "from": "w2:8083",
        "reason": "why",
    }
    read = read_movement(b"connect", value)
    assert isinstance(read, ConnectMovementRecord)
    assert read.name == "orders-sink-1"


def test_a_connector_has_no_task_and_where_nobody_had_it_nothing_it_is_from():
    record = changed(EVENT, kind="connector", task=ABSENT, from_=ABSENT)
    fields = json.loads(CONNECT.encode(record))
    assert fields["kind"] == "connector"
    assert not {"task", "from", "why"} & fields.keys()


@pytest.mark.parametrize(
    ("key", "change"), [(b"other", {}), (b"connect", {"to": 3}), (b"connect", {"event": "maybe"})]
)
def test_one_that_is_not_as_it_has_to_be_is_refused(key: bytes, change: dict[str, object]):
    fields = json.loads(CONNECT.encode(EVENT)) | change
    with pytest.raises(RefusedError):
        read_movement(key, json.dumps(fields).encode())

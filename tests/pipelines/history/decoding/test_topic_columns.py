"""Records of the service's own topics as rows, as producers write them."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from caughtup.models.ids import TopicPartition
from caughtup.models.records.fields import changed
from caughtup.models.records.movements import ConnectMovementRecord
from caughtup.models.records.reassignments import CLUSTER_KEY, ReassignmentRecord
from caughtup.models.records.transactions import FORMAT, TransactionRecord
from caughtup.pipelines.history.decoding.topic_columns import decode_own
from caughtup.pipelines.history.decoding.topic_schema import TOPIC_TABLES
from tests.support.decisions import recommended_with_events
from tests.support.groups.records import GROUP, START_MS
from tests.support.groups.streams import process
from tests.support.pipelines.topic_records import ENDS, LOOK, fitting, partition_events, record
from tests.support.reassignments.one_reassignment import CLUSTER, an_observation
from tests.support.states import open_transaction


def row(table: str, key: bytes | None, value: object) -> dict[str, Any]:
    """Decode a record that has to be a row which fits its table."""
    kind = TOPIC_TABLES[table]
    (only,), undecodable = decode_own(table, [record(key, value)])
    assert undecodable == []
    fitting(table, [only])
    named = dict(zip(kind.columns.names, only, strict=True))
    assert (named.pop("log_partition"), named.pop("log_offset")) == (0, 7)
    published = named.pop("record")
    assert published == (None if value is None else msgspec.json.encode(value).decode())
    return {name: value for name, value in named.items() if value is not None}


def test_end_offsets_are_a_row_timed_by_when_they_were_seen() -> None:
    assert row("end_offsets", b"orders-3", ENDS) == {
        "as_of_ms": 5_000,
        "topic": "orders",
        "partition": 3,
        "present": True,
        "start_offset": 1,
        "last_stable_offset": 90,
        "end_offset": 100,
    }
    looked = msgspec.structs.replace(ENDS, readable_end_offset=88)
    assert row("end_offsets", b"orders-3", looked)["readable_end_offset"] == 88


def test_a_decision_is_a_row_with_what_both_plans_cost() -> None:
    recommended, _ = recommended_with_events()
    found = row("decisions", GROUP.encode(), recommended)
    cost, kafka_cost, leader = (recommended[name] for name in ("cost", "kafka_cost", "leader"))
    assert found == {
        "as_of_ms": START_MS,
        "group": GROUP,
        "present": True,
        "cluster": "cluster-1",
        "generation": 7,
        "decision_id": recommended["decision_id"],
        "decided_at_ms": START_MS + 20_000,
        "assignor": "minimal_movement",
        "processes": 2,
        "movements": 1,
        **cost,
        **{f"kafka_{name}": value for name, value in kafka_cost.items()},
        "leader_assignor": leader["assignor"],
        "leader_identical": True,
        "leader_result": "match",
        "leader_why": leader["why"],
        "probing_needed": True,
        "probing_due_ms": recommended["probing_rebalance"]["due_ms"],
        "projected": False,
    }
    recommended["leader"]["identical"] = "unknown"
    recommended["probing_rebalance"]["worthwhile_at_ms"] = 5
    found = row("decisions", GROUP.encode(), recommended)
    assert "leader_identical" not in found
    assert found["probing_worthwhile_at_ms"] == 5


def test_an_event_of_a_tasks_movement_is_a_row() -> None:
    _, events = recommended_with_events()
    planned, warming = (
        row("movements", GROUP.encode(), event) for event in events if event["plan"] == "leader"
    )
    assert planned.pop("decision_id")
    assert planned.pop("reason")
    assert planned == {
        "as_of_ms": START_MS + 20_001,
        "event": "planned",
        "movement_kind": "warmup",
        "group": GROUP,
        "generation": 7,
        "plan": "leader",
        "task": "0_1",
        "from_process": str(process(1)),
        "to_process": str(process(2)),
        "lag": events[0]["lag"],
    }
    assert warming["event"] == "warming"


def test_an_event_of_a_partitions_movement_is_a_row_of_the_same_table() -> None:
    planned, promoted = (row("movements", b"events-0", event) for event in partition_events())
    assert planned == {
        "as_of_ms": LOOK.as_of_ms,
        "event": "planned",
        "movement_kind": "partition",
        "topic": "events",
        "partition": 0,
        "from_replicas": [2, 1, 3],
        "to_replicas": [2, 4, 5],
    }
    assert promoted == {**planned, "event": "promoted", "as_of_ms": LOOK.as_of_ms + 9}
    dropped = {**partition_events()[0], "event": "dropped", "why": "cancelled"}
    assert row("movements", b"events-0", dropped)["dropped_why"] == "cancelled"


def test_an_event_of_a_connectors_task_is_a_row_of_the_same_table() -> None:
    event = ConnectMovementRecord(
        schema=1,
        kind="connector-task",
        event="promoted",
        group="connect",
        generation=9,
        at_ms=5,
        connector="sink",
        to="w2:8083",
        reason="it is new",
        task=1,
        from_="w1:8083",
    )
    assert row("movements", b"connect", event) == {
        "as_of_ms": 5,
        "event": "promoted",
        "movement_kind": "connector-task",
        "group": "connect",
        "generation": 9,
        "task": "sink-1",
        "from_process": "w1:8083",
        "to_process": "w2:8083",
        "reason": "it is new",
    }


def test_a_look_at_a_partition_is_a_row_with_what_is_left_to_copy() -> None:
    published = changed(LOOK, since_ms=10_000, original=(1, 2, 3))
    assert row("reassignments", published.key, published) == {
        "as_of_ms": 30_000,
        "topic": "events",
        "partition": 0,
        "present": True,
        "ended": False,
        "unlisted": False,
        "since_ms": 10_000,
        "original": [1, 2, 3],
        "replicas": [2, 4, 5, 1, 3],
        "adding": [4, 5],
        "removing": [1, 3],
        "isr": [1, 2, 3],
        "offline": [],
        "leader": 1,
        "leader_epoch": 7,
        "offsets_left": 980_000,
        "bytes_left": 94_000_000 + 98_000_000,
    }


def test_what_was_worked_out_of_a_reassignment_is_in_columns() -> None:
    published = LOOK
    published.verdict, published.cause = "stalled", "target_disk"
    published.rate_bytes_per_second, published.never = -1.5, True
    found = row("reassignments", published.key, published)
    assert (found["verdict"], found["cause"], found["never"]) == ("stalled", "target_disk", True)
    assert found["rate_bytes_per_second"] == -1.5
    assert "eta_seconds" not in found
    published.eta_seconds, published.never = 12.5, False
    found = row("reassignments", published.key, published)
    assert (found["eta_seconds"], found["never"]) == (12.5, False)


@pytest.mark.parametrize(
    "known",
    [{"leader": None}, {"log_ends": {1: 9}, "sizes": {1: 9, 4: 3}}, {"log_ends": {}, "sizes": {}}],
)
def test_what_is_left_is_absent_where_a_replica_wasnt_told(known: dict[str, Any]) -> None:
    look = an_observation(3, {4: 60_000, 5: 20_000}, **known)
    found = row("reassignments", b"events-0", look)
    assert not {"offsets_left", "bytes_left"} & found.keys()


def test_an_open_transaction_is_a_row_with_what_it_holds_back_and_its_end_another() -> None:
    holder = open_transaction("shop", [TopicPartition("orders", 3)])
    holder.blocked_groups = ("readers",)
    published = TransactionRecord(FORMAT.schema, START_MS, holder)
    producer = {"producer_id": 4_000, "producer_epoch": 1}
    assert row("transactions", published.key, published) == {
        "as_of_ms": START_MS,
        **producer,
        "present": True,
        "transactional_id": "shop",
        "state": "Ongoing",
        "hanging": False,
        "started_at_ms": START_MS - 60_000,
        "ends_at_ms": START_MS + 240_000,
        "last_write_ms": START_MS - 50_000,
        "partitions": [("orders", 3, 90)],
        "blocked_groups": ["readers"],
        "records_behind": 20,
    }
    gone = row("transactions", published.key, None)
    assert gone == {"as_of_ms": gone["as_of_ms"], **producer, "present": False}


def test_the_last_look_at_a_partition_and_a_look_at_the_cluster_are_rows() -> None:
    last = ReassignmentRecord(2, "events", 0, 40_000, (2, 4, 5), isr=(2, 4, 5), ended=True)
    assert row("reassignments", last.key, last)["ended"] is True
    cluster = CLUSTER
    assert row("reassignments", CLUSTER_KEY, cluster) == {"as_of_ms": 0, "present": True}


@pytest.mark.parametrize(
    ("table", "key", "named"),
    [
        ("end_offsets", b"a-dashed-topic-12", {"topic": "a-dashed-topic", "partition": 12}),
        ("reassignments", b"orders-0", {"topic": "orders", "partition": 0}),
        ("reassignments", CLUSTER_KEY, {}),
        ("decisions", "größe".encode(), {"group": "größe"}),
    ],
)
def test_a_tombstone_is_a_row_that_isnt_present(
    table: str, key: bytes, named: dict[str, Any]
) -> None:
    assert row(table, key, None) == {"as_of_ms": 9_999, "present": False, **named}


def test_what_a_later_release_adds_is_in_the_record() -> None:
    later = {**msgspec.to_builtins(ENDS), "leader": {"id": 4}}
    (only,), _ = decode_own("end_offsets", [record(b"orders-3", later)])
    assert json.loads(only[TOPIC_TABLES["end_offsets"].columns.names.index("record")]) == later

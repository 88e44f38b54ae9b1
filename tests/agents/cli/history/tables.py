"""Tables of a history as its job writes them, with few rows: answers can be counted by hand."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from zlib import crc32

import pyarrow as pa
from deltalake import write_deltalake

BEGAN = datetime(2026, 11, 17, 8, 0, tzinfo=UTC)
_TIME = pa.timestamp("us", "UTC")
_MEMBER = pa.struct({"member_id": pa.string(), "client_id": pa.string(), "host": pa.string()})
_CAUSE = ("kind", "sure", "client", "member", "host", "topic", "why")
_COLUMNS: dict[str, dict[str, pa.DataType]] = {
    "commits": {
        "commit_timestamp": _TIME,
        "group": pa.string(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "present": pa.bool_(),
        "committed": pa.int64(),
        "metadata": pa.string(),
        "topic_id": pa.binary(),
    },
    "lag": {
        "as_of": _TIME,
        "group": pa.string(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "lag": pa.int64(),
        "committed": pa.int64(),
        "end_offset": pa.int64(),
    },
    "group_generations": {
        "as_of": _TIME,
        "group": pa.string(),
        "generation": pa.int32(),
        "members": pa.list_(_MEMBER),
    },
    "rebalances": {
        "as_of": _TIME,
        "group": pa.string(),
        "protocol": pa.string(),
        "generation": pa.int32(),
        "after": pa.int32(),
        "members": pa.int32(),
        "moved": pa.int32(),
        "causes": pa.list_(pa.struct({name: pa.string() for name in _CAUSE})),
        "error": pa.string(),
        "log_offset": pa.int64(),
    },
    "decisions": {
        "as_of": _TIME,
        "group": pa.string(),
        "present": pa.bool_(),
        "generation": pa.int32(),
        "copies": pa.int64(),
        "kafka_copies": pa.int64(),
        "offsets": pa.int64(),
        "kafka_offsets": pa.int64(),
        "seconds": pa.float64(),
        "kafka_seconds": pa.float64(),
        "leader_result": pa.string(),
    },
    "movements": {
        "as_of": _TIME,
        "event": pa.string(),
        "group": pa.string(),
        "plan": pa.string(),
        "task": pa.string(),
        "from_process": pa.string(),
        "to_process": pa.string(),
        "lag": pa.int64(),
        "reason": pa.string(),
        "log_offset": pa.int64(),
    },
}


def at(minutes: float) -> datetime:
    """Return a moment so many minutes after the tables begin."""
    return BEGAN + timedelta(minutes=minutes)


def add(root: Path, table: str, *rows: dict[str, Any]) -> None:
    """Add rows to a table by one commit; what a row doesn't say is null."""
    types = _COLUMNS[table]
    time = next(iter(types))
    columns: dict[str, pa.Array] = {
        name: pa.array([row.get(name) for row in rows], kind) for name, kind in types.items()
    }
    days: list[date] = [row[time].date() for row in rows]
    columns["date"] = pa.array(days, pa.date32())
    buckets = [crc32(row["group"].encode()) % 4 for row in rows]
    columns["group_bucket"] = pa.array(buckets, pa.int32())
    write_deltalake(
        str(root / table),
        pa.table(columns),
        mode="append",
        partition_by=["date", "group_bucket"],
    )


def a_lag(
    minutes: float, partition: int, lag: int, group: str = "orders", end: int | None = None
) -> dict[str, Any]:
    known = {} if end is None else {"committed": end - lag, "end_offset": end}
    return known | {
        "as_of": at(minutes),
        "group": group,
        "topic": "orders-in",
        "partition": partition,
        "lag": lag,
    }


def a_commit(minutes: float, group: str, partition: int = 0) -> dict[str, Any]:
    return {
        "commit_timestamp": at(minutes),
        "group": group,
        "topic": "orders-in",
        "partition": partition,
        "present": True,
        "committed": 7,
    }


def a_generation(minutes: float, generation: int, *clients: str) -> dict[str, Any]:
    members = [
        {
            "member_id": f"{client}-m{n}",
            "client_id": f"{client}-StreamThread-{n}",
            "host": "/10.0.0.1",
        }
        for client in clients
        for n in (1, 2)
    ]
    return {"as_of": at(minutes), "group": "orders", "generation": generation, "members": members}


def a_rebalance(minutes: float, generation: int, *causes: dict[str, Any]) -> dict[str, Any]:
    """Return a rebalance; without causes the generation before isn't known."""
    return {
        "as_of": at(minutes),
        "group": "orders",
        "protocol": "classic",
        "generation": generation,
        "after": generation - 1 if causes else None,
        "members": 2,
        "moved": 1,
        "causes": [dict.fromkeys(_CAUSE) | cause for cause in causes] or None,
        "log_offset": generation,
    }


def a_cause(kind: str, about: str, sure: str = "certain", thread: int = 1) -> dict[str, Any]:
    """Return a cause: of a topic, or of a thread of a client."""
    if kind.startswith("topic"):
        return {"kind": kind, "sure": sure, "topic": about, "why": f"{about} {kind}"}
    client = f"{about}-StreamThread-{thread}"
    return {
        "kind": kind,
        "sure": sure,
        "client": client,
        "member": client,
        "why": f"{about} {kind}",
    }


def a_step(minutes: float, event: str, task: str, offset: int) -> dict[str, Any]:
    return {
        "as_of": at(minutes),
        "event": event,
        "group": "orders",
        "plan": "recommended",
        "task": task,
        "to_process": "p2",
        "lag": 500,
        "reason": "balances the threads",
        "log_offset": offset,
    }


def a_history(root: Path) -> Path:
    """Write an hour of a group, and of others, into tables."""
    add(root, "lag", a_lag(0, 0, 10), a_lag(0, 1, 100), a_lag(5, 0, 5, "payments"))
    add(root, "lag", a_lag(30, 0, 40), a_lag(40, 1, 0))
    commits = [a_commit(minute, "orders", minute % 2) for minute in range(60)]
    add(root, "commits", *commits, *(a_commit(minute, "payments") for minute in range(6)))
    add(
        root,
        "group_generations",
        a_generation(1, 1, "a", "b"),
        a_generation(2, 2, "a", "b", "c"),
        a_generation(3, 3, "a", "b", "c"),
        a_generation(4, 4, "a", "b"),
        a_generation(5, 5, "a", "b", "c"),
    )
    add(
        root,
        "rebalances",
        a_rebalance(1, 1),
        a_rebalance(2, 2, a_cause("joined", "c"), a_cause("joined", "c", thread=2)),
        a_rebalance(3, 3, {"kind": "requested", "sure": "possible", "why": ""}),
        a_rebalance(4, 4, a_cause("left", "c", "likely")),
        a_rebalance(5, 5, a_cause("joined", "c"), a_cause("topic_grew", "orders-in")),
    )
    decision = {"group": "orders", "present": True, "leader_result": "match"}
    add(
        root,
        "decisions",
        {**decision, "as_of": at(2), "generation": 2, "copies": 6, "kafka_copies": 18},
        {**decision, "as_of": at(3), "generation": 3, "copies": 0, "kafka_copies": 0},
        {**decision, "as_of": at(5), "generation": 5, "copies": 6, "kafka_copies": 20},
    )
    add(
        root,
        "movements",
        a_step(2, "planned", "0_1", 1),
        a_step(2, "planned", "0_2", 2),
        a_step(3, "warming", "0_1", 3),
        a_step(3, "warming", "0_2", 4),
        a_step(9, "promoted", "0_1", 5),
        a_step(23, "promoted", "0_2", 6),
        a_step(30, "planned", "0_1", 7),
        a_step(31, "promoted", "0_1", 8),
    )
    return root

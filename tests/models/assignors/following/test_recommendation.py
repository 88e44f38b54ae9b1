"""A follower reads what it needs of a recommendation, and refuses what it cannot rely on."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from caughtup.models.assignors.following.recommendation import read_followed
from caughtup.models.errors import CaughtupError
from tests.models.assignors.building import client, described, task
from tests.support.groups.streams import process

ONE, TWO = str(process(1)), str(process(2))
RECORD: dict[str, Any] = {
    "schema": 1,
    "decision_id": "d1",
    "group": "orders",
    "generation": 7,
    "process_ids": [ONE, TWO],
    "decided_at_ms": 1_000,
    "assignment": {
        ONE: {"active": ["0_0"], "standby": [], "warmup": []},
        TWO: {"active": ["0_1"], "standby": ["0_0"], "warmup": ["0_0"]},
    },
    "probing_rebalance": {"needed": True, "worthwhile_at_ms": 3_500, "reason": "one warms up"},
    "inputs": {
        "scenario": described(client(active=("0_0", "0_1")), client(), stateful=("0_0", "0_1"))
    },
}


def test_it_reads_what_it_needs() -> None:
    read = read_followed(RECORD, "orders")
    assert read.decision_id == "d1"
    assert read.active == {task("0_0"): process(1), task("0_1"): process(2)}
    assert read.standby == {process(1): set(), process(2): {task("0_0")}}
    assert read.found == {task("0_0"): {process(1)}, task("0_1"): {process(1)}}
    assert read.config["max.warmup.replicas"] == 2
    assert read.probing_needed
    assert read.worthwhile_after_ms == 2_500


@pytest.mark.parametrize("missing", ["decided_at_ms", "probing_rebalance.worthwhile_at_ms"])
def test_when_to_probe_again_may_be_left_out(missing: str) -> None:
    record = copy.deepcopy(RECORD)
    owner, _, name = missing.rpartition(".")
    del (record[owner] if owner else record)[name]
    assert read_followed(record, "orders").worthwhile_after_ms is None


def put(*path: Any) -> Callable[[dict[str, Any]], None]:
    """Set the value at a path."""
    *owners, name, value = path

    def change(record: dict[str, Any]) -> None:
        owner: Any = record
        for one in owners:
            owner = owner[one]
        owner[name] = value

    return change


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (put("schema", 2), "schema is not 1"),
        (put("schema", True), "schema is not 1"),
        (put("schema", 1.0), "schema is not 1"),
        (put("group", "payments"), "group is not the expected one"),
        (put("decision_id", ""), "decision_id"),
        (put("decision_id", "x" * 101), "decision_id"),
        (put("decision_id", None), "decision_id"),
        (put("process_ids", [ONE, ONE]), "a process twice"),
        (put("process_ids", [ONE, TWO.upper(), TWO]), "a process twice"),
        (put("process_ids", [ONE]), "other processes"),
        (put("process_ids", [ONE, "two"]), "not a UUID"),
        (put("process_ids", {}), "process_ids"),
        (put("assignment", {ONE: {"active": ["0_0", "0_1"], "standby": []}}), "other processes"),
        (put("assignment", ONE, "active", ["0_0", "0_1"]), "0_1 is active twice"),
        (put("assignment", TWO, "standby", ["0_1"]), "active and standby on one process"),
        (put("assignment", TWO, "standby", ["0_0", "0_00"]), "twice standby"),
        (put("assignment", TWO, "active", ["0-1"]), "written like 0_3"),
        (put("assignment", TWO, "active", [1]), "written like 0_3"),
        (put("assignment", TWO, "active", None), "active"),
        (put("assignment", TWO, []), "assignment"),
        (put("inputs", None), "inputs"),
        (put("inputs", "scenario", "clients", []), "clients"),
        (put("inputs", "scenario", "clients", ONE, {}), "previous_active"),
        (put("inputs", "scenario", "config", None), "config"),
        (put("probing_rebalance", "needed", 1), "needed"),
        (put("probing_rebalance", None), "probing_rebalance"),
    ],
)
def test_what_it_cannot_rely_on_is_malformed(
    change: Callable[[dict[str, Any]], None], what: str
) -> None:
    record = copy.deepcopy(RECORD)
    change(record)
    with pytest.raises(CaughtupError, match=what) as refused:
        read_followed(record, "orders")
    assert refused.value.code == "malformed"


@pytest.mark.parametrize("record", [None, [], "record", 1, {}])
def test_what_is_no_record_is_malformed(record: Any) -> None:
    with pytest.raises(CaughtupError) as refused:
        read_followed(record, "orders")
    assert refused.value.code == "malformed"

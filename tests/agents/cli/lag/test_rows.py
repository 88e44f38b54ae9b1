"""``caughtup lag --format json``: the fields of the contract, and nothing instead of unknown."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from caughtup.models.shown.lag import lag_lines
from caughtup.models.state.cluster import ClusterState
from tests.support.groups.records import GROUP, START_MS
from tests.support.groups.streams import Member, generation, process
from tests.support.states import HOSTILE, cluster_state, everything, read

#: What a line of each kind always has, and what else it may have.
FIELDS = {
    "partition": (
        "kind group topic partition has_commit",
        """group_type committed end_offset last_stable_offset start_offset share_start_offset lag
        lag_committed_view lag_seconds member client_id verdict""",
    ),
    "member": ("kind group group_type member client_id host assigned", "process"),
    "task": (
        "kind group generation process client_id task role provenance as_of_ms",
        "lag offset_sum end_offset_sum eta_seconds verdict",
    ),
}


@pytest.fixture(scope="module")
def state() -> ClusterState:
    return everything()


def lines(state: ClusterState, group: str, kind: str | None = None) -> list[dict[str, Any]]:
    """Return the lines of a group as a reader of the output has them."""
    written = [msgspec.json.encode(line) for line in lag_lines(state, group)]
    assert all(b"\n" not in line for line in written)
    found = [json.loads(line) for line in written]
    return [line for line in found if kind in (None, line["kind"])]


def test_every_line_has_the_contracts_fields_and_no_nulls(state: ClusterState) -> None:
    kinds = set()
    for group in state.group_names():
        for line in lines(state, group):
            always, more = (set(names.split()) for names in FIELDS[line["kind"]])
            assert always <= line.keys() <= always | more
            assert None not in line.values()
            kinds.add(line["kind"])
    assert kinds == FIELDS.keys()


def test_a_partition_has_both_views_of_its_lag(state: ClusterState) -> None:
    assert lines(state, "plain", "partition")[0] == {
        "kind": "partition",
        "group": "plain",
        "group_type": "classic",
        "topic": "clicks",
        "partition": 0,
        "committed": 40,
        "has_commit": True,
        "end_offset": 100,
        "last_stable_offset": 90,
        "start_offset": 20,
        "lag": 50,
        "lag_committed_view": 60,
        "member": "c1",
        "client_id": "c1",
    }


def test_a_partition_never_committed_has_no_commit_and_the_whole_log_to_read(
    state: ClusterState,
) -> None:
    line = lines(state, "plain", "partition")[1]
    assert (line["has_commit"], line["lag"]) == (False, 70)
    assert "committed" not in line


def test_a_commit_on_a_topic_that_is_gone_has_no_lag(state: ClusterState) -> None:
    (line,) = lines(state, "gone")
    assert line == {
        "kind": "partition",
        "group": "gone",
        "topic": "deleted",
        "partition": 0,
        "committed": 5,
        "has_commit": True,
    }


def test_members_say_what_they_were_assigned(state: ClusterState) -> None:
    assert lines(state, "plain", "member")[1] == {
        "kind": "member",
        "group": "plain",
        "group_type": "classic",
        "member": "c2",
        "client_id": "c2",
        "host": "/127.0.0.1",
        "assigned": [["clicks", 1]],
    }


def test_members_of_a_streams_application_say_their_process(state: ClusterState) -> None:
    a, b = lines(state, GROUP, "member")
    assert (a["group_type"], a["process"], b["process"]) == (
        "streams",
        str(process(1)),
        str(process(2)),
    )
    assert a["assigned"] == [["orders-in", 0], ["orders-in", 1]]
    assert b["assigned"] == []


def test_every_copy_of_every_task_has_a_line(state: ClusterState) -> None:
    tasks = lines(state, GROUP, "task")
    assert [(line["task"], line["client_id"], line["role"]) for line in tasks] == [
        ("0_0", "a", "active"),
        ("0_1", "a", "active"),
        ("0_1", "b", "warmup"),
    ]
    assert tasks[2] == {
        "kind": "task",
        "group": GROUP,
        "generation": 7,
        "process": str(process(2)),
        "client_id": "b",
        "task": "0_1",
        "role": "warmup",
        "lag": 50_000,
        "provenance": "reported",
        "offset_sum": 0,
        "end_offset_sum": 50_000,
        "as_of_ms": START_MS,
    }
    assert "lag" not in tasks[0]


def test_an_application_that_is_not_decided_yet_has_members_and_no_tasks() -> None:
    state = cluster_state()
    read(state, generation(1, Member("a", 1, active=("0_0",), sums={"0_0": 5})))
    assert [line["kind"] for line in lines(state, GROUP)] == ["partition", "member"]


def test_a_group_of_a_hostile_name_is_still_one_line_with_that_name(state: ClusterState) -> None:
    (line,) = lines(state, HOSTILE)
    assert (line["group"], line["lag"]) == (HOSTILE, 70)


def test_a_group_that_is_not_there_has_no_lines(state: ClusterState) -> None:
    assert lines(state, "unheard-of") == []

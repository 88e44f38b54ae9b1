"""Records of caughtup-task-positions: taken, withdrawn, and refused when they are malformed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from caughtup.agents.topics.reports import task_positions
from caughtup.models.ids import CopyKey, TaskId
from caughtup.models.tasks.positions import TaskPosition
from tests.support.groups.records import GROUP
from tests.support.own_topics.malformed import badly_keyed, malformed
from tests.support.states import cluster_state

PROCESS = "00000000-0000-0000-0000-000000000002"
KEY = json.dumps([GROUP, PROCESS, "0_1"]).encode()
COPY = CopyKey(PROCESS, TaskId(0, 1))
FIELDS: dict[str, Any] = {
    "schema": 1,
    "group": GROUP,
    "process": PROCESS,
    "client_id": "b",
    "task": "0_1",
    "role": "standby",
    "lag": 40,
    "lags": {"orders-counts-changelog": 40},
    "at_ms": 5,
}


def encoded(**changes: Any) -> bytes:
    return json.dumps({**FIELDS, **changes}).encode()


def test_a_report_is_of_the_time_at_which_the_broker_got_it() -> None:
    state = cluster_state()
    task_positions.apply_record(state, KEY, encoded(), 9_000)
    lags = {"orders-counts-changelog": 40}
    assert state.positions.of(GROUP) == {COPY: TaskPosition("standby", 40, lags, 9_000)}


def test_a_running_active_needs_no_lag() -> None:
    state = cluster_state()
    task_positions.apply_record(state, KEY, b'{"schema": 1, "role": "active"}', 9_000)
    assert state.positions.of(GROUP)[COPY] == TaskPosition("active", None, {}, 9_000)


def test_a_changelog_whose_lag_is_not_known_yet_is_left_out() -> None:
    state = cluster_state()
    task_positions.apply_record(state, KEY, encoded(lag=None, lags={"a": 3, "b": None}), 9_000)
    assert state.positions.of(GROUP)[COPY] == TaskPosition("standby", None, {"a": 3}, 9_000)


def test_a_tombstone_withdraws_the_report() -> None:
    state = cluster_state()
    task_positions.apply_record(state, KEY, None, 9_000)
    task_positions.apply_record(state, KEY, encoded(), 9_000)
    task_positions.apply_record(state, KEY, None, 9_001)
    assert state.positions.of(GROUP) == {}


@pytest.mark.parametrize(
    ("reason", "key", "value"),
    [
        *badly_keyed(encoded()),
        *malformed(KEY, encoded()),
        pytest.param("bad_key", KEY, encoded(group="others"), id="of another group"),
        pytest.param("bad_type", KEY, encoded(lag=-1), id="a negative lag"),
        pytest.param("bad_type", KEY, encoded(lag=2**63), id="a lag beyond all offsets"),
        pytest.param("bad_type", KEY, encoded(lags={"t": -3}), id="a negative lag of a changelog"),
        pytest.param("bad_type", KEY, encoded(lag="40"), id="a lag that is no number"),
        pytest.param("bad_type", KEY, encoded(role="boss"), id="an unheard-of role"),
    ],
)
def test_a_malformed_record_is_refused_with_its_reason_and_leaves_the_last_one(
    reason: str, key: bytes | None, value: bytes
) -> None:
    state = cluster_state()
    task_positions.apply_record(state, KEY, encoded(), 1_000)
    task_positions.apply_record(state, key, value, 2_000)
    assert state.refused.counts == {("task-positions", reason): 1}
    assert state.faults.newest() == []
    assert state.positions.of(GROUP)[COPY].at_ms == 1_000


def test_a_report_whose_timestamp_somebody_chose_is_not_from_the_future() -> None:
    state = cluster_state()
    task_positions.apply_record(state, KEY, encoded(), 400_000, 1_000)
    assert state.refused.counts == {("task-positions", "from_the_future"): 1}
    task_positions.apply_record(state, KEY, encoded(), 400_000, 400_000)  # as the broker stamped it
    assert state.positions.of(GROUP)[COPY].at_ms == 400_000

"""Records of ``application-states``, as a follower publishes them after a rebalance."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from caughtup.models.decisions.inputs.application_state import ApplicationState, application_state
from caughtup.models.records.application_states import FORMAT
from caughtup.models.state.cluster import ClusterState
from tests.support.groups.records import GROUP, SOURCE, START_MS
from tests.support.groups.streams import CHANGELOG, Member, process
from tests.support.states import TOLD

#: The end offset sum of each task's changelog when the leader decided.
END = 50_000


def state_record(
    *members: Member,
    given: Mapping[int, tuple[list[str], list[str]]],
    reason: str = "no_recommendation",
    followed: str | None = None,
    follow_up_ms: int | None = 5_000,
) -> dict[str, Any]:
    """Return these members' rebalance record. ``given``: process → its actives and standbys."""
    tasks = sorted({task for member in members for task in (*member.owned, *member.active)})
    outcome: dict[str, Any] = {
        "reason": reason,
        "message": reason.replace("_", " "),
        "assignment": {
            str(process(number)): {"active": active, "standby": standby}
            for number, (active, standby) in given.items()
        },
    }
    if followed is not None:
        outcome["followed"] = followed
    if follow_up_ms is not None:
        outcome["follow_up_ms"] = follow_up_ms
    return {
        "schema": 1,
        "group": GROUP,
        "state_id": "s1",
        "published_at_ms": START_MS,
        "config": dict(TOLD.config),
        "tasks": {
            task: {
                "stateful": True,
                "stores": ["counts"],
                "source_partitions": [[SOURCE, int(task[2:])]],
                "changelog_partitions": [[CHANGELOG, int(task[2:])]],
            }
            for task in tasks
        },
        "clients": {
            str(process(member.process)): {
                "capacity": 1,
                "client_ids": [member.client_id],
                "tags": {},
                "previous_active": list(member.owned),
                "previous_standby": [t for t in member.sums if t not in member.owned],
                "lags": {
                    task: member.sums[task] if member.sums[task] < 0 else END - member.sums[task]
                    for task in tasks
                    if task in member.sums
                },
            }
            for member in members
        },
        "greatest_lags": dict.fromkeys(tasks, END),
        "outcome": outcome,
    }


def read_state_record(record: Mapping[str, Any], at_ms: int) -> ApplicationState:
    """Read a record as the service does, at a time (ms) by the broker's clock."""
    return application_state(FORMAT.decode(json.dumps(record).encode()), at_ms)


def tell(state: ClusterState, record: Mapping[str, Any], at_ms: int = START_MS) -> None:
    """Apply a record to the service's state, at a time (ms) by the broker's clock."""
    state.applications.apply_state(GROUP, read_state_record(record, at_ms))

"""Small rebalances, said in few words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from caughtup.models.ids import ProcessId, TaskId
from caughtup.models.partition_assignor.assignment import assign_partitions
from caughtup.models.partition_assignor.member_assignment import MemberAssignment
from tests.support.rebalance_parsing import parse_rebalance

RUNNING, UNKNOWN = -2, -3
NOW_MS = 1_000_000
INTERVAL_MS = 60_000
PROBE_MS = NOW_MS + INTERVAL_MS
SOURCE, CHANGELOG = "in", "app-store-changelog"


def process(number: int) -> str:
    """Name a process by a small number."""
    return str(ProcessId.of(number))


def member(
    number: int, owned: tuple[int, ...] = (), sums: Mapping[str, int] | None = None, **more: Any
) -> dict[str, Any]:
    """Describe a member of a process: the partitions of ``in`` that it owns, and what it reports.

    What isn't said of the tasks that it owns runs.
    """
    return {
        "process": process(number),
        "owned": [[SOURCE, partition] for partition in owned],
        "offset_sums": {f"0_{partition}": RUNNING for partition in owned} | dict(sums or {}),
        **more,
    }


def rebalance(members: Mapping[str, dict[str, Any]], **more: Any) -> dict[str, Any]:
    """Describe a rebalance of one subtopology: ``in`` with a store, and ends of 1,000 offsets.

    ``tasks`` says how many it has (2 unless given), and ``config`` what isn't Kafka's default.
    """
    tasks = more.pop("tasks", 2)
    return {
        "name": "test",
        "assignor": "high_availability",
        "config": {
            "acceptable.recovery.lag": 100,
            "probing.rebalance.interval.ms": INTERVAL_MS,
            **more.pop("config", {}),
        },
        "now_ms": NOW_MS,
        "leader": process(1),
        "subtopologies": {"0": {"sources": [SOURCE], "changelogs": [CHANGELOG]}},
        "partitions": {SOURCE: tasks},
        "end_offsets": {f"{CHANGELOG}-{partition}": 1_000 for partition in range(tasks)},
        "committed": {},
        "members": dict(members),
        **more,
    }


def assign(members: Mapping[str, dict[str, Any]], **more: Any) -> dict[str, MemberAssignment]:
    """Assign the members of a rebalance as ``rebalance`` describes it."""
    return assign_partitions(parse_rebalance(rebalance(members, **more)))


def task(text: str) -> TaskId:
    return TaskId.parse(text)


def active(given: MemberAssignment) -> list[str]:
    """Name the actives that a member is given."""
    return [str(task) for task in given.active]


def standby(given: MemberAssignment) -> list[str]:
    """Name the standbys that a member is given."""
    return [str(task) for task in given.standby]

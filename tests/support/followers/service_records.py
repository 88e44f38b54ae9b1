"""The records of the service and of a Python group's members while the group follows."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from caughtup.demo.cluster.cluster import EmbeddedCluster
from tests.support.kafka.topics import read_topic
from tests.support.service import Service


def assert_checked(cluster: EmbeddedCluster, service: Service, group: str) -> None:
    """Assert that every rebalance was published, followed the rules and gave members their part."""
    consumer = read_topic(cluster, service.topic("recommended-assignments"))
    try:
        records = [json.loads(one.value()) for one in consumer.consume(10_000, timeout=5)]
    finally:
        consumer.close()
    leaders = [one["leader"] for one in records if one["group"] == group]
    assert len(leaders) > 3
    assert {one["assignor"] for one in leaders} == {"FollowingTaskAssignor"}, leaders
    assert [one for one in leaders if one["result"] == "mismatch"] == []
    assert service.value("exact_decisions_total", group=group, result="mismatch") == 0


def position_reports(
    cluster: EmbeddedCluster, service: Service, group: str, process: str, tasks: Collection[str]
) -> dict[str, list[Any]]:
    """Return a process's position reports by task; the last of each is a tombstone (None)."""
    consumer = read_topic(cluster, service.topic("task-positions"))
    reports: dict[str, list[Any]] = {task: [] for task in tasks}
    try:
        while any(not seen or seen[-1] is not None for seen in reports.values()):
            found = consumer.consume(1_000, timeout=30)
            assert found, reports
            for message in found:
                reported, reporter, task = json.loads(message.key())
                if (reported, reporter) == (group, process) and task in tasks:
                    reports[task].append(message.value() and json.loads(message.value()))
    finally:
        consumer.close()
    return reports

"""Groups whose coordinators are asked: the same as by reading the log of ``__consumer_offsets``."""

from __future__ import annotations

import asyncio
import json
import random
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.load import produce
from caughtup.demo.cluster.topics import create_topics
from tests.integration.conftest import MakeTopic
from tests.support.groups.staged_rebalances import CLASSIC, CONSUMER, Stage, old_topic
from tests.support.kafka.streams_members import PlayedApplication, topics_of
from tests.support.service import Service, caughtup, commit, wait_for

#: What the two sources can't agree on: times, what follows from when a commit was made, and the
#: number of a classic group's generation.
_TIMES = frozenset(
    {
        "as_of_ms",
        "committed_at_ms",
        "lag_seconds",
        "lag_seconds_error",
        "lag_seconds_method",
        "since_ms",
        "reason",
        "verdict",
        "why",
    }
)


class Both:
    """Two services beside a cluster: one reads the log, the other asks."""

    def __init__(self, reads: Service, asks: Service) -> None:
        self.reads, self.asks = reads, asks

    def agree(self, group: str, committed: list[int] | None = None) -> dict[str, Any]:
        """Wait until both say the same about a group that is at rest, and return that.

        ``committed`` are the offsets that it has committed by now, if they are known.
        """
        seen: list[Any] = []

        def same() -> bool:
            seen[:] = [shown(one, group) for one in (self.reads, self.asks)]
            if not seen[0] or seen[0] != seen[1]:
                return False
            there = [one.get("committed") for one in seen[0]["partitions"]]
            return committed is None or there == committed

        try:
            wait_for(f"both say the same about {group}", same, 60)
        except AssertionError as error:
            raise AssertionError(f"{error}: {seen}") from None
        found: dict[str, Any] = seen[0]
        return found


def view(service: Service, group: str) -> dict[str, Any]:
    """Return a group's view, as the page gets it."""
    name = urllib.parse.quote(group)
    with urllib.request.urlopen(f"{service.url}api/view?group={name}", timeout=30) as answer:
        found: dict[str, Any] = json.loads(answer.read())
    return found


def shown(service: Service, group: str) -> dict[str, Any]:
    """Return what a group's view has, but for what the sources can't agree on."""
    found = view(service, group)
    if "group" not in found:
        return {}
    partitions = [
        {name: value for name, value in one.items() if name not in _TIMES}
        for one in found["partitions"]
    ]
    return {
        "type": found["group"].get("group_type"),
        "members": found["group"].get("members"),
        "partitions": sorted(partitions, key=lambda one: (one["topic"], one["partition"])),
        "next_assignor": found.get("next_assignor"),
    }


@pytest.fixture(scope="module")
def both(shared_cluster: EmbeddedCluster) -> Iterator[Both]:
    with (
        Service(shared_cluster, source="log") as reads,
        Service(shared_cluster, source="ask", ask_interval=1) as asks,
    ):
        yield Both(reads, asks)


@pytest.fixture(scope="module")
def topic(shared_cluster: EmbeddedCluster) -> str:
    return old_topic(shared_cluster)


@pytest.mark.parametrize("protocol", [CLASSIC, CONSUMER])
def test_members_that_come_and_go_and_commit(
    shared_cluster: EmbeddedCluster, both: Both, topic: str, protocol: str
) -> None:
    with ExitStack() as running:
        stage = Stage(shared_cluster, both.asks.url, protocol, random.Random(1), running, topic)
        members = [stage.member(name) for name in ("first", "second")]
        stage.settle(2)
        for leaving, left in zip(members, (1, 0), strict=True):
            leaving.leave()
            wait_for(
                f"{left} members are left",
                lambda left=left: view(both.asks, stage.group)["group"].get("members") == left,
                30,
            )
    # No more records, commits or members: now both have to say the same.
    found = both.agree(stage.group)
    assert found["members"] == 0
    assert all(one["committed"] for one in found["partitions"])
    rebalances = view(both.asks, stage.group)["rebalances"]
    causes = [one["causes"][0]["kind"] for one in rebalances]
    assert "left" in causes, rebalances


def test_commits_without_members_that_change_and_are_deleted(
    shared_cluster: EmbeddedCluster, both: Both, make_topic: MakeTopic, group: str
) -> None:
    topic = make_topic(partitions=3)
    produce(shared_cluster, topic, 30)
    for partition in range(3):
        commit(shared_cluster, group, topic, 2 + partition, partition=partition)
    both.agree(group, [2, 3, 4])
    commit(shared_cluster, group, topic, 1, partition=2)
    both.agree(group, [2, 3, 1])
    admin = AdminClient(
        shared_cluster.client_config()
    )  # Held: a collected client drops its requests.
    admin.delete_consumer_groups([group])[group].result(30)
    for service in (both.reads, both.asks):
        wait_for("the group is gone", lambda service=service: "group" not in view(service, group))


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_member_that_stays(
    shared_cluster: EmbeddedCluster,
    both: Both,
    make_topic: MakeTopic,
    group: str,
    protocol: str,
) -> None:
    topic = make_topic(partitions=4)
    produce(shared_cluster, topic, 40)
    consumer = Consumer(
        {
            **shared_cluster.client_config(),
            "group.id": group,
            "group.protocol": protocol,
            "client.id": "reader",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    try:
        consumer.subscribe([topic])
        wait_for("the assignment", lambda: consumer.poll(0.1) and consumer.assignment())
        consumer.commit(asynchronous=False)
        # Before it has partitions, both may already agree that it has none.
        for service in (both.reads, both.asks):
            wait_for(
                "its partitions", lambda service=service: shown(service, group).get("partitions")
            )
        found = both.agree(group)
    finally:
        consumer.close()
    assert found["members"] == 1
    assert {one.get("client_id") for one in found["partitions"]} == {"reader"}, found


def test_the_command_asks_as_well(
    shared_cluster: EmbeddedCluster, make_topic: MakeTopic, group: str, tmp_path: Path
) -> None:
    topic = make_topic(partitions=1)
    produce(shared_cluster, topic, 10)
    commit(shared_cluster, group, topic, 4)
    servers = ["--bootstrap-servers", shared_cluster.bootstrap_servers]
    asked = {"CAUGHTUP_SOURCE": "ask"}
    ran = caughtup(
        "lag", group, *servers, "--format", "json", directory=tmp_path, environment=asked
    )
    (line,) = [one for one in ran.lines if one["kind"] == "partition"]
    assert (line["committed"], line["lag"]) == (4, 6)
    checked = caughtup("check", *servers, "--format", "json", directory=tmp_path, environment=asked)
    said = {line["check"]: line["detail"] for line in checked.lines}
    assert "coordinators are asked" in said["source"]


def copies(application: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return each copy of each task: the task, its process and its role."""
    found = [copy for task in application["tasks"] for copy in task["copies"]]
    return sorted((one["task"], one["process"], one["role"]) for one in found)


def test_an_application_is_decided_by_the_answers(
    shared_cluster: EmbeddedCluster, both: Both, group: str
) -> None:
    create_topics(shared_cluster, dict.fromkeys(topics_of(group), 2))

    async def rebalance() -> int:
        async with PlayedApplication(shared_cluster.bootstrap_servers, group) as application:
            generation, _ = await application.rebalance((), joins_after=0.3)
        return generation

    generation = asyncio.run(rebalance())

    def application(service: Service) -> dict[str, Any]:
        found: list[dict[str, Any]] = service.page()["applications"]
        return next((one for one in found if one["group"] == group), {})

    for service in (both.reads, both.asks):
        wait_for(
            "its generation is decided",
            lambda service=service: application(service).get("exact"),
            60,
        )
    reads, asks = application(both.reads), application(both.asks)
    assert reads["generation"] == generation
    assert asks["generation"] in (generation, 1), (
        "members say in which one they were, or none has yet"
    )
    assert copies(asks) == copies(reads)
    assert asks["exact"]["result"] in (reads["exact"]["result"], "undetermined")
    assert asks["recommendation"]["movements"] == reads["recommendation"]["movements"]

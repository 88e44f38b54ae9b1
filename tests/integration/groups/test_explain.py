"""``caughtup explain`` of real consumer groups: who decided is found by what is in the record alone."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from click.testing import CliRunner
from confluent_kafka import Consumer, Producer

from caughtup.agents.main import main
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.pipelines.java.command_lines import quick_start
from caughtup.pipelines.java.find import find_java
from caughtup.pipelines.java.jars import classpath
from tests.integration.conftest import MakeTopic
from tests.support.oracles import compiled_java
from tests.support.service import wait_for

MEMBERS = Path(__file__).parents[2] / "support" / "java" / "GroupMembers.java"
AIOKAFKA = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}


@contextmanager
def java_members(
    cluster: EmbeddedCluster, group: str, assignor: str, topics: list[str]
) -> Iterator[None]:
    """Run two members in Java's client."""
    path = os.pathsep.join((classpath(), str(compiled_java([MEMBERS]))))
    names = {"range": "Range", "roundrobin": "RoundRobin", "sticky": "Sticky"}
    name = f"org.apache.kafka.clients.consumer.{names.get(assignor, 'CooperativeSticky')}Assignor"
    command = [str(find_java().program), *quick_start(), "-cp", path, "oracles.GroupMembers"]
    arguments = [cluster.bootstrap_servers, group, name, ",".join(topics), "2"]
    with subprocess.Popen(
        [*command, *arguments], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        try:
            yield
        finally:
            process.kill()


@contextmanager
def librdkafka_members(
    cluster: EmbeddedCluster, group: str, topics: list[str], count: int = 2, **config: str
) -> Iterator[None]:
    """Run members in librdkafka."""
    given = {name.replace("_", "."): value for name, value in config.items()}
    consumers = [
        Consumer({**cluster.client_config(), "group.id": group, **given}) for _ in range(count)
    ]
    ended = threading.Event()

    def poll() -> None:
        while not ended.is_set():
            for consumer in consumers:
                consumer.poll(0.02)

    for consumer in consumers:
        consumer.subscribe(topics)
    polling = threading.Thread(target=poll)
    polling.start()
    try:
        yield
    finally:
        ended.set()
        polling.join()
        for consumer in consumers:
            consumer.close()


@contextmanager
def aiokafka_members(
    cluster: EmbeddedCluster, group: str, assignor: str, topics: list[str]
) -> Iterator[None]:
    """Run two members in aiokafka."""
    loop = asyncio.new_event_loop()
    running = threading.Thread(target=loop.run_forever)
    running.start()

    async def started() -> list[AIOKafkaConsumer]:
        consumers = [
            AIOKafkaConsumer(
                *topics,
                bootstrap_servers=cluster.bootstrap_servers,
                group_id=group,
                partition_assignment_strategy=[AIOKAFKA[assignor]],
            )
            for _ in range(2)
        ]
        await asyncio.gather(*(consumer.start() for consumer in consumers))
        return consumers

    async def stopped(consumers: list[AIOKafkaConsumer]) -> None:
        await asyncio.gather(*(consumer.stop() for consumer in consumers))

    consumers = asyncio.run_coroutine_threadsafe(started(), loop).result(60)
    try:
        yield
    finally:
        asyncio.run_coroutine_threadsafe(stopped(consumers), loop).result(60)
        loop.call_soon_threadsafe(loop.stop)
        running.join()
        loop.close()


def explained(cluster: EmbeddedCluster, group: str) -> dict[str, Any] | None:
    """Return the explanation as JSON once both members have partitions; None before."""
    arguments = ["explain", "-b", cluster.bootstrap_servers, group, "--format", "json"]
    ran = CliRunner().invoke(main, arguments)
    if ran.exit_code == 3:
        return None
    assert ran.exit_code == 0, ran.output
    found: dict[str, Any] = json.loads(ran.stdout)
    there = [member for member in found["members"] if member["assigned"]]
    return found if len(there) == 2 else None


def test_whose_assignor_decided_is_right_for_every_client(
    cluster: EmbeddedCluster, make_topic: MakeTopic
) -> None:
    topics = [make_topic(partitions=6), make_topic(partitions=3)]
    of_client = {
        "kafka-clients": ["range", "roundrobin", "sticky", "cooperative-sticky"],
        "librdkafka": ["range", "roundrobin", "cooperative-sticky"],
        "aiokafka": ["range", "roundrobin", "sticky"],
    }
    groups = [(client, assignor) for client, own in of_client.items() for assignor in own]
    with ExitStack() as running:
        for client, assignor in groups:
            group = f"{client}-{assignor}-{topics[0]}"
            if client == "kafka-clients":
                members = java_members(cluster, group, assignor, topics)
            elif client == "librdkafka":
                members = librdkafka_members(
                    cluster, group, topics, partition_assignment_strategy=assignor
                )
            else:
                members = aiokafka_members(cluster, group, assignor, topics)
            running.enter_context(members)
        for client, assignor in groups:
            group = f"{client}-{assignor}-{topics[0]}"
            found = wait_for(f"{group} has both members", partial(explained, cluster, group), 60)
            assert found["group_type"] == "classic"
            assert found["decision"].get("client") == client, found
            assert found["decision"]["assignor"] == assignor
            assert found["decision"]["result"] == "match", found
            assert sorted(len(one["assigned"]) for one in found["members"]) in ([4, 5], [3, 6])


def test_a_hot_partition_is_named_and_what_another_member_would_change(
    cluster: EmbeddedCluster, make_topic: MakeTopic, group: str
) -> None:
    topic = make_topic(partitions=4)
    producer = Producer(cluster.client_config())
    for number, records in enumerate((1, 90, 2, 3)):
        for _ in range(records):
            producer.produce(topic, b"x", partition=number)
    producer.flush()
    with librdkafka_members(cluster, group, [topic], enable_auto_commit="false"):
        found = wait_for("both members", lambda: explained(cluster, group), 60)
        shown = CliRunner().invoke(main, ["explain", "-b", cluster.bootstrap_servers, group])
    assert found["hot"] == {"topic": topic, "partition": 1, "share": pytest.approx(90 / 96)}
    assert found["one_more"]["most_lag"] == 91  # of the first range, with the hot one in it
    assert found["one_fewer"] == {"moves": 2, "most_partitions": 4, "idle": 0, "most_lag": 96}
    assert f"{topic}-1 has 94% of the lag: more members won't help" in " ".join(
        shown.output.split()
    )


def test_a_group_of_the_new_protocol_has_its_members_and_other_sizes(
    cluster: EmbeddedCluster, make_topic: MakeTopic, group: str
) -> None:
    topic = make_topic(partitions=5)
    with librdkafka_members(cluster, group, [topic], group_protocol="consumer"):
        found = wait_for("both members", lambda: explained(cluster, group), 60)
    assert (found["group_type"], found["assignor"]) == ("consumer", "uniform")
    assert found["decision"] == {
        "assignor": "uniform",
        "result": "match",
        "client": "group-coordinator",
    }
    assert sorted(len(one["assigned"]) for one in found["members"]) == [2, 3]
    assert found["one_more"] == {"moves": 1, "most_partitions": 2, "idle": 0, "most_lag": 0}


def test_who_has_to_revoke_what_is_named_while_another_one_waits(
    cluster: EmbeddedCluster, make_topic: MakeTopic, group: str
) -> None:
    topic = make_topic(partitions=4)
    arguments = ["explain", "-b", cluster.bootstrap_servers, group]
    config = {**cluster.client_config(), "group.id": group, "group.protocol": "consumer"}
    stuck, joins = Consumer(config), Consumer(config)
    try:
        stuck.subscribe([topic])
        wait_for("it has all", lambda: stuck.poll(0.1) or len(stuck.assignment()) == 4, 60)
        joins.subscribe([topic])  # the other one polls no more, so that it revokes nothing

        def shown() -> str | None:
            joins.poll(0.1)
            text = " ".join(CliRunner().invoke(main, arguments).output.split())
            return text if "still has to revoke" in text else None

        text = wait_for("it is named", shown, 60)
        found = json.loads(CliRunner().invoke(main, [*arguments, "--format", "json"]).stdout)
    finally:
        stuck.close()
        joins.close()
    holds, waits = sorted(found["members"], key=lambda one: -len(one["assigned"]))
    assert len(holds["revokes"]) == 2
    assert waits["awaits"] == holds["revokes"]
    assert f"{holds['member']} still has to revoke {topic} " in text
    assert f"for which {waits['member']} waits." in text
    assert found["target_epoch"] == found["generation"]


def test_members_that_idle_are_named(
    cluster: EmbeddedCluster, make_topic: MakeTopic, group: str
) -> None:
    topic = make_topic(partitions=2)
    arguments = ["explain", "-b", cluster.bootstrap_servers, group]

    def shown() -> str | None:
        text = " ".join(CliRunner().invoke(main, arguments).output.split())
        return text if "1 member without a partition" in text else None

    with librdkafka_members(cluster, group, [topic], 3, partition_assignment_strategy="range"):
        text = wait_for("a member idles", shown, 60)
    assert "One member fewer: 0 partitions would move" in text
    assert "exactly what that assignor decides" in text

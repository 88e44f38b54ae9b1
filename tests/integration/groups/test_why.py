"""``caughtup why`` of a real cluster: one look, and a service that has observed for longer."""

from __future__ import annotations

import asyncio
import sys
import uuid
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from mcp import Client, StdioServerParameters

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.load import produce
from tests.integration.conftest import MakeTopic
from tests.support.service import Ran, Service, caughtup, commit, wait_for


def why(where: list[str], group: str, directory: Path) -> Ran:
    return caughtup("why", *where, "--format", "json", group, directory=directory)


def test_a_look_and_a_service_say_that_nobody_reads(
    cluster: EmbeddedCluster, service: Service, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic, group = make_topic("words"), f"readers-{uuid.uuid4().hex[:8]}"
    produce(cluster, topic, 10)
    commit(cluster, group, topic, 4)
    looked = why(["-b", cluster.bootstrap_servers], group, tmp_path)
    assert looked.code == 0, looked
    (found,) = looked.lines
    assert [link["kind"] for link in found["links"]] == ["no_members"]
    assert found["links"][0]["lag"] == 6
    assert not [one for one in found["not_known"] if "not asked" in one]
    served = wait_for(
        "the service knows the group",
        lambda: (ran := why(["--service", service.url], group, tmp_path)).code == 0 and ran,
    )
    assert served.lines[0]["group"] == group
    assert why(["-b", cluster.bootstrap_servers], "nobody", tmp_path).code == 3
    text = caughtup("why", "-b", cluster.bootstrap_servers, group, directory=tmp_path)
    assert len(text.out.splitlines()) <= 10


def test_a_look_finds_the_open_transaction_before_a_group(
    cluster: EmbeddedCluster, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic, group = make_topic("held"), f"readers-{uuid.uuid4().hex[:8]}"
    name = f"payments-{uuid.uuid4().hex[:8]}"
    producer = Producer({**cluster.client_config(), "transactional.id": name})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(topic, b"held")
    producer.flush()
    commit(cluster, group, topic, 0)
    try:
        (found,) = why(["-b", cluster.bootstrap_servers], group, tmp_path).lines
    finally:
        producer.abort_transaction()
    named = [link.get("transactional_id") for link in found["links"]]
    assert name in named, found


async def test_an_assistant_asks_without_a_service(
    cluster: EmbeddedCluster, make_topic: MakeTopic
) -> None:
    topic, group = make_topic("asked"), f"readers-{uuid.uuid4().hex[:8]}"
    produce(cluster, topic, 10)
    commit(cluster, group, topic, 4)
    command = ["-m", "caughtup.agents", "mcp", "-b", cluster.bootstrap_servers]
    server = StdioServerParameters(command=sys.executable, args=command)
    async with asyncio.timeout(120), Client(server) as client:

        async def answer(tool: str, **arguments: object) -> Any:
            result = await client.call_tool(tool, arguments)
            assert not result.is_error, result
            return result.structured_content

        found = await answer("why", group=group)
        assert [link["kind"] for link in found["why"]["links"]] == ["no_members"]
        lag = await answer("lag", group=group)
        assert [(one["topic"], one["lag"]) for one in lag["partitions"]] == [(topic, 6)]
        assert (await answer("rebalances", group=group))["rebalances"] == []
        assert (await answer("reassignments"))["reassignments"] == []
        assert (await answer("groups", limit=50))["groups"]
        assert (await client.call_tool("lag", {"group": "nobody"})).is_error
        commit(cluster, group, topic, 9)  # a later look reads what is new
        assert (await answer("lag", group=group))["group"]["lag"] == 1

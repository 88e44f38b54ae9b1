"""A real controller, asked for one thing after another, and what our own rules make of the same."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from caughtup.agents.kafka.protocol.client import ClusterProtocol
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.models.ids import TopicPartition
from caughtup.models.reassignments.controllers import missing_from_isr
from caughtup.models.records.reassignments import ClusterRecord
from caughtup.pipelines.java.jars import KAFKA_VERSION
from tests.integration.conftest import MakeCluster
from tests.support.controllers.kraft import cancelled, isr_changed, reassigned
from tests.support.controllers.partition_state import PartitionState

pytestmark = pytest.mark.thorough

PARTITION = TopicPartition("moved", 0)
RELEASE = (int(KAFKA_VERSION.split(".")[0]), int(KAFKA_VERSION.split(".")[1]))
SECONDS = 90.0


async def seen(protocol: ClusterProtocol) -> PartitionState:
    """Return the partition as the controller lists it and the brokers show it."""
    listed = (await protocol.list_reassignments()).get(PARTITION)
    shape = (await protocol.describe_partitions([PARTITION])).partitions[PARTITION]
    return PartitionState(
        replicas=listed.replicas if listed else shape.replicas,
        isr=tuple(sorted(shape.isr)),
        leader=shape.leader,
        leader_epoch=shape.leader_epoch,
        adding=listed.adding if listed else (),
        removing=listed.removing if listed else (),
    )


async def becomes(protocol: ClusterProtocol, expected: PartitionState) -> None:
    deadline = time.monotonic() + SECONDS
    while (state := await seen(protocol)) != expected:
        assert time.monotonic() < deadline, f"{state} never became {expected}"
        await asyncio.sleep(0.1)


async def ask(
    protocol: ClusterProtocol, state: PartitionState, target: Sequence[int] | None
) -> PartitionState:
    """Ask the controller, and wait until everybody shows what our own rules say."""
    await protocol.alter_reassignments({PARTITION: target})
    alive = (1,)
    expected = (
        cancelled(state, alive, RELEASE)
        if target is None
        else reassigned(state, tuple(target), alive, RELEASE)
    )
    assert expected is not None
    await becomes(protocol, expected)
    return expected


def started(make_cluster: MakeCluster) -> EmbeddedCluster:
    """Return two nodes, the second of which is down, and a partition on the first."""
    cluster = make_cluster(2)
    admin = AdminClient(cluster.client_config())
    topic = NewTopic(PARTITION.topic, 1, replica_assignment=[[1]])
    admin.create_topics([topic])[PARTITION.topic].result(30)
    cluster.stop_node(2)
    return cluster


async def test_asking_for_the_original_replicas_again_never_completes_until_it_is_cancelled(
    make_cluster: MakeCluster,
) -> None:
    """What was added is listed as added and as removed: in sync, it still doesn't count."""
    cluster = await asyncio.to_thread(started, make_cluster)
    async with ClusterProtocol({"bootstrap_servers": cluster.bootstrap_servers}) as protocol:
        before = await seen(protocol)
        assert (before.replicas, before.isr, before.in_progress) == ((1,), (1,), False)
        moving = await ask(protocol, before, [2])
        assert missing_from_isr(moving, ClusterRecord(2, 0, software=RELEASE)) == (2,)
        both = await ask(protocol, moving, [1])
        assert (both.adding, both.removing) == ((2,), (2,))
        await asyncio.to_thread(cluster.start_node, 2)
        await asyncio.to_thread(cluster.wait_ready)
        in_sync = isr_changed(both, (1, 2), (1, 2), RELEASE)
        await becomes(protocol, in_sync)
        assert in_sync.in_progress
        assert missing_from_isr(in_sync, ClusterRecord(2, 0, software=RELEASE)) == (2,)
        after = await ask(protocol, in_sync, None)
        assert (after.replicas, after.isr, after.in_progress) == ((1,), (1,), False)

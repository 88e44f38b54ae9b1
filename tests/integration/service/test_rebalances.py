"""What a leader listed while records flowed, as the service bounds it: with and without its probe."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack

import pytest
from confluent_kafka.admin import AdminClient

from caughtup.agents.kafka.protocol.client import ClusterProtocol
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.load import producing
from caughtup.demo.cluster.topics import create_topics
from caughtup.models.assignors.java.strings import coordinator_partition, hash_code
from caughtup.models.ids import TopicPartition
from caughtup.models.wire.consumer_offsets import OffsetKey, decode_key
from caughtup.models.wire.record_keys import CONSUMER_OFFSETS
from tests.support.kafka.streams_members import PlayedApplication, topics_of
from tests.support.kafka.topics import whole_topic
from tests.support.service import Service, commit, wait_for

ROUNDS = 4
RECORDS_PER_SECOND = 400

#: By generation: what the leader listed of each task's changelog.
Truth = dict[int, list[int]]
#: By generation: the least and the greatest end offset sum of each task.
Bounds = dict[int, list[tuple[int, int]]]


@pytest.fixture(scope="module")
def services(cluster: EmbeddedCluster) -> Iterator[tuple[Service, Service]]:
    """One that lists end offsets while applications rebalance, and one that doesn't."""
    with Service(cluster) as listing, Service(cluster, rebalance_interval=0) as plain:
        yield listing, plain


def bounds_of(cluster: EmbeddedCluster, service: Service, group: str) -> Bounds:
    found: Bounds = {}
    for message in whole_topic(cluster, service.topic("recommended-assignments")):
        record = json.loads(message.value() or b"{}")
        if record.get("group") == group:
            sums = record["inputs"]["end_offset_sums"]
            found[record["generation"]] = [tuple(sums[task]) for task in ("0_0", "0_1")]
    return found


async def play(
    cluster: EmbeddedCluster, group: str, are_decided: Callable[[Collection[int]], None]
) -> Truth:
    """Rebalance again and again; the services know of the application before the second time."""
    _, changelog = topics_of(group)
    partitions = [TopicPartition(changelog, number) for number in (0, 1)]
    config = {"bootstrap_servers": cluster.bootstrap_servers}
    async with (
        ClusterProtocol(config) as protocol,
        PlayedApplication(cluster.bootstrap_servers, group) as application,
    ):
        described = (await protocol.describe_partitions(partitions)).partitions
        leaders = [described[partition].leader or 0 for partition in partitions]
        truth: Truth = {}
        for _ in range(ROUNDS):
            generation, listed = await application.rebalance(leaders, joins_after=0.8)
            truth[generation] = [listed[partition] for partition in partitions]
            await asyncio.to_thread(are_decided, truth.keys())
    return truth


@pytest.mark.usefixtures("services")
def test_brokers_keep_a_group_on_the_partition_that_its_name_gives(
    cluster: EmbeddedCluster, group: str
) -> None:
    create_topics(cluster, {group: 1})
    groups = [f"{number}-{group}" for number in range(10, 90, 7)]
    assert {hash_code(name) >> 31 for name in groups} == {0, 1}  # positive and negative ones
    for name in groups:
        commit(cluster, name, group, 0)
    log = AdminClient(cluster.client_config()).list_topics(CONSUMER_OFFSETS, 30)
    count = len(log.topics[CONSUMER_OFFSETS].partitions)
    placed = {
        key.group: number
        for number in range(count)
        for message in whole_topic(cluster, CONSUMER_OFFSETS, number)
        if isinstance(key := decode_key(message.key() or b""), OffsetKey)
    }
    assert {name: placed[name] for name in groups} == {
        name: coordinator_partition(name, count) for name in groups
    }


def test_what_the_leader_listed_is_within_narrow_bounds(
    cluster: EmbeddedCluster, services: tuple[Service, Service], group: str
) -> None:
    def are_decided(generations: Collection[int]) -> None:
        for service in services:
            wait_for(
                "all generations are decided",
                lambda one=service: bounds_of(cluster, one, group).keys() >= generations,
            )

    topics = topics_of(group)
    create_topics(cluster, dict.fromkeys(topics, 2))
    with ExitStack() as flowing:
        for topic in topics:
            flowing.enter_context(producing(cluster, topic, RECORDS_PER_SECOND))
        truth = asyncio.run(play(cluster, group, are_decided))
    widths = []
    for service in services:
        one = bounds_of(cluster, service, group)
        for generation, ends in truth.items():
            for end, (low, high) in zip(ends, one[generation], strict=True):
                assert low <= end <= high
        widths.append([high - low for number in sorted(truth)[1:] for low, high in one[number]])
    listing, plain = map(sorted, widths)
    print(
        f"offsets between the bounds, {RECORDS_PER_SECOND / 2:.0f}/s: {listing}; without: {plain}"
    )
    assert sum(listing) < sum(plain)
    requests = [one.value("rebalance_requests_total") for one in services]
    assert (requests[0] or 0) > (requests[1] or 0) == 0

"""Describe partitions and list topics without the metadata of the whole cluster where possible."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from aiokafka.errors import KafkaError

from caughtup.agents.kafka.protocol import cluster_answers as answers
from caughtup.agents.kafka.protocol import requests
from caughtup.agents.kafka.protocol.brokers import BrokerConnections, Purpose
from caughtup.agents.kafka.protocol.cluster_answers import DescribedPartitions, PartitionInfo
from caughtup.agents.kafka.protocol.connection import raise_for
from caughtup.agents.kafka.protocol.decoding import decode
from caughtup.agents.kafka.protocol.requests import Key
from caughtup.models.ids import TopicPartition

_NO_PROGRESS = "a broker gave a page of partitions that ends where it begins"


async def describe_partitions(
    connections: BrokerConnections, partitions: Collection[TopicPartition]
) -> DescribedPartitions:
    """Return partitions' replicas, ISR and leader. Needs DESCRIBE on the topics.

    A partition that is not in the result, and whose topic has no error, does not exist.
    """
    if not partitions:
        return DescribedPartitions({}, {})
    if Key.DESCRIBE_TOPIC_PARTITIONS in (await connections.any_offered()).requests:
        return await _describe_by_pages(connections, sorted(partitions))
    topics = list(requests.by_topic(partitions))
    found, errors = {}, {}
    for start in range(0, len(topics), requests.PAGE_TOPICS):
        call = requests.metadata_call(topics[start : start + requests.PAGE_TOPICS])
        _, data = await connections.ask_any(call)
        _, described = await decode(answers.decode_metadata, data)
        found.update(described.partitions)
        errors.update(described.errors)
    return DescribedPartitions({p: found[p] for p in partitions if p in found}, errors)


async def list_topic_names(connections: BrokerConnections) -> list[str]:
    """List all topics with DESCRIBE. From 4.1 on needs DESCRIBE_CONFIGS on the cluster.

    Older brokers return a topic's name only with all its partitions: from 3.8 on in pages.
    """
    offered = (await connections.any_offered()).requests
    if offered.get(Key.LIST_CONFIG_RESOURCES, (0, 0))[1] >= 1:
        _, data = await connections.ask_any(requests.list_topics_call())
        code, names = await decode(answers.decode_topic_names, data)
        raise_for(code)
        return sorted(names)
    if Key.DESCRIBE_TOPIC_PARTITIONS in offered:
        return await _topic_names_by_pages(connections)
    call = requests.metadata_call(None)
    _, data = await connections.ask_any(call, purpose=Purpose.BULK)
    return sorted(await decode(answers.decode_metadata_topics, data))


async def _topic_names_by_pages(connections: BrokerConnections) -> list[str]:
    names: set[str] = set()
    first: TopicPartition | None = TopicPartition("", 0)
    while first is not None:
        call = requests.describe_partitions_call((), first)
        _, data = await connections.ask_any(call)
        page = await decode(answers.decode_partitions, data)
        names.update(partition.topic for partition in page.partitions)
        if page.next_partition is not None and page.next_partition <= first:
            raise KafkaError(_NO_PROGRESS)
        first = page.next_partition
    return sorted(names)


async def _describe_by_pages(
    connections: BrokerConnections, wanted: Sequence[TopicPartition]
) -> DescribedPartitions:
    """Describe the wanted partitions (sorted) in pages.

    A page begins at a wanted partition and holds those that follow it, up to a limit, so that
    unwanted partitions between two pages are skipped.
    """
    found: dict[TopicPartition, PartitionInfo] = {}
    errors: dict[str, int] = {}
    start = 0
    while start < len(wanted):
        stretch = wanted[start : start + requests.PAGE_PARTITIONS]
        first, last = stretch[0], stretch[-1]
        topics = list(requests.by_topic(stretch))
        most = requests.PAGE_PARTITIONS
        if first.topic == last.topic:
            most = last.partition - first.partition + 1
        call = requests.describe_partitions_call(topics, first, most)
        _, data = await connections.ask_any(call)
        page = await decode(answers.decode_partitions, data)
        errors.update(page.errors)
        begun = start
        while start < len(wanted) and _is_covered(wanted[start], topics[-1], page.next_partition):
            if wanted[start] in page.partitions:
                found[wanted[start]] = page.partitions[wanted[start]]
            start += 1
        if start == begun:
            raise KafkaError(_NO_PROGRESS)
    return DescribedPartitions(found, errors)


def _is_covered(partition: TopicPartition, last_topic: str, end: TopicPartition | None) -> bool:
    """Return whether a page that asked up to ``last_topic`` and ended before ``end`` covers it."""
    return partition.topic <= last_topic and (end is None or partition < end)

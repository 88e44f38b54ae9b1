"""Partitions' shapes and topics' names, never those of more of a large cluster than is asked for."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from aiokafka.errors import KafkaError

from caughtup.agents.kafka.protocol import cluster_answers as answers
from caughtup.agents.kafka.protocol import requests
from caughtup.agents.kafka.protocol.brokers import BrokerConnections, Purpose
from caughtup.agents.kafka.protocol.cluster_answers import Shape, Shapes
from caughtup.agents.kafka.protocol.connection import raise_for
from caughtup.agents.kafka.protocol.decoding import decode
from caughtup.agents.kafka.protocol.requests import Key
from caughtup.models.ids import TopicPartition

_NO_WAY_ON = "a broker gave a page of partitions that ends where it begins"


async def ask_shapes(
    connections: BrokerConnections, partitions: Collection[TopicPartition]
) -> Shapes:
    """Ask for partitions' replicas, ISR and leader. Needs DESCRIBE on the topics.

    One that is neither found nor of a topic with an error doesn't exist.
    """
    if not partitions:
        return Shapes({}, {})
    if Key.DESCRIBE_TOPIC_PARTITIONS in (await connections.any_offered()).requests:
        return await _shapes_by_pages(connections, sorted(partitions))
    topics = list(requests.by_topic(partitions))
    found, errors = {}, {}
    for start in range(0, len(topics), requests.PAGE_TOPICS):
        call = requests.metadata_call(topics[start : start + requests.PAGE_TOPICS])
        _, data = await connections.ask_any(call)
        _, shapes = await decode(answers.decode_metadata, data)
        found.update(shapes.found)
        errors.update(shapes.errors)
    return Shapes({p: found[p] for p in partitions if p in found}, errors)


async def ask_topic_names(connections: BrokerConnections) -> list[str]:
    """List all topics that may be described. Needs DESCRIBE_CONFIGS on the cluster from 4.1 on.

    Older brokers give a topic's name only with all its partitions: from 3.8 on in pages.
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
    following: TopicPartition | None = TopicPartition("", 0)
    while following is not None:
        call = requests.describe_partitions_call((), following)
        _, data = await connections.ask_any(call)
        page = await decode(answers.decode_partitions, data)
        names.update(partition.topic for partition in page.found)
        if page.following is not None and page.following <= following:
            raise KafkaError(_NO_WAY_ON)
        following = page.following
    return sorted(names)


async def _shapes_by_pages(
    connections: BrokerConnections, wanted: Sequence[TopicPartition]
) -> Shapes:
    """Page through the partitions; what lies between two of them is passed over where it can be.

    A page begins with a partition that is wanted and holds what follows it, up to a limit.
    """
    found: dict[TopicPartition, Shape] = {}
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
        while start < len(wanted) and _is_covered(wanted[start], topics[-1], page.following):
            if wanted[start] in page.found:
                found[wanted[start]] = page.found[wanted[start]]
            start += 1
        if start == begun:
            raise KafkaError(_NO_WAY_ON)
    return Shapes(found, errors)


def _is_covered(partition: TopicPartition, last_topic: str, end: TopicPartition | None) -> bool:
    """Tell whether a page of topics up to the last one, which ended there, is past a partition."""
    return partition.topic <= last_topic and (end is None or partition < end)

"""What brokers tell of their cluster, as the published jar writes it; and bytes nobody wrote."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caughtup.agents.kafka.protocol import answers, cluster_answers, requests
from caughtup.agents.kafka.protocol.cluster_answers import (
    ApiVersions,
    Broker,
    DescribedCluster,
    DescribedPartitions,
    PartitionInfo,
)
from caughtup.models.errors import DecodeError
from caughtup.models.ids import TopicPartition
from tests.models.wire.strategies import thorough
from tests.oracle.protocol.drawn import (
    ANY,
    BROKERS,
    INT16,
    INT32,
    NAMES,
    PARTITION_INFOS,
    PARTITIONS,
    TOPIC_ID,
)
from tests.oracle.protocol.messages import Messages


@thorough
@given(
    keys=st.dictionaries(INT16, st.tuples(INT16, INT16), max_size=5),
    supported=st.dictionaries(NAMES, INT16, max_size=3),
    finalized=st.dictionaries(NAMES, INT16, max_size=3),
)
def test_what_a_broker_offers(
    messages: Messages,
    keys: dict[int, tuple[int, int]],
    supported: dict[str, int],
    finalized: dict[str, int],
) -> None:
    answer = {
        "errorCode": 0,
        "apiKeys": [
            {"apiKey": key, "minVersion": least, "maxVersion": greatest}
            for key, (least, greatest) in keys.items()
        ],
        "throttleTimeMs": 0,
        "supportedFeatures": [
            {"name": name, "minVersion": 1, "maxVersion": level}
            for name, level in supported.items()
        ],
        "finalizedFeaturesEpoch": 5,
        "finalizedFeatures": [
            {"name": name, "maxVersionLevel": level, "minVersionLevel": 1}
            for name, level in finalized.items()
        ],
    }
    raw = messages.write(requests.api_versions_call(), answer)
    assert cluster_answers.decode_api_versions(raw) == ApiVersions(keys, supported, finalized)


def test_a_broker_that_is_too_old_to_say_offers_nothing(messages: Messages) -> None:
    answer = {
        "errorCode": 35,
        "apiKeys": [{"apiKey": 18, "minVersion": 0, "maxVersion": 2}],
    }
    raw = messages.write_message("ApiVersionsResponse", answer, 0)
    assert cluster_answers.decode_api_versions(raw) == ApiVersions({}, {}, {})


@thorough
@given(
    version=st.integers(0, 2),
    brokers=st.lists(
        st.builds(Broker, INT32, NAMES, INT32, st.booleans()), max_size=5, unique_by=lambda b: b.id
    ),
    rack=st.none() | NAMES,
)
def test_registered_brokers(
    messages: Messages, version: int, brokers: list[Broker], rack: str | None
) -> None:
    answer: dict[str, Any] = {
        "throttleTimeMs": 0,
        "errorCode": 31,
        "errorMessage": None,
        "clusterId": "one",
        "controllerId": 3,
        "brokers": [
            {"brokerId": broker.id, "host": broker.host, "port": broker.port, "rack": rack}
            | ({"isFenced": broker.fenced} if version == 2 else {})
            for broker in brokers
        ],
        "clusterAuthorizedOperations": -(2**31),
    }
    if version >= 1:
        answer["endpointType"] = 1
    raw = messages.write(requests.describe_cluster_call(version), answer)
    told = tuple(b if version == 2 else b._replace(fenced=None) for b in brokers)
    assert cluster_answers.decode_cluster(raw, version) == DescribedCluster(31, 3, told)


@pytest.mark.parametrize(
    ("code", "leader", "expected"),
    [(0, 3, (0, 3, 7)), (0, -1, (0, None, 7)), (6, -1, (6, None, 7))],
)
def test_the_quorum(
    messages: Messages, code: int, leader: int, expected: tuple[int, int | None, int | None]
) -> None:
    partition = {
        "partitionIndex": 0,
        "errorCode": code,
        "leaderId": leader,
        "leaderEpoch": 7,
        "highWatermark": 9,
        "currentVoters": [{"replicaId": 1, "logEndOffset": 5}],
        "observers": [],
    }
    topic = {"topicName": "__cluster_metadata", "partitions": [partition]}
    call = requests.describe_quorum_call()
    raw = messages.write(call, {"errorCode": 0, "topics": [topic]})
    assert cluster_answers.decode_quorum(raw) == expected
    refused = messages.write(call, {"errorCode": 31, "topics": []})
    assert cluster_answers.decode_quorum(refused) == (31, None, None)


def info_json(info: PartitionInfo) -> dict[str, Any]:
    return {
        "errorCode": 0 if info.leader is not None else 5,
        "leaderId": -1 if info.leader is None else info.leader,
        "leaderEpoch": info.leader_epoch,
        "replicaNodes": info.replicas,
        "isrNodes": info.isr,
        "offlineReplicas": info.offline,
    }


@thorough
@given(
    described=st.dictionaries(PARTITIONS, PARTITION_INFOS, max_size=4),
    next_partition=st.none() | PARTITIONS,
    eligible=st.none() | BROKERS,
)
def test_shapes_page_by_page(
    messages: Messages,
    described: dict[TopicPartition, PartitionInfo],
    next_partition: TopicPartition | None,
    eligible: tuple[int, ...] | None,
) -> None:
    flags = {"topicId": TOPIC_ID, "isInternal": False, "topicAuthorizedOperations": 0}
    topics: dict[str, list[dict[str, Any]]] = {topic: [] for topic, _ in described}
    for (topic, partition), info in described.items():
        more = {"eligibleLeaderReplicas": eligible, "lastKnownElr": None}
        topics[topic].append({"partitionIndex": partition} | info_json(info) | more)
    cursor = None
    if next_partition is not None:
        cursor = {"topicName": next_partition.topic, "partitionIndex": next_partition.partition}
    answer = {
        "throttleTimeMs": 0,
        "topics": [{"errorCode": 3, "name": "GONE", "partitions": []} | flags]
        + [{"errorCode": 0, "name": t, "partitions": p} | flags for t, p in topics.items()],
        "nextCursor": cursor,
    }
    raw = messages.write(requests.describe_partitions_call([], ANY), answer)
    assert cluster_answers.decode_partitions(raw) == DescribedPartitions(
        described, {"GONE": 3}, next_partition
    )


@thorough
@given(
    described=st.dictionaries(PARTITIONS, PARTITION_INFOS, max_size=4),
    brokers=st.lists(
        st.builds(Broker, INT32, NAMES, INT32, st.none()), max_size=3, unique_by=lambda b: b.id
    ),
)
def test_shapes_in_metadata(
    messages: Messages, described: dict[TopicPartition, PartitionInfo], brokers: list[Broker]
) -> None:
    topics: dict[str, list[dict[str, Any]]] = {topic: [] for topic, _ in described}
    for (topic, partition), info in described.items():
        topics[topic].append({"partitionIndex": partition} | info_json(info))
    answer = {
        "throttleTimeMs": 0,
        "brokers": [
            {"nodeId": broker.id, "host": broker.host, "port": broker.port, "rack": None}
            for broker in brokers
        ],
        "clusterId": None,
        "controllerId": 3,
        "topics": [{"errorCode": 3, "name": "GONE", "isInternal": False, "partitions": []}]
        + [
            {"errorCode": 0, "name": topic, "isInternal": True, "partitions": partitions}
            for topic, partitions in topics.items()
        ],
    }
    raw = messages.write(requests.metadata_call(None), answer)
    assert cluster_answers.decode_metadata(raw) == (
        DescribedCluster(0, 3, tuple(brokers)),
        DescribedPartitions(described, {"GONE": 3}),
    )
    assert set(cluster_answers.decode_metadata_topics(raw)) == set(topics)


@thorough
@given(names=st.lists(NAMES, max_size=5))
def test_topics_by_name(messages: Messages, names: list[str]) -> None:
    resources = [{"resourceName": name, "resourceType": 2} for name in names]
    answer = {"throttleTimeMs": 0, "errorCode": 31, "configResources": resources}
    raw = messages.write(requests.list_topics_call(), answer)
    assert cluster_answers.decode_topic_names(raw) == (31, names)


DECODERS: dict[str, Callable[[bytes], object]] = {
    function.__name__: function
    for function in (
        answers.decode_alter_reassignments,
        answers.decode_configs,
        answers.decode_list_offsets,
        answers.decode_reassignments,
        cluster_answers.decode_api_versions,
        cluster_answers.decode_metadata,
        cluster_answers.decode_partitions,
        cluster_answers.decode_quorum,
        cluster_answers.decode_topic_names,
    )
} | {
    "decode_list_offsets, version 5": lambda raw: answers.decode_list_offsets(raw, 5),
    "decode_cluster": lambda raw: cluster_answers.decode_cluster(raw, 2),
    "decode_log_dirs": lambda raw: answers.decode_log_dirs(raw, 4),
}


@pytest.mark.parametrize("name", DECODERS)
@thorough
@given(raw=st.binary(max_size=200))
def test_bytes_that_nobody_wrote_are_refused_and_nothing_worse(name: str, raw: bytes) -> None:
    with suppress(DecodeError):
        DECODERS[name](raw)

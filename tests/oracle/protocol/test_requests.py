"""Requests of ours, held against what the published jar reads of them."""

from __future__ import annotations

from typing import Any

import pytest

from caughtup.agents.kafka.protocol import requests, transactions
from caughtup.agents.kafka.protocol.cluster_answers import release
from caughtup.agents.kafka.protocol.connection import EncodedRequest
from caughtup.agents.kafka.protocol.described import calls
from caughtup.agents.kafka.protocol.described.share_groups import share_offsets_call
from caughtup.agents.kafka.protocol.requests import Key, ResourceType
from caughtup.models.ids import TopicPartition
from tests.oracle.protocol.messages import Messages

ORDERS = [TopicPartition("orders", 0), TopicPartition("orders", 2), TopicPartition("parcels", 1)]

CALLS = {
    "api versions": (
        requests.api_versions_call(),
        {"clientSoftwareName": "caughtup", "clientSoftwareVersion": "0"},
    ),
    "describe cluster v0": (
        requests.describe_cluster_call(0),
        {"includeClusterAuthorizedOperations": False},
    ),
    "describe cluster v1": (
        requests.describe_cluster_call(1),
        {"includeClusterAuthorizedOperations": False, "endpointType": 1},
    ),
    "describe cluster v2": (
        requests.describe_cluster_call(2),
        {
            "includeClusterAuthorizedOperations": False,
            "endpointType": 1,
            "includeFencedBrokers": True,
        },
    ),
    "describe quorum": (
        requests.describe_quorum_call(),
        {"topics": [{"topicName": "__cluster_metadata", "partitions": [{"partitionIndex": 0}]}]},
    ),
    "list reassignments": (
        requests.list_reassignments_call(7),
        {"timeoutMs": 7, "topics": None},
    ),
    "alter reassignments": (
        requests.alter_reassignments_call(7, {ORDERS[0]: [3, 4], ORDERS[1]: None, ORDERS[2]: [5]}),
        {
            "timeoutMs": 7,
            "topics": [
                {
                    "name": "orders",
                    "partitions": [
                        {"partitionIndex": 0, "replicas": [3, 4]},
                        {"partitionIndex": 2, "replicas": None},
                    ],
                },
                {"name": "parcels", "partitions": [{"partitionIndex": 1, "replicas": [5]}]},
            ],
        },
    ),
    "describe producers": (
        transactions.describe_producers_call(ORDERS),
        {
            "topics": [
                {"name": "orders", "partitionIndexes": [0, 2]},
                {"name": "parcels", "partitionIndexes": [1]},
            ]
        },
    ),
    "list transactions": (
        transactions.list_transactions_call([7, 1 << 40]),
        {"stateFilters": [], "producerIdFilters": [7, 1 << 40]},
    ),
    "describe transactions": (
        transactions.describe_transactions_call(["b", "ä"]),
        {"transactionalIds": ["b", "ä"]},
    ),
    "find coordinator": (
        requests.find_coordinator_call("orders"),
        {"key": "orders", "keyType": 0},
    ),
    "find the coordinator of a transactional id": (
        requests.find_coordinator_call("caughtup-3", transactional=True),
        {"key": "caughtup-3", "keyType": 1},
    ),
    "init producer id": (
        transactions.init_producer_id_call("caughtup-3", 60_000),
        {"transactionalId": "caughtup-3", "transactionTimeoutMs": 60_000},
    ),
    "describe group": (
        requests.describe_group_call("orders"),
        {"groups": ["orders"], "includeAuthorizedOperations": True},
    ),
    "list groups": (
        calls.list_groups_call(4, ["PreparingRebalance", "CompletingRebalance"]),
        {"statesFilter": ["PreparingRebalance", "CompletingRebalance"]},
    ),
    "list groups of all types": (
        calls.list_groups_call(5),
        {"statesFilter": [], "typesFilter": []},
    ),
    "describe classic groups": (
        calls.describe_groups_call(["orders", "ä"], Key.DESCRIBE_GROUPS, 5),
        {"groups": ["orders", "ä"], "includeAuthorizedOperations": False},
    ),
    "describe consumer groups": (
        calls.describe_groups_call(["orders", "ä"], Key.CONSUMER_GROUP_DESCRIBE, 1),
        {"groupIds": ["orders", "ä"], "includeAuthorizedOperations": False},
    ),
    "describe streams groups": (
        calls.describe_groups_call(["orders", "ä"], Key.STREAMS_GROUP_DESCRIBE, 0),
        {"groupIds": ["orders", "ä"], "includeAuthorizedOperations": False},
    ),
    "describe share groups": (
        calls.describe_groups_call(["orders", "ä"], Key.SHARE_GROUP_DESCRIBE, 1),
        {"groupIds": ["orders", "ä"], "includeAuthorizedOperations": False},
    ),
    "how far share groups are": (
        share_offsets_call(["orders", "ä"], 1),
        {"groups": [{"groupId": "orders", "topics": None}, {"groupId": "ä", "topics": None}]},
    ),
    "fetch the offsets of many groups": (
        calls.offset_fetch_call(["orders", "ä"], 8),
        {
            "groups": [{"groupId": "orders", "topics": None}, {"groupId": "ä", "topics": None}],
            "requireStable": False,
        },
    ),
    "fetch the offsets of a group": (
        calls.offset_fetch_call(["orders"], 5),
        {"groupId": "orders", "topics": None},
    ),
    "replica log ends": (
        requests.list_offsets_call(ORDERS, replica=requests.DEBUGGING_REPLICA),
        {
            "replicaId": -2,
            "isolationLevel": 0,
            "topics": [
                {
                    "name": "orders",
                    "partitions": [
                        {"partitionIndex": 0, "timestamp": -1},
                        {"partitionIndex": 2, "timestamp": -1},
                    ],
                },
                {"name": "parcels", "partitions": [{"partitionIndex": 1, "timestamp": -1}]},
            ],
        },
    ),
    "last stable offsets": (
        requests.list_offsets_call(ORDERS[:1], isolation=requests.READ_COMMITTED),
        {
            "replicaId": -1,
            "isolationLevel": 1,
            "topics": [{"name": "orders", "partitions": [{"partitionIndex": 0, "timestamp": -1}]}],
        },
    ),
    "log ends of version 5": (
        requests.list_offsets_call(ORDERS[:1], version=5),
        {
            "replicaId": -1,
            "isolationLevel": 0,
            "topics": [
                {
                    "name": "orders",
                    "partitions": [
                        {"partitionIndex": 0, "currentLeaderEpoch": -1, "timestamp": -1}
                    ],
                }
            ],
        },
    ),
    "log starts": (
        requests.list_offsets_call(ORDERS[:1], at=requests.EARLIEST),
        {
            "replicaId": -1,
            "isolationLevel": 0,
            "topics": [{"name": "orders", "partitions": [{"partitionIndex": 0, "timestamp": -2}]}],
        },
    ),
    "leader epoch ends": (
        requests.leader_epoch_ends_call({ORDERS[0]: 7}),
        {
            "replicaId": -1,
            "topics": [
                {
                    "topic": "orders",
                    "partitions": [{"partition": 0, "currentLeaderEpoch": -1, "leaderEpoch": 7}],
                }
            ],
        },
    ),
    "log directories": (
        requests.describe_log_dirs_call(ORDERS, 4),
        {
            "topics": [
                {"topic": "orders", "partitions": [0, 2]},
                {"topic": "parcels", "partitions": [1]},
            ]
        },
    ),
    "partitions": (
        requests.describe_partitions_call(["orders", "parcels"], ORDERS[1], 5_000),
        {
            "topics": [{"name": "orders"}, {"name": "parcels"}],
            "responsePartitionLimit": 2_000,
            "cursor": {"topicName": "orders", "partitionIndex": 2},
        },
    ),
    "metadata": (
        requests.metadata_call(["orders"]),
        {"topics": [{"name": "orders"}], "allowAutoTopicCreation": False},
    ),
    "metadata of all": (
        requests.metadata_call(None),
        {"topics": None, "allowAutoTopicCreation": False},
    ),
    "configs": (
        requests.describe_configs_call(ResourceType.TOPIC, ["orders", "parcels"], ["a", "b"]),
        {
            "includeSynonyms": False,
            "resources": [
                {"resourceType": 2, "resourceName": name, "configurationKeys": ["a", "b"]}
                for name in ("orders", "parcels")
            ],
        },
    ),
    "topic names": (requests.list_topics_call(), {"resourceTypes": [2]}),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_jar_reads_a_request_as_it_was_meant(messages: Messages, name: str) -> None:
    call, expected = CALLS[name]
    assert call.version in messages.versions(call.key)
    assert messages.read(call) == expected


@pytest.mark.parametrize("name", CALLS)
def test_headers_are_of_the_version_that_goes_with_the_request(
    messages: Messages, name: str
) -> None:
    call, _ = CALLS[name]
    raw = EncodedRequest(call).build_request_header(correlation_id=7, client_id="me").encode()
    header, answer_version = messages.read_header(call, raw)
    assert header == {
        "requestApiKey": call.key,
        "requestApiVersion": call.version,
        "correlationId": 7,
        "clientId": "me",
    }
    assert call.has_answer_tags == (answer_version == 1)


def test_every_level_of_the_cluster_is_of_the_release_that_the_jar_says(jvm: Any) -> None:
    versions = jvm.org.apache.kafka.server.common.MetadataVersion
    newest = versions.LATEST_PRODUCTION.featureLevel()
    for version in versions.VERSIONS:
        level = version.featureLevel()
        major, minor = version.version().partition("-")[0].split(".")
        assert release(level) == ((int(major), int(minor)) if level <= newest else None)

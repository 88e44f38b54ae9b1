"""What agents/protocol.py and agents/offsets.py lean on inside aiokafka is still there.

An upgrade that moves any of it fails here, by name, before it fails against a cluster.
"""

from __future__ import annotations

import inspect
import struct
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.client import AIOKafkaClient
from aiokafka.errors import (
    ClusterAuthorizationFailedError,
    KafkaError,
    NotControllerError,
)
from aiokafka.protocol.admin import (
    AlterPartitionReassignmentsRequest,
    ListPartitionReassignmentsRequest,
)

from caughtup.agents.kafka_config import aiokafka_config
from caughtup.agents.protocol import DEBUGGING_REPLICA, LATEST, ClusterProtocol
from caughtup.agents.protocol import _raise_for as raise_for
from caughtup.agents.protocol import _ReplicaLogEnds as ReplicaLogEnds
from caughtup.agents.settings import Settings
from tests.support.wire import array, number, string, tagged_fields

NO_TAGS = tagged_fields({})
#: The versions that a broker of Kafka 4 offers of these requests: key → least, greatest.
KAFKA_4 = {2: (1, 11), 45: (0, 1), 46: (0, 0)}


def numbers(*values: int) -> bytes:
    return array((number("i", value) for value in values), flexible=True)


def parameters(function: Any) -> list[str]:
    return list(inspect.signature(function).parameters)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (AIOKafkaAdminClient._send_to_controller, ["self", "request"]),
        (AIOKafkaAdminClient._send_request_to_node, ["self", "node_id", "request"]),
        (ListPartitionReassignmentsRequest, ["timeout_ms", "topics", "tags"]),
        (AlterPartitionReassignmentsRequest, ["timeout_ms", "topics", "tags"]),
        (AIOKafkaClient.force_metadata_update, ["self"]),
    ],
)
def test_the_internals_that_are_called_take_what_they_are_given(
    function: Any, expected: list[str]
) -> None:
    assert parameters(function) == expected


def test_the_internals_that_are_called_are_awaited() -> None:
    assert inspect.iscoroutinefunction(AIOKafkaAdminClient._send_to_controller)
    assert inspect.iscoroutinefunction(AIOKafkaAdminClient._send_request_to_node)


async def test_a_consumer_has_its_client_where_the_reader_looks_for_it() -> None:
    consumer = AIOKafkaConsumer(**aiokafka_config(Settings()))
    assert isinstance(consumer._client, AIOKafkaClient)
    assert inspect.signature(consumer._client.force_metadata_update).parameters == {}
    await consumer.stop()


async def test_a_connection_takes_the_service_configuration() -> None:
    protocol = ClusterProtocol(aiokafka_config(Settings(bootstrap_servers="127.0.0.1:9")))
    assert isinstance(protocol._admin, AIOKafkaAdminClient)
    assert protocol._admin._client._request_timeout_ms == 10_000


def test_reassignments_are_listed_of_every_topic() -> None:
    request = ListPartitionReassignmentsRequest(7, None, {}).prepare(KAFKA_4)
    assert (request.API_KEY, request.API_VERSION, request.FLEXIBLE_VERSION) == (46, 0, True)
    assert request.encode() == number("i", 7) + b"\x00" + NO_TAGS


def test_a_listed_reassignment_has_its_fields_where_they_are_taken_from() -> None:
    request = ListPartitionReassignmentsRequest(7, None, {}).prepare(KAFKA_4)
    partition = number("i", 5) + numbers(3, 1, 2) + numbers(3) + numbers(2) + NO_TAGS
    topic = string("orders", True) + array([partition], True) + NO_TAGS
    raw = struct.pack(">ih", 0, 0) + string(None, True) + array([topic], True) + NO_TAGS
    response = request.RESPONSE_TYPE.decode(raw)
    assert (response.error_code, response.error_message) == (0, None)
    ((name, partitions, _),) = response.topics
    ((index, replicas, adding, removing, _),) = partitions
    assert (name, index) == ("orders", 5)
    assert (tuple(replicas), tuple(adding), tuple(removing)) == ((3, 1, 2), (3,), (2,))


def test_a_refused_list_has_its_error_where_it_is_taken_from() -> None:
    request = ListPartitionReassignmentsRequest(7, None, {}).prepare(KAFKA_4)
    raw = struct.pack(">ih", 0, 31) + string("no", True) + array([], True) + NO_TAGS
    response = request.RESPONSE_TYPE.decode(raw)
    with pytest.raises(ClusterAuthorizationFailedError, match="no"):
        raise_for(response.error_code, response.error_message)


def test_reassignments_are_started_and_cancelled_as_the_protocol_says() -> None:
    topics = [("orders", [(0, [3, 4], {}), (1, None, {})], {})]
    request = AlterPartitionReassignmentsRequest(7, topics, {}).prepare(KAFKA_4)
    assert (request.API_KEY, request.API_VERSION) == (45, 0)
    moved = number("i", 0) + numbers(3, 4) + NO_TAGS
    cancelled = number("i", 1) + b"\x00" + NO_TAGS
    topic = string("orders", True) + array([moved, cancelled], True) + NO_TAGS
    assert request.encode() == number("i", 7) + array([topic], True) + NO_TAGS


def test_the_answer_to_each_partition_has_its_error_where_it_is_taken_from() -> None:
    request = AlterPartitionReassignmentsRequest(7, [], {}).prepare(KAFKA_4)
    answer = struct.pack(">ih", 1, 41) + string(None, True) + NO_TAGS
    topic = string("orders", True) + array([answer], True) + NO_TAGS
    raw = struct.pack(">ih", 0, 0) + string(None, True) + array([topic], True) + NO_TAGS
    response = request.RESPONSE_TYPE.decode(raw)
    raise_for(response.error_code, response.error_message)
    ((_, ((index, code, message, _),), _),) = response.responses
    assert index == 1
    with pytest.raises(NotControllerError):
        raise_for(code, message)


def test_a_replicas_own_log_end_is_asked_for_with_the_debugging_replica_id() -> None:
    asked = ReplicaLogEnds([("orders", [(0, LATEST), (2, LATEST)])])
    request = asked.prepare(KAFKA_4)
    assert (request.API_KEY, request.API_VERSION, request.FLEXIBLE_VERSION) == (2, 1, False)
    partitions = array(struct.pack(">iq", partition, -1) for partition in (0, 2))
    assert request.encode() == number("i", -2) + array([string("orders") + partitions])
    assert (DEBUGGING_REPLICA, LATEST) == (-2, -1)


def test_a_replicas_log_end_has_its_fields_where_they_are_taken_from() -> None:
    request = ReplicaLogEnds([]).prepare(KAFKA_4)
    partitions = (struct.pack(">ihqq", 0, 0, -1, 9_000), struct.pack(">ihqq", 2, 6, -1, -1))
    raw = array([string("orders") + array(partitions)])
    ((topic, answers),) = request.RESPONSE_TYPE.decode(raw).topics
    found = {partition: offset for partition, code, _, offset in answers if code == 0}
    assert (topic, found) == ("orders", {0: 9_000})


@pytest.mark.parametrize("message", [None, "", "a broker's own words"])
def test_an_error_says_something_whatever_the_broker_said(message: str | None) -> None:
    raise_for(0, message)
    for code in (29, 31, 41, 85, 9_999):
        with pytest.raises(KafkaError) as failure:
            raise_for(code, message)
        assert str(failure.value).strip()

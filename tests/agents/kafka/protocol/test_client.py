"""What agents/kafka/protocol/connection.py leans on inside aiokafka is still there.

An upgrade that moves any of it fails here, by name, before it fails against a cluster.
"""

from __future__ import annotations

import asyncio
import inspect
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.conn import AIOKafkaConnection, CloseReason, collect_hosts
from aiokafka.errors import (
    ClusterAuthorizationFailedError,
    KafkaConnectionError,
    KafkaError,
    RequestTimedOutError,
    TopicAuthorizationFailedError,
    UnsupportedVersionError,
)
from aiokafka.protocol.admin import SaslAuthenticateResponse_v1

from caughtup.agents.kafka.config import aiokafka_config
from caughtup.agents.kafka.protocol.brokers import BrokerConnections
from caughtup.agents.kafka.protocol.cluster_answers import Broker
from caughtup.agents.kafka.protocol.connection import (
    BrokerConnection,
    EncodedRequest,
    bootstrap_addresses,
    raise_for,
)
from caughtup.agents.kafka.protocol.decoding import explain_failure
from caughtup.agents.kafka.protocol.requests import Call, Key
from caughtup.agents.settings import Settings

CALL = Call(Key.LIST_PARTITION_REASSIGNMENTS, 0, True, b"asked")


def parameters(function: Any) -> list[str]:
    return list(inspect.signature(function).parameters)


def test_the_internals_that_are_called_take_what_they_are_given() -> None:
    assert parameters(AIOKafkaConnection.send) == ["self", "request", "expect_response"]
    assert parameters(AIOKafkaConnection.close) == ["self", "reason", "exc"]
    assert parameters(AIOKafkaConnection.connected) == ["self"]
    assert parameters(collect_hosts) == ["hosts", "randomize"]
    assert inspect.iscoroutinefunction(AIOKafkaConnection.connect)
    assert "SaslAuthenticateRequest(" in inspect.getsource(AIOKafkaConnection._do_sasl_handshake)
    assert {"error_code", "sasl_auth_bytes", "session_lifetime_ms"} <= {
        *SaslAuthenticateResponse_v1.SCHEMA.names
    }
    assert CloseReason.SHUTDOWN


def test_a_connection_takes_all_that_the_settings_make_of_clients_properties() -> None:
    kafka = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "me",
        "sasl.password": "secret",
    }
    config = aiokafka_config(Settings(kafka=kafka))
    taken = parameters(AIOKafkaConnection)
    assert {*config} - {"bootstrap_servers"} <= {*taken}
    assert "request_timeout_ms" in taken
    assert parameters(AIOKafkaAdminClient)[0] == "loop"  # the public way takes the same ones


def test_bootstrap_servers_are_read_whatever_they_look_like() -> None:
    addresses = bootstrap_addresses("one:9092,[::1]:9093,two")
    assert sorted(addresses) == [("::1", 9093), ("one", 9092), ("two", 9092)]


def test_a_request_is_sent_as_it_is() -> None:
    request = EncodedRequest(CALL).prepare({46: (0, 0)})
    header = request.build_request_header(correlation_id=7, client_id="me")
    assert header.encode() == struct.pack(">hhih", 46, 0, 7, 2) + b"me\0"
    assert request.encode() == b"asked"
    classic = EncodedRequest(CALL._replace(flexible=False))
    header = classic.build_request_header(correlation_id=7, client_id="me")
    assert header.encode() == struct.pack(">hhih", 46, 0, 7, 2) + b"me"
    assert "5 bytes" in repr(request)


#: Reads a request's correlation id, and gives what is to be sent back, None for nothing.
Answering = Callable[[int], bytes | None]
Peer = Callable[[Answering], Awaitable[tuple[str, int]]]


def answered(correlation_id: int, body: bytes = b"told", tags: bytes = b"\0") -> bytes:
    raw = struct.pack(">i", correlation_id) + tags + body
    return struct.pack(">i", len(raw)) + raw


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    """Something that listens, and answers what greets a broker: with versions, and no features."""
    servers = []

    async def listen(answer: Answering) -> tuple[str, int]:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while not reader.at_eof():
                try:
                    (size,) = struct.unpack(">i", await reader.readexactly(4))
                    key, version, correlation_id = struct.unpack(
                        ">hhi", (await reader.readexactly(size))[:8]
                    )
                except asyncio.IncompleteReadError:
                    break
                if key == Key.API_VERSIONS:
                    old = struct.pack(">hihhh", 0, 1, 46, 0, 0)
                    new = struct.pack(">hBhhhBiB", 0, 2, 46, 0, 0, 0, 0, 0)
                    reply = answered(correlation_id, new if version == 3 else old, b"")
                else:
                    reply = answer(correlation_id)
                if reply is not None:
                    writer.write(reply)
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        servers.append(server)
        host, port = server.sockets[0].getsockname()
        return host, port

    yield listen
    for server in servers:
        server.close()


async def test_an_answer_comes_back_as_it_is_and_with_its_request(peer: Peer) -> None:
    address = await peer(lambda correlation_id: answered(correlation_id, b"%d" % correlation_id))
    connection = await BrokerConnection.open(*address, {"client_id": "me"}, 5.0)
    assert connection.is_open
    assert connection.offered.requests == {46: (0, 0)}
    first, second = await asyncio.gather(connection.ask(CALL), connection.ask(CALL))
    assert int(second) == int(first) + 1
    connection.close()
    assert not connection.is_open


async def test_a_request_that_is_not_offered_is_not_sent(peer: Peer) -> None:
    asked: list[int] = []

    def answer(correlation_id: int) -> bytes:
        asked.append(correlation_id)
        return answered(correlation_id)

    connection = await BrokerConnection.open(*await peer(answer), {}, 5.0)
    for call, said in (
        (CALL._replace(version=1), "ListPartitionReassignments 1: it offers 0 to 0"),
        (CALL._replace(key=Key.DESCRIBE_PRODUCERS), "DescribeProducers$"),
    ):
        with pytest.raises(UnsupportedVersionError, match=f"does not support {said}"):
            await connection.ask(call)
    assert asked == []
    assert await connection.ask(CALL) == b"told", "the connection is still open"
    connection.close()


async def test_a_broker_that_gives_no_answer_is_left_after_the_time_it_has(peer: Peer) -> None:
    connection = await BrokerConnection.open(*await peer(lambda _: None), {}, 2.0)
    with pytest.raises(RequestTimedOutError, match="no answer within 2 s"):
        await connection.ask(CALL)
    assert not connection.is_open
    with pytest.raises(KafkaConnectionError):
        await connection.ask(CALL)


async def test_an_answer_to_something_else_ends_the_connection(peer: Peer) -> None:
    address = await peer(lambda correlation_id: answered(correlation_id + 1))
    connection = await BrokerConnection.open(*address, {}, 5.0)
    with pytest.raises(KafkaError):
        await connection.ask(CALL)
    assert not connection.is_open


@pytest.mark.parametrize(
    ("host", "port"),
    [("127.0.0.1", 70_000), ("127.0.0.1", -1), ("x" * 300, 1), ("a..b", 1), ("a\0b", 1)],
)
async def test_where_a_broker_cannot_be_is_an_error_of_that_broker(host: str, port: int) -> None:
    with pytest.raises(KafkaConnectionError, match="is not an address"):
        await BrokerConnection.open(host, port, {}, 5.0)


async def test_a_silent_broker_is_not_asked_again_for_a_while_and_others_are(peer: Peer) -> None:
    now = 0.0
    connections = BrokerConnections({"bootstrap_servers": ""}, 2.0, clock=lambda: now)
    silent, fine = await peer(lambda _: None), await peer(answered)
    connections.learn([Broker(1, *silent), Broker(2, *fine)])
    with pytest.raises(RequestTimedOutError, match="no answer within"):
        await connections.ask(1, CALL)
    for pause in (5, 10):
        now += pause - 1
        with pytest.raises(RequestTimedOutError, match="caughtup asks it again later"):
            await connections.ask(1, CALL)
        assert await connections.ask(2, CALL) == b"told"
        now += 2
        with pytest.raises(RequestTimedOutError, match="no answer within"):
            await connections.ask(1, CALL)
    connections.learn([Broker(2, *fine)])
    with pytest.raises(KafkaConnectionError, match="not registered"):
        await connections.ask(1, CALL)
    assert (await connections.ask_any(CALL)) == (CALL, b"told")
    connections.close()


async def test_what_any_broker_can_answer_goes_first_to_the_one_that_did_last(peer: Peer) -> None:
    connections = BrokerConnections({"bootstrap_servers": ""}, 2.0)

    def one(correlation_id: int) -> bytes | None:
        return answered(correlation_id, b"one") if one_answers else None

    one_answers = True
    addresses = [await peer(one), await peer(lambda c: answered(c, b"two"))]
    connections.learn(Broker(i, *address) for i, address in enumerate(addresses, 1))
    assert (await connections.ask_any(CALL))[1] == b"one"
    one_answers = False
    assert (await connections.ask_any(CALL))[1] == b"two"
    one_answers = True
    assert (await connections.ask_any(CALL))[1] == b"two"
    connections.learn([Broker(1, *addresses[0]), Broker(2, *addresses[1], fenced=True)])
    assert (await connections.ask_any(CALL))[1] == b"two"  # the first is silent
    assert connections.requests == 5
    assert connections.most_in_flight == 1
    connections.close()


@pytest.mark.parametrize("message", [None, "", "a broker's own words"])
def test_an_error_says_something_whatever_the_broker_said(message: str | None) -> None:
    raise_for(0, message)
    for code in (29, 31, 41, 85, 9_999):
        with pytest.raises(KafkaError) as failure:
            raise_for(code, message)
        assert explain_failure(failure.value).strip()


def test_a_refusal_is_told_by_what_is_missing() -> None:
    assert (
        explain_failure(ClusterAuthorizationFailedError("x")) == "missing: DESCRIBE on the cluster"
    )
    assert (
        explain_failure(TopicAuthorizationFailedError(), "ALTER") == "missing: ALTER on the topic"
    )
    assert explain_failure(KafkaConnectionError("Connection refused")) == "Connection refused"

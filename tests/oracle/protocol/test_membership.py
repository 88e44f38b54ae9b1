"""A member's requests as the published jar reads them, and the answers as it writes them."""

from __future__ import annotations

import base64
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caughtup.agents.kafka.protocol import membership
from caughtup.agents.kafka.protocol.membership import JoinGroupAnswer, JoinGroupSettings
from caughtup.models.errors import DecodeError
from tests.models.wire.strategies import thorough
from tests.oracle.protocol.messages import Messages

JOIN = membership.join_group_call(
    JoinGroupSettings("orders", "caughtup", ("active",), 6_000, 10_000), "me-1", b"said"
)
SYNC = membership.sync_group_call("orders", 7, "me-1", {"me-1": b"a", "you-2": b""})
HEARTBEAT = membership.heartbeat_call("orders", 7, "me-1")
LEAVE = membership.leave_group_call("orders", ["me-1", "you-2"])
IDENTITY = {
    "groupId": "orders",
    "generationId": 7,
    "memberId": "me-1",
    "groupInstanceId": None,
}
CALLS = {
    "join": (
        JOIN,
        {
            "groupId": "orders",
            "sessionTimeoutMs": 6_000,
            "rebalanceTimeoutMs": 10_000,
            "memberId": "me-1",
            "groupInstanceId": None,
            "protocolType": "caughtup",
            "protocols": [{"name": "active", "metadata": base64.b64encode(b"said").decode()}],
        },
    ),
    "sync": (
        SYNC,
        {
            **IDENTITY,
            "assignments": [
                {"memberId": "me-1", "assignment": base64.b64encode(b"a").decode()},
                {"memberId": "you-2", "assignment": ""},
            ],
        },
    ),
    "heartbeat": (HEARTBEAT, IDENTITY),
    "leave": (
        LEAVE,
        {
            "groupId": "orders",
            "members": [
                {"memberId": member, "groupInstanceId": None} for member in ("me-1", "you-2")
            ],
        },
    ),
}
CODES = st.integers(-(2**15), 2**15 - 1)
TEXTS = st.text(max_size=20)
BYTES = st.binary(max_size=20)


@pytest.mark.parametrize("name", CALLS)
def test_the_jar_reads_a_request_as_it_was_meant(messages: Messages, name: str) -> None:
    call, expected = CALLS[name]
    assert call.version in messages.versions(call.key)
    assert messages.read(call) == expected


@thorough
@given(
    code=CODES,
    generation=st.integers(-1, 2**31 - 1),
    texts=st.tuples(TEXTS, TEXTS, TEXTS),
    members=st.dictionaries(TEXTS, BYTES, max_size=3),
)
def test_joined(
    messages: Messages,
    code: int,
    generation: int,
    texts: tuple[str, str, str],
    members: dict[str, bytes],
) -> None:
    protocol, leader, member_id = texts
    answer = {
        "throttleTimeMs": 0,
        "errorCode": code,
        "generationId": generation,
        "protocolName": protocol,
        "leader": leader,
        "memberId": member_id,
        "members": [
            {
                "memberId": member,
                "groupInstanceId": None,
                "metadata": base64.b64encode(said).decode(),
            }
            for member, said in members.items()
        ],
    }
    found = membership.decode_join_group(messages.write(JOIN, answer))
    assert found == JoinGroupAnswer(code, generation, leader, member_id, members, protocol)


@thorough
@given(code=CODES, given_=BYTES)
def test_synced_heard_and_left(messages: Messages, code: int, given_: bytes) -> None:
    answered = {"throttleTimeMs": 0, "errorCode": code}
    assignment = {"assignment": base64.b64encode(given_).decode()}
    assert membership.decode_sync_group(messages.write(SYNC, answered | assignment)) == (
        code,
        given_,
    )
    assert membership.decode_heartbeat(messages.write(HEARTBEAT, answered)) == code
    members = [{"memberId": "me-1", "groupInstanceId": None, "errorCode": 25}]
    left = messages.write(LEAVE, {**answered, "members": members})
    assert membership.decode_leave_group(left) == code


@pytest.mark.parametrize(
    "decode",
    [
        membership.decode_join_group,
        membership.decode_sync_group,
        membership.decode_heartbeat,
        membership.decode_leave_group,
    ],
)
@thorough
@given(raw=st.binary(max_size=60))
def test_what_is_no_answer_is_refused(decode: Callable[[bytes], object], raw: bytes) -> None:
    with suppress(DecodeError):
        decode(raw)

"""What brokers tell of groups, as the published jar writes it; and bytes nobody wrote."""

from __future__ import annotations

import base64
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caughtup.agents.kafka.protocol import requests
from caughtup.agents.kafka.protocol.described.assignors import (
    decode_consumer_group,
    decode_streams_group,
)
from caughtup.agents.kafka.protocol.described.calls import describe_groups_call
from caughtup.agents.kafka.protocol.groups import (
    Coordinator,
    DescribedGroup,
    DescribedMember,
    decode_coordinator,
    decode_described_group,
)
from caughtup.agents.kafka.protocol.requests import Key
from caughtup.models.errors import DecodeError
from tests.models.wire.strategies import thorough
from tests.oracle.protocol.messages import Messages

INT16 = st.integers(-(2**15), 2**15 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
TEXTS = st.text(max_size=20)
BYTES = st.binary(max_size=20).map(lambda raw: base64.b64encode(raw).decode())


@thorough
@given(code=INT16, message=st.none() | TEXTS, broker=INT32, host=TEXTS)
def test_who_coordinates_a_group(
    messages: Messages, code: int, message: str | None, broker: int, host: str
) -> None:
    answer = {
        "throttleTimeMs": 0,
        "errorCode": code,
        "errorMessage": message,
        "nodeId": broker,
        "host": host,
        "port": 9092,
    }
    raw = messages.write(requests.find_coordinator_call("orders"), answer)
    assert decode_coordinator(raw) == Coordinator(code, message, broker)


@thorough
@given(
    code=INT16,
    texts=st.tuples(TEXTS, TEXTS, TEXTS, TEXTS),
    members=st.lists(st.tuples(TEXTS, TEXTS, TEXTS, BYTES, BYTES), max_size=3),
    operations=INT32,
)
def test_who_is_in_a_group_and_what_we_may_do_with_it(
    messages: Messages,
    code: int,
    texts: tuple[str, ...],
    members: list[tuple[str, ...]],
    operations: int,
) -> None:
    of_group = ("groupId", "groupState", "protocolType", "protocolData")
    of_member = ("memberId", "clientId", "clientHost", "memberMetadata", "memberAssignment")
    group = {
        "errorCode": code,
        **dict(zip(of_group, texts, strict=True)),
        "members": [dict(zip(of_member, one, strict=True)) for one in members],
        "authorizedOperations": operations,
    }
    raw = messages.write(
        requests.describe_group_call("orders"), {"throttleTimeMs": 0, "groups": [group]}
    )
    expected = tuple(
        DescribedMember(member_id, base64.b64decode(said), base64.b64decode(given))
        for member_id, _, _, said, given in members
    )
    assert decode_described_group(raw) == DescribedGroup(
        code, texts[2], expected, operations, texts[3]
    )


@thorough
@given(code=INT16, message=st.none() | TEXTS, texts=st.tuples(TEXTS, TEXTS, TEXTS))
def test_by_which_assignor_a_coordinator_assigns_next(
    messages: Messages, code: int, message: str | None, texts: tuple[str, ...]
) -> None:
    nothing = {"topicPartitions": []}
    member = {
        **dict.fromkeys(("memberId", "clientId", "clientHost"), "m"),
        **dict.fromkeys(("instanceId", "rackId", "subscribedTopicRegex")),
        "memberEpoch": 3,
        "subscribedTopicNames": ["orders"],
        "assignment": nothing,
        "targetAssignment": nothing,
    }
    group = {
        "errorCode": code,
        "errorMessage": message,
        **dict(zip(("groupId", "groupState", "assignorName"), texts, strict=True)),
        "groupEpoch": 3,
        "assignmentEpoch": 3,
        "members": [member],
        "authorizedOperations": 0,
    }
    raw = messages.write(
        describe_groups_call(["orders"], Key.CONSUMER_GROUP_DESCRIBE, 0),
        {"throttleTimeMs": 0, "groups": [group]},
    )
    assert decode_consumer_group(raw) == (code, texts[2])


@pytest.mark.parametrize(
    "decode",
    [
        decode_coordinator,
        decode_described_group,
        decode_consumer_group,
        decode_streams_group,
    ],
)
@thorough
@given(raw=st.binary(max_size=60))
def test_what_is_no_answer_is_refused(decode: Callable[[bytes], object], raw: bytes) -> None:
    with suppress(DecodeError):
        decode(raw)

"""What brokers answer about classic and KIP-848 groups, as the published jar writes it; and bytes nobody wrote."""

from __future__ import annotations

import base64
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caughtup.agents.kafka.protocol.described import calls
from caughtup.agents.kafka.protocol.described.groups import (
    GroupRecords,
    decode_described_groups,
)
from caughtup.agents.kafka.protocol.described.listed_groups import (
    ListedGroup,
    decode_listed_groups,
)
from caughtup.agents.kafka.protocol.requests import Key
from caughtup.models.errors import DecodeError
from caughtup.models.wire.consumer_group_records import (
    ClassicMemberMetadata,
    ConsumerGroupCurrentMemberAssignment,
    ConsumerGroupMemberMetadata,
    ConsumerGroupMetadata,
    ConsumerGroupTargetAssignmentMember,
    ConsumerGroupTargetAssignmentMetadata,
    TopicPartitions,
)
from caughtup.models.wire.consumer_offsets import GroupKey
from caughtup.models.wire.group_metadata import GroupMember, GroupMetadata
from caughtup.models.wire.record_keys import (
    ConsumerGroupKey,
    ConsumerGroupMemberKey,
    RecordType,
)
from tests.models.wire.strategies import thorough
from tests.oracle.protocol.drawn_groups import (
    BYTES,
    EPOCHS,
    IN_KAFKAS_WRITING,
    INT16,
    NUMBERS,
    TEXTS,
    TOPIC_ID,
)
from tests.oracle.protocol.messages import Messages


def in_base64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


@thorough
@given(
    code=INT16,
    version=st.sampled_from([4, 5]),
    groups=st.lists(st.tuples(TEXTS, TEXTS, TEXTS), max_size=4),
)
def test_the_groups_of_a_broker(
    messages: Messages, code: int, version: int, groups: list[tuple[str, str, str]]
) -> None:
    types = {"groupType": "Streams"} if version >= 5 else {}
    listed = [
        {"groupId": group, "protocolType": kind, "groupState": state, **types}
        for group, kind, state in groups
    ]
    answer = {"throttleTimeMs": 0, "errorCode": code, "groups": listed}
    raw = messages.write(calls.list_groups_call(version), answer)
    group_type = "streams" if version >= 5 else "classic"
    expected = [ListedGroup(group, group_type, kind, state) for group, kind, state in groups]
    assert decode_listed_groups(raw, version) == (code, expected)


@thorough
@given(
    state=st.sampled_from(["Stable", "Empty", "Dead", "PreparingRebalance", "CompletingRebalance"]),
    code=st.just(0) | INT16,
    texts=st.tuples(TEXTS, TEXTS, TEXTS),
    members=st.lists(st.tuples(TEXTS, st.none() | TEXTS, TEXTS, BYTES, BYTES), max_size=3),
)
def test_a_classic_group(
    messages: Messages,
    state: str,
    code: int,
    texts: tuple[str, str, str],
    members: list[tuple[str, str | None, str, bytes, bytes]],
) -> None:
    name, kind, protocol = texts
    group = {
        "errorCode": code,
        "groupId": name,
        "groupState": state,
        "protocolType": kind,
        "protocolData": protocol,
        "members": [
            {
                "memberId": member,
                "groupInstanceId": instance,
                "clientId": client,
                "clientHost": "/127.0.0.1",
                "memberMetadata": in_base64(said),
                "memberAssignment": in_base64(given),
            }
            for member, instance, client, said, given in members
        ],
        "authorizedOperations": 0,
    }
    call = calls.describe_groups_call([name], Key.DESCRIBE_GROUPS, 5)
    raw = messages.write(call, {"throttleTimeMs": 7, "groups": [group, group]})
    there = GroupMetadata(
        kind,
        -1,
        protocol or None,
        None,
        -1,
        tuple(
            GroupMember(member, instance, client, "/127.0.0.1", -1, -1, said, given)
            for member, instance, client, said, given in members
        ),
    )
    records: dict[Any, Any] | None = {GroupKey(name): there}
    if code or state == "Dead":
        records = {}
    elif state.endswith("Rebalance"):
        records = None
    assert (
        decode_described_groups(raw, Key.DESCRIBE_GROUPS, 5)
        == [GroupRecords(name, code, records)] * 2
    )


@thorough
@given(
    version=st.sampled_from([0, 1]),
    epochs=st.tuples(EPOCHS, EPOCHS, EPOCHS),
    texts=st.tuples(TEXTS, TEXTS, TEXTS, TEXTS),
    has=NUMBERS,
    target=NUMBERS,
    member_type=st.sampled_from([-1, 0, 1]),
)
def test_a_consumer_group(
    messages: Messages,
    version: int,
    epochs: tuple[int, int, int],
    texts: tuple[str, str, str, str],
    has: list[int],
    target: list[int],
    member_type: int,
) -> None:
    name, member_id, client, assignor = texts

    def assignment(numbers: list[int]) -> dict[str, Any]:
        one = {"topicId": IN_KAFKAS_WRITING, "topicName": "orders", "partitions": numbers}
        return {"topicPartitions": [one] if numbers else []}

    member = {
        "memberId": member_id,
        "instanceId": None,
        "rackId": "a",
        "memberEpoch": epochs[2],
        "clientId": client,
        "clientHost": "/127.0.0.1",
        "subscribedTopicNames": ["orders"],
        "subscribedTopicRegex": "",
        "assignment": assignment(has),
        "targetAssignment": assignment(target),
        **({"memberType": member_type} if version else {}),
    }
    group = {
        "errorCode": 0,
        "errorMessage": None,
        "groupId": name,
        "groupState": "Stable",
        "groupEpoch": epochs[0],
        "assignmentEpoch": epochs[1],
        "assignorName": assignor,
        "members": [member],
        "authorizedOperations": 0,
    }
    key = Key.CONSUMER_GROUP_DESCRIBE
    call = calls.describe_groups_call([name], key, version)
    raw = messages.write(call, {"throttleTimeMs": 0, "groups": [group]})

    def partitions(numbers: list[int]) -> tuple[TopicPartitions, ...]:
        return (TopicPartitions(TOPIC_ID.bytes, tuple(sorted(numbers))),) if numbers else ()

    def of_member(record_type: RecordType) -> ConsumerGroupMemberKey:
        return ConsumerGroupMemberKey(record_type, name, member_id)

    is_stable = sorted(has) == sorted(target)
    is_classic = version == 1 and member_type == 0
    (found,) = decode_described_groups(raw, key, version)
    assert found == GroupRecords(
        name,
        0,
        {
            ConsumerGroupKey(RecordType.CONSUMER_GROUP_METADATA, name): ConsumerGroupMetadata(
                epochs[0], 0
            ),
            ConsumerGroupKey(
                RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA, name
            ): ConsumerGroupTargetAssignmentMetadata(epochs[1], 0),
            of_member(RecordType.CONSUMER_GROUP_MEMBER_METADATA): ConsumerGroupMemberMetadata(
                None,
                "a",
                client,
                "/127.0.0.1",
                ("orders",),
                None,
                -1,
                assignor or None,
                ClassicMemberMetadata(-1, {}) if is_classic else None,
            ),
            of_member(
                RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER
            ): ConsumerGroupTargetAssignmentMember(partitions(target)),
            of_member(
                RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT
            ): ConsumerGroupCurrentMemberAssignment(
                epochs[2], epochs[2], 0 if is_stable else 127, partitions(has), ()
            ),
        },
    )


@pytest.mark.parametrize(
    "decode",
    [
        *(partial(decode_listed_groups, version=version) for version in (4, 5)),
        partial(decode_described_groups, key=Key.DESCRIBE_GROUPS, version=5),
        partial(decode_described_groups, key=Key.CONSUMER_GROUP_DESCRIBE, version=1),
    ],
)
@thorough
@given(raw=st.binary(max_size=80))
def test_what_is_no_answer_is_refused(decode: Callable[[bytes], object], raw: bytes) -> None:
    with suppress(DecodeError):
        decode(raw)

"""What coordinators answer about many groups, as the published jar writes it; and bytes nobody wrote."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caughtup.agents.kafka.protocol.described import calls
from caughtup.agents.kafka.protocol.described.committed_offsets import decode_committed_offsets
from caughtup.agents.kafka.protocol.described.groups import (
    GroupRecords,
    decode_described_groups,
)
from caughtup.agents.kafka.protocol.described.listed_groups import (
    ListedGroup,
    decode_listed_groups,
)
from caughtup.agents.kafka.protocol.described.share_groups import (
    decode_share_offsets,
    share_offsets_call,
)
from caughtup.agents.kafka.protocol.requests import Key
from caughtup.models.errors import DecodeError
from caughtup.models.ids import NUMBER_MAX, TopicPartition
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
    ShareGroupKey,
    StreamsGroupKey,
    StreamsGroupMemberKey,
)
from caughtup.models.wire.share_groups import ShareGroup, ShareGroupMember
from caughtup.models.wire.streams_group_assignments import (
    StreamsGroupCurrentMemberAssignment,
    StreamsGroupTargetAssignmentMember,
    TaskIds,
)
from caughtup.models.wire.streams_group_records import StreamsGroupMemberMetadata
from caughtup.models.wire.streams_group_topology import (
    StreamsGroupTopology,
    Subtopology,
    TopicInfo,
)
from tests.models.wire.strategies import thorough
from tests.oracle.protocol.messages import Messages

INT16 = st.integers(-(2**15), 2**15 - 1)
TEXTS = st.text(max_size=20)
BYTES = st.binary(max_size=20)
EPOCHS = st.integers(-2, 2**31 - 1)
NUMBERS = st.lists(st.integers(0, NUMBER_MAX), max_size=4, unique=True)
OFFSETS = st.integers(0, 2**62)
TOPIC_ID = uuid.UUID("01234567-89ab-cdef-0123-456789abcdef")
IN_KAFKAS_WRITING = base64.urlsafe_b64encode(TOPIC_ID.bytes).decode().rstrip("=")


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


@thorough
@given(
    epochs=st.tuples(EPOCHS, EPOCHS, EPOCHS, EPOCHS),
    has=NUMBERS,
    target=NUMBERS,
    with_topology=st.booleans(),
)
def test_a_streams_group(
    messages: Messages,
    epochs: tuple[int, int, int, int],
    has: list[int],
    target: list[int],
    with_topology: bool,
) -> None:
    def assignment(numbers: list[int]) -> dict[str, Any]:
        return {
            "activeTasks": [{"subtopologyId": "0", "partitions": numbers}],
            "standbyTasks": [],
            "warmupTasks": [],
        }

    def topic(name: str) -> dict[str, Any]:
        return {
            "name": name,
            "partitions": 3,
            "replicationFactor": 1,
            "topicConfigs": [{"key": "cleanup.policy", "value": "compact"}],
        }

    topology = {
        "epoch": epochs[3],
        "subtopologies": [
            {
                "subtopologyId": "0",
                "sourceTopics": ["orders"],
                "repartitionSinkTopics": ["sink"],
                "stateChangelogTopics": [topic("a-changelog")],
                "repartitionSourceTopics": [topic("a-repartition")],
            }
        ],
    }
    member = {
        "memberId": "m",
        "memberEpoch": epochs[2],
        "instanceId": None,
        "rackId": None,
        "clientId": "c",
        "clientHost": "/127.0.0.1",
        "topologyEpoch": 0,
        "processId": "p",
        "userEndpoint": None,
        "clientTags": [{"key": "zone", "value": "a"}],
        "taskOffsets": [{"subtopologyId": "0", "partition": 1, "offset": 7}],
        "taskEndOffsets": [],
        "assignment": assignment(has),
        "targetAssignment": assignment(target),
        "isClassic": False,
    }
    group = {
        "errorCode": 0,
        "errorMessage": None,
        "groupId": "app",
        "groupState": "Stable",
        "groupEpoch": epochs[0],
        "assignmentEpoch": epochs[1],
        "topology": topology if with_topology else None,
        "members": [member],
        "authorizedOperations": 0,
    }
    key = Key.STREAMS_GROUP_DESCRIBE
    call = calls.describe_groups_call(["app"], key, 0)
    raw = messages.write(call, {"throttleTimeMs": 0, "groups": [group]})
    (found,) = decode_described_groups(raw, key, 0)
    records = dict(found.records or {})

    def info(name: str) -> TopicInfo:
        return TopicInfo(name, 3, 1, {"cleanup.policy": "compact"})

    subtopology = Subtopology(
        "0", ("orders",), (), (info("a-changelog"),), ("sink",), (info("a-repartition"),), ()
    )
    assert records.get(StreamsGroupKey(RecordType.STREAMS_GROUP_TOPOLOGY, "app")) == (
        StreamsGroupTopology(epochs[3], (subtopology,)) if with_topology else None
    )

    def of_member(record_type: RecordType) -> Any:
        return records[StreamsGroupMemberKey(record_type, "app", "m")]

    def tasks(numbers: list[int]) -> tuple[TaskIds, ...]:
        return (TaskIds("0", tuple(sorted(numbers))),)

    assert of_member(RecordType.STREAMS_GROUP_MEMBER_METADATA) == StreamsGroupMemberMetadata(
        None, None, "c", "/127.0.0.1", -1, 0, "p", None, {"zone": "a"}
    )
    assert of_member(
        RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER
    ) == StreamsGroupTargetAssignmentMember(tasks(target), (), ())
    assert of_member(
        RecordType.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT
    ) == StreamsGroupCurrentMemberAssignment(
        epochs[2],
        epochs[2],
        1 if sorted(has) == sorted(target) else 127,
        tasks(has),
        *((),) * 5,
    )


PARTITIONS = st.dictionaries(
    st.integers(0, 1_000),
    st.tuples(st.just(-1) | OFFSETS, st.none() | st.text(max_size=200), st.just(0) | INT16),
    max_size=6,
)


@thorough
@given(
    version=st.sampled_from([5, 8]),
    topics=st.dictionaries(TEXTS, PARTITIONS, max_size=3),
    same=st.none() | st.text(max_size=200),
    code=INT16,
)
def test_committed_offsets(
    messages: Messages,
    version: int,
    topics: dict[str, dict[int, tuple[int, str | None, int]]],
    same: str | None,
    code: int,
) -> None:
    def written(metadata: str | None) -> str | None:
        return metadata if same is None else same  # of one length, as a program's commits are

    listed = [
        {
            "name": name,
            "partitions": [
                {
                    "partitionIndex": number,
                    "committedOffset": offset,
                    "committedLeaderEpoch": -1,
                    "metadata": written(metadata),
                    "errorCode": error,
                }
                for number, (offset, metadata, error) in partitions.items()
            ],
        }
        for name, partitions in topics.items()
    ]
    answer: dict[str, Any] = {"topics": listed, "errorCode": code}
    if version >= 8:
        answer = {"groups": [{"groupId": "orders", **answer}, {"groupId": "b", **answer}]}
    raw = messages.write(
        calls.offset_fetch_call(["orders"], version), {"throttleTimeMs": 3, **answer}
    )
    found = decode_committed_offsets(raw, version)
    assert [one.group for one in found] == (["orders", "b"] if version >= 8 else [""])
    expected = {
        name: {number: one[0] for number, one in sorted(partitions.items()) if one[::2][1] == 0}
        for name, partitions in sorted(topics.items())
    }
    for one in found:
        assert one.error_code == code
        assert [topic for topic, _, _ in one.topics] == list(expected)
        for topic, numbers, offsets in one.topics:
            assert list(zip(numbers.tolist(), offsets.tolist(), strict=True)) == [
                (number, offset) for number, offset in expected[topic].items() if offset != -1
            ]
        errors = sum(error != 0 for of in topics.values() for _, _, error in of.values())
        assert one.refused == errors


@thorough
@given(
    code=st.just(0) | INT16,
    epochs=st.tuples(EPOCHS, EPOCHS, EPOCHS),
    has=st.lists(NUMBERS, max_size=3),
)
def test_a_share_group(
    messages: Messages, code: int, epochs: tuple[int, int, int], has: list[list[int]]
) -> None:
    members = [
        {
            "memberId": f"m{number}",
            "rackId": None,
            "memberEpoch": epochs[2],
            "clientId": "c",
            "clientHost": "/127.0.0.1",
            "subscribedTopicNames": ["orders"],
            "assignment": {
                "topicPartitions": [
                    {"topicId": IN_KAFKAS_WRITING, "topicName": "orders", "partitions": numbers}
                ]
            },
        }
        for number, numbers in enumerate(has)
    ]
    group = {
        "errorCode": code,
        "errorMessage": "why",
        "groupId": "share",
        "groupState": "Stable",
        "groupEpoch": epochs[0],
        "assignmentEpoch": epochs[1],
        "assignorName": "simple",
        "members": members,
        "authorizedOperations": 0,
    }
    key = Key.SHARE_GROUP_DESCRIBE
    call = calls.describe_groups_call(["share"], key, 1)
    raw = messages.write(call, {"throttleTimeMs": 0, "groups": [group]})
    (found,) = decode_described_groups(raw, key, 1)
    expected = ShareGroup(
        epochs[0],
        epochs[1],
        "simple",
        tuple(
            ShareGroupMember(
                f"m{number}",
                "c",
                "/127.0.0.1",
                epochs[2],
                ("orders",),
                tuple(TopicPartition("orders", one) for one in sorted(numbers)),
            )
            for number, numbers in enumerate(has)
        ),
    )
    records = {ShareGroupKey(RecordType.SHARE_GROUP_METADATA, "share"): expected}
    assert found == GroupRecords("share", code, {} if code else records)


@thorough
@given(
    version=st.sampled_from([0, 1]),
    code=INT16,
    rows=st.dictionaries(
        st.integers(0, NUMBER_MAX),
        st.tuples(st.integers(-1, 2**62), st.integers(-1, 2**62), st.just(0) | INT16),
        max_size=5,
    ),
)
def test_how_far_a_share_group_is(
    messages: Messages, version: int, code: int, rows: dict[int, tuple[int, int, int]]
) -> None:
    partitions = [
        {
            "partitionIndex": number,
            "startOffset": start,
            "leaderEpoch": 3,
            "errorCode": error,
            "errorMessage": None,
            **({"lag": lag} if version else {}),
        }
        for number, (start, lag, error) in rows.items()
    ]
    topic = {"topicName": "orders", "topicId": IN_KAFKAS_WRITING, "partitions": partitions}
    group = {"groupId": "share", "topics": [topic], "errorCode": code, "errorMessage": None}
    raw = messages.write(
        share_offsets_call(["share"], version), {"throttleTimeMs": 0, "groups": [group]}
    )
    (found,) = decode_share_offsets(raw, version)
    assert (found.group, found.error_code) == ("share", code)
    (of_topic,) = found.topics
    assert of_topic.topic == "orders"
    assert list(zip(*(column.tolist() for column in of_topic[1:]), strict=True)) == [
        (number, start, lag if version else -1)
        for number, (start, lag, error) in sorted(rows.items())
        if not error
    ]


@pytest.mark.parametrize(
    "decode",
    [
        *(partial(decode_listed_groups, version=version) for version in (4, 5)),
        partial(decode_described_groups, key=Key.DESCRIBE_GROUPS, version=5),
        partial(decode_described_groups, key=Key.CONSUMER_GROUP_DESCRIBE, version=1),
        partial(decode_described_groups, key=Key.STREAMS_GROUP_DESCRIBE, version=0),
        partial(decode_described_groups, key=Key.SHARE_GROUP_DESCRIBE, version=1),
        *(partial(decode_share_offsets, version=version) for version in (0, 1)),
        *(partial(decode_committed_offsets, version=version) for version in (5, 8)),
    ],
)
@thorough
@given(raw=st.binary(max_size=80))
def test_what_is_no_answer_is_refused(decode: Callable[[bytes], object], raw: bytes) -> None:
    with suppress(DecodeError):
        decode(raw)

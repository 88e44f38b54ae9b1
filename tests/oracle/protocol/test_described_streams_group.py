"""What coordinators answer about streams groups (KIP-1071), as the published jar writes it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caughtup.agents.kafka.protocol.described import calls
from caughtup.agents.kafka.protocol.described.groups import (
    decode_described_groups,
)
from caughtup.agents.kafka.protocol.requests import Key
from caughtup.models.errors import DecodeError
from caughtup.models.wire.record_keys import (
    RecordType,
    StreamsGroupKey,
    StreamsGroupMemberKey,
)
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
from tests.oracle.protocol.drawn_groups import EPOCHS, NUMBERS
from tests.oracle.protocol.messages import Messages


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


@pytest.mark.parametrize(
    "decode",
    [
        partial(decode_described_groups, key=Key.STREAMS_GROUP_DESCRIBE, version=0),
    ],
)
@thorough
@given(raw=st.binary(max_size=80))
def test_what_is_no_answer_is_refused(decode: Callable[[bytes], object], raw: bytes) -> None:
    with suppress(DecodeError):
        decode(raw)

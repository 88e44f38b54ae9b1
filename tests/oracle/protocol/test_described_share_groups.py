"""What coordinators answer about share groups (KIP-932), as the published jar writes it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caughtup.agents.kafka.protocol.described import calls
from caughtup.agents.kafka.protocol.described.groups import (
    GroupRecords,
    decode_described_groups,
)
from caughtup.agents.kafka.protocol.described.share_groups import (
    decode_share_offsets,
    share_offsets_call,
)
from caughtup.agents.kafka.protocol.requests import Key
from caughtup.models.errors import DecodeError
from caughtup.models.ids import NUMBER_MAX, TopicPartition
from caughtup.models.wire.record_keys import (
    RecordType,
    ShareGroupKey,
)
from caughtup.models.wire.share_groups import ShareGroup, ShareGroupMember
from tests.models.wire.strategies import thorough
from tests.oracle.protocol.drawn_groups import EPOCHS, IN_KAFKAS_WRITING, INT16, NUMBERS
from tests.oracle.protocol.messages import Messages


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
        partial(decode_described_groups, key=Key.SHARE_GROUP_DESCRIBE, version=1),
        *(partial(decode_share_offsets, version=version) for version in (0, 1)),
    ],
)
@thorough
@given(raw=st.binary(max_size=80))
def test_what_is_no_answer_is_refused(decode: Callable[[bytes], object], raw: bytes) -> None:
    with suppress(DecodeError):
        decode(raw)

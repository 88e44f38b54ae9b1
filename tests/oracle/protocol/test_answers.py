"""Answers that the published jar writes, read here; and bytes that nobody wrote."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from caughtup.agents.kafka.protocol import answers, requests
from caughtup.agents.kafka.protocol.answers import (
    LogDirectories,
    LogDirectory,
    OngoingReassignments,
    ResourceConfigs,
)
from caughtup.agents.kafka.protocol.requests import ResourceType
from caughtup.models.ids import TopicPartition
from tests.models.wire.strategies import thorough
from tests.oracle.protocol.drawn import BROKERS, ERRORS, INT64, PARTITIONS
from tests.oracle.protocol.messages import Messages


def by_topic(entries: dict[TopicPartition, Any]) -> dict[str, dict[int, Any]]:
    topics: dict[str, dict[int, Any]] = {}
    for (topic, partition), entry in entries.items():
        topics.setdefault(topic, {})[partition] = entry
    return topics


@thorough
@given(
    listed=st.dictionaries(PARTITIONS, st.tuples(BROKERS, BROKERS, BROKERS), max_size=5),
    message=st.none() | st.text(max_size=200),
)
def test_listed_reassignments(
    messages: Messages, listed: dict[TopicPartition, Any], message: str | None
) -> None:
    answer = {
        "throttleTimeMs": 0,
        "errorCode": 31,
        "errorMessage": message,
        "topics": [
            {
                "name": topic,
                "partitions": [
                    {
                        "partitionIndex": partition,
                        "replicas": replicas,
                        "addingReplicas": adding,
                        "removingReplicas": removing,
                    }
                    for partition, (replicas, adding, removing) in entries.items()
                ],
            }
            for topic, entries in by_topic(listed).items()
        ],
    }
    raw = messages.write(requests.list_reassignments_call(7), answer)
    assert answers.decode_reassignments(raw) == OngoingReassignments(31, message, listed)


def test_reassignments_that_were_asked_for(messages: Messages) -> None:
    results = [(0, None), (39, "no such broker"), (85, None)]
    answer = {
        "throttleTimeMs": 0,
        "allowReplicationFactorChange": True,
        "errorCode": 0,
        "errorMessage": None,
        "responses": [
            {
                "name": name,
                "partitions": [{"partitionIndex": 4, "errorCode": code, "errorMessage": message}],
            }
            for name, (code, message) in zip("abc", results, strict=True)
        ],
    }
    raw = messages.write(requests.alter_reassignments_call(7, {}), answer)
    assert answers.decode_alter_reassignments(raw) == [(0, None), *results]


@thorough
@given(
    ends=st.dictionaries(PARTITIONS, INT64, max_size=4),
    errors=st.dictionaries(PARTITIONS, ERRORS, max_size=4),
    version=st.sampled_from(requests.LIST_OFFSETS_VERSIONS),
)
def test_log_ends(
    messages: Messages,
    ends: dict[TopicPartition, int],
    errors: dict[TopicPartition, int],
    version: int,
) -> None:
    epoch = {"leaderEpoch": 7} if version >= 4 else {}
    errors = {partition: code for partition, code in errors.items() if partition not in ends}
    told = {p: (0, offset) for p, offset in ends.items()} | {p: (c, -1) for p, c in errors.items()}
    answer = {
        "throttleTimeMs": 0,
        "topics": [
            {
                "name": topic,
                "partitions": [
                    {"partitionIndex": p, "errorCode": code, "timestamp": -1, "offset": offset}
                    | epoch
                    for p, (code, offset) in entries.items()
                ],
            }
            for topic, entries in by_topic(told).items()
        ],
    }
    raw = messages.write(requests.list_offsets_call([], version=version), answer)
    assert answers.decode_list_offsets(raw, version) == (ends, errors)


@thorough
@given(ends=st.dictionaries(PARTITIONS, INT64, max_size=6), refused=st.sets(PARTITIONS, max_size=3))
def test_leader_epoch_ends(
    messages: Messages, ends: dict[TopicPartition, int], refused: set[TopicPartition]
) -> None:
    told = {p: (0, offset) for p, offset in ends.items()} | dict.fromkeys(refused, (74, -1))
    answer = {
        "throttleTimeMs": 0,
        "topics": [
            {
                "topic": topic,
                "partitions": [
                    {
                        "errorCode": told[TopicPartition(topic, p)][0],
                        "partition": p,
                        "leaderEpoch": 3,
                        "endOffset": told[TopicPartition(topic, p)][1],
                    }
                    for p in partitions
                ],
            }
            for topic, partitions in by_topic(told).items()
        ],
    }
    raw = messages.write(requests.leader_epoch_ends_call({}), answer)
    assert answers.decode_epoch_ends(raw) == {p: end for p, end in ends.items() if p not in refused}


@thorough
@given(
    version=st.integers(2, 4),
    sizes=st.dictionaries(PARTITIONS, INT64, max_size=4),
    future=st.dictionaries(PARTITIONS, INT64, max_size=2),
    space=st.none() | st.tuples(INT64, INT64),
    error_code=st.sampled_from([0, 56]),
)
def test_log_directories(
    messages: Messages,
    version: int,
    sizes: dict[TopicPartition, int],
    future: dict[TopicPartition, int],
    space: tuple[int, int] | None,
    error_code: int,
) -> None:
    def directory(logs: dict[TopicPartition, int], is_future: bool) -> dict[str, Any]:
        total, usable = (-1, -1) if space is None else space
        return {
            "errorCode": error_code,
            "logDir": "/data",
            "topics": [
                {
                    "name": topic,
                    "partitions": [
                        {
                            "partitionIndex": partition,
                            "partitionSize": size,
                            "offsetLag": 0,
                            "isFutureKey": is_future,
                        }
                        for partition, size in entries.items()
                    ],
                }
                for topic, entries in by_topic(logs).items()
            ],
        } | ({"totalBytes": total, "usableBytes": usable} if version == 4 else {})

    answer = {"throttleTimeMs": 0, "results": [directory(sizes, False), directory(future, True)]}
    if version >= 3:
        answer["errorCode"] = 31
    raw = messages.write(requests.describe_log_dirs_call([], version), answer)
    total, usable = space if version == 4 and space is not None else (None, None)
    expected = LogDirectory("/data", error_code, total, usable)
    assert answers.decode_log_dirs(raw, version) == LogDirectories(
        31 if version >= 3 else 0, (expected, expected), sizes
    )


@thorough
@given(values=st.dictionaries(st.sampled_from("abc"), st.none() | st.text(max_size=99)))
def test_configs_that_are_set(messages: Messages, values: dict[str, str | None]) -> None:
    def config(name: str, value: str | None, source: int) -> dict[str, Any]:
        synonym = {"name": "other", "value": None, "source": 4}
        return {
            "name": name,
            "value": value,
            "readOnly": True,
            "configSource": source,
            "isSensitive": False,
            "synonyms": [synonym, synonym],
        }

    answer = {
        "throttleTimeMs": 0,
        "results": [
            {
                "errorCode": 0,
                "errorMessage": None,
                "resourceType": 4,
                "resourceName": "1",
                "configs": [config("left.alone", "9", 5)]
                + [config(name, value, 2) for name, value in values.items()],
            },
            {
                "errorCode": 29,
                "errorMessage": "no",
                "resourceType": 2,
                "resourceName": "orders",
                "configs": [],
            },
        ],
    }
    raw = messages.write(requests.describe_configs_call(ResourceType.BROKER, [], []), answer)
    expected = {name: value for name, value in values.items() if value}
    assert answers.decode_configs(raw) == [
        ResourceConfigs("1", 0, expected),
        ResourceConfigs("orders", 29, {}),
    ]

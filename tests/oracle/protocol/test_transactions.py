"""Answers about transactions that the published jar writes, read here."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from caughtup.agents.kafka.protocol import transactions
from caughtup.agents.kafka.protocol.transactions import Producers
from caughtup.models.ids import TopicPartition
from caughtup.models.transactions.holders import (
    DescribedTransaction,
    ListedTransaction,
    ProducerState,
)
from tests.models.wire.strategies import thorough
from tests.oracle.protocol.drawn import INT64, PARTITIONS
from tests.oracle.protocol.messages import Messages
from tests.oracle.protocol.test_answers import by_topic

CODES = st.integers(-(2**15), 2**15 - 1)
OFFSETS = st.integers(0, (1 << 63) - 1)
STATES = st.builds(ProducerState, OFFSETS, st.integers(0, 32_767), INT64, OFFSETS)
NAMES = st.text(max_size=300)


@thorough
@given(
    found=st.dictionaries(PARTITIONS, st.lists(STATES, max_size=3) | st.integers(1, 99), max_size=4)
)
def test_producers_with_an_open_transaction(
    messages: Messages, found: dict[TopicPartition, list[ProducerState] | int]
) -> None:
    answer = {
        "throttleTimeMs": 0,
        "topics": [
            {
                "name": topic,
                "partitions": [
                    {
                        "partitionIndex": partition,
                        "errorCode": states if isinstance(states, int) else 0,
                        "errorMessage": None,
                        "activeProducers": []
                        if isinstance(states, int)
                        else [_producer(*state) for state in [*states, ProducerState(1, 2, 3, -1)]],
                    }
                    for partition, states in of_topic.items()
                ],
            }
            for topic, of_topic in by_topic(found).items()
        ],
    }
    raw = messages.write(transactions.describe_producers_call([]), answer)
    assert transactions.decode_producers(raw) == Producers(
        {partition: states for partition, states in found.items() if not isinstance(states, int)},
        {partition: code for partition, code in found.items() if isinstance(code, int)},
    )


def _producer(producer_id: int, epoch: int, written_ms: int, first: int) -> dict[str, Any]:
    return {
        "producerId": producer_id,
        "producerEpoch": epoch,
        "lastSequence": 5,
        "lastTimestamp": written_ms,
        "coordinatorEpoch": 6,
        "currentTxnStartOffset": first,
    }


@thorough
@given(listed=st.lists(st.tuples(NAMES, OFFSETS, st.sampled_from(["Ongoing", "Empty", "later"]))))
def test_listed_transactions(messages: Messages, listed: list[tuple[str, int, str]]) -> None:
    answer = {
        "throttleTimeMs": 0,
        "errorCode": 14,
        "unknownStateFilters": ["x"],
        "transactionStates": [
            {"transactionalId": name, "producerId": producer, "transactionState": state}
            for name, producer, state in listed
        ],
    }
    raw = messages.write(transactions.list_transactions_call([]), answer)
    expected = [ListedTransaction(*one, 3) for one in listed]
    assert transactions.decode_listed(raw, 3) == (14, expected)


@thorough
@given(
    name=NAMES,
    partitions=st.sets(PARTITIONS, max_size=5),
    started=st.integers(-1, (1 << 63) - 1),
    producer=OFFSETS,
)
def test_described_transactions(
    messages: Messages, name: str, partitions: set[TopicPartition], started: int, producer: int
) -> None:
    answer = {
        "throttleTimeMs": 0,
        "transactionStates": [
            {
                "errorCode": 0,
                "transactionalId": name,
                "transactionState": "Ongoing",
                "transactionTimeoutMs": 60_000,
                "transactionStartTimeMs": started,
                "producerId": producer,
                "producerEpoch": 9,
                "topics": [
                    {"topic": topic, "partitions": list(of_topic)}
                    for topic, of_topic in by_topic(dict.fromkeys(partitions)).items()
                ],
            }
        ],
    }
    raw = messages.write(transactions.describe_transactions_call([]), answer)
    expected = DescribedTransaction(
        name, "Ongoing", 60_000, started, producer, 9, frozenset(partitions)
    )
    assert transactions.decode_described(raw) == [(0, expected)]


@thorough
@given(code=CODES, producer=INT64, epoch=CODES)
def test_whether_earlier_producers_are_fenced(
    messages: Messages, code: int, producer: int, epoch: int
) -> None:
    answer = {
        "throttleTimeMs": 0,
        "errorCode": code,
        "producerId": producer,
        "producerEpoch": epoch,
    }
    raw = messages.write(transactions.init_producer_id_call("caughtup-3", 60_000), answer)
    assert transactions.decode_init_producer_id(raw) == code

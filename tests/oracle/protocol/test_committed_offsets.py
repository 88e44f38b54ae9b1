"""What coordinators answer about committed offsets, as the published jar writes it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caughtup.agents.kafka.protocol.described import calls
from caughtup.agents.kafka.protocol.described.committed_offsets import decode_committed_offsets
from caughtup.models.errors import DecodeError
from tests.models.wire.strategies import thorough
from tests.oracle.protocol.drawn_groups import INT16, OFFSETS, TEXTS
from tests.oracle.protocol.messages import Messages

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


@pytest.mark.parametrize(
    "decode",
    [
        *(partial(decode_committed_offsets, version=version) for version in (5, 8)),
    ],
)
@thorough
@given(raw=st.binary(max_size=80))
def test_what_is_no_answer_is_refused(decode: Callable[[bytes], object], raw: bytes) -> None:
    with suppress(DecodeError):
        decode(raw)

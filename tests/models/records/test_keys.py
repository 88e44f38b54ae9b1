"""Keys of records: each subject has one, and what is none is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caughtup.models.ids import CopyKey, TaskId, TopicPartition
from caughtup.models.records import keys
from caughtup.models.records.decoding import RefusedError
from tests.models.wire.strategies import partitions, tasks, topics

GROUPS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=9)
COPY = CopyKey("p", TaskId(0, 3))


@given(GROUPS)
def test_a_group(group: str) -> None:
    assert keys.decode_group(keys.encode_group(group)) == group


@given(st.builds(TopicPartition, topics, partitions))
def test_a_partition(partition: TopicPartition) -> None:
    assert keys.decode_partition(keys.encode_partition(partition)) == partition
    array = keys.encode_partition_array(partition)
    assert keys.decode_copy_or_partition(array) == partition


@given(GROUPS, GROUPS, tasks)
def test_a_copy(group: str, process: str, task: TaskId) -> None:
    key = keys.encode_copy(group, process, str(task))
    assert keys.decode_copy(key) == (group, CopyKey(process, task))
    assert keys.decode_copy_or_partition(key) == (group, CopyKey(process, task))
    assert keys.decode_line(key) == group


def test_a_line_of_any_group_that_there_is() -> None:
    for group in ("", "g" * 32_767, "ü" * 16_383):
        assert keys.decode_line(keys.encode_line(group, "orders", 3)) == group


@pytest.mark.parametrize(
    ("decode", "key"),
    [
        (keys.decode_group, b"g" * 1_001),
        (keys.decode_partition, b"orders"),
        (keys.decode_partition, b"orders-x"),
        (keys.decode_partition, b"-3"),
        (keys.decode_partition, b"orders--3 "),
        (keys.decode_partition, b"orders-2147483648"),
        (keys.decode_partition, b"orders-" + b"9" * 5_000),
        (keys.decode_partition, "orders-\N{ARABIC-INDIC DIGIT THREE}".encode()),
        (keys.decode_partition, b"orders\n-3"),
        (keys.decode_partition, b"o" * 250 + b"-3"),
        # Another way to write what has a key already.
        (keys.decode_partition, b"orders-03"),
        (keys.decode_copy, b'["orders","p","0_03"]'),
        (keys.decode_copy, b'["orders","p"]'),
        (keys.decode_copy, b'["orders","p","01"]'),
        (keys.decode_copy, b'["","p","0_1"]'),
        (keys.decode_copy, b'["orders","' + b"p" * 256 + b'","0_1"]'),
        (keys.decode_copy, b"[" * 50_000),
        (keys.decode_copy_or_partition, b'["orders",-1]'),
        (keys.decode_copy_or_partition, b'["orders","3"]'),
        (keys.decode_copy_or_partition, b'["a b",3]'),
        (keys.decode_copy_or_partition, b'["a","' + b"p" * 256 + b'","0_1"]'),
        (keys.decode_line, b'["orders","t"]'),
        (keys.decode_line, b'{"a":1}'),
    ],
    ids=lambda of: of.__name__ if callable(of) else repr(of)[:40],
)
def test_what_is_no_key_is_refused(decode: Callable[[bytes | None], object], key: bytes) -> None:
    for wrong in (key, None, b"", b"\xff"):
        with pytest.raises(RefusedError) as caught:
            decode(wrong)
        assert caught.value.code == "bad_key"
        assert len(str(caught.value)) < 300

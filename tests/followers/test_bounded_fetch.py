"""Batches that would be too large once decompressed are passed over, and nothing else is."""

from __future__ import annotations

import gzip
import inspect
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.client import AIOKafkaClient
from aiokafka.consumer.fetcher import READ_COMMITTED, Fetcher, PartitionRecords
from aiokafka.protocol.fetch import FetchRequest, FetchResponse_v4
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords
from aiokafka.structs import TopicPartition

from caughtup.followers.python.kafka.bounded_fetch import bound_batches, bounded_records

MOST = 1 << 20
GZIP = 1


def batch(offset: int, *values: bytes, codec: int = 0) -> bytes:
    """Write records as a producer does."""
    builder = DefaultRecordBatchBuilder(2, codec, 0, -1, -1, 0, 1 << 30)
    for place, value in enumerate(values):
        builder.append(place, 1, b"orders", value, [])
    return offset.to_bytes(8, "big") + bytes(builder.build())[8:]


def read(records: bytes) -> list[tuple[int, bytes]]:
    """Read what aiokafka makes of it, from offset 0 on."""
    assert records is not None
    unpacked = PartitionRecords(
        TopicPartition("t", 0), MemoryRecords(records), [], 0, None, None, True, READ_COMMITTED
    )
    found = [(one.offset, one.value) for one in unpacked]
    assert unpacked.next_fetch_offset >= (found[-1][0] + 1 if found else 0)
    return found


def test_what_is_of_a_bearable_size_is_left_as_it_is() -> None:
    records = batch(0, b"a", b"b") + batch(2, b"c" * MOST, codec=0) + batch(3, b"d", codec=GZIP)
    kept, why = bounded_records(records, MOST)
    assert kept is records
    assert why == []
    assert [offset for offset, _ in read(kept)] == [0, 1, 2, 3]


def test_a_few_bytes_that_become_many_are_passed_over_unread() -> None:
    bomb = batch(5, b"before", b"\0" * (64 << 20), codec=GZIP)
    assert len(bomb) < 100_000
    kept, why = bounded_records(batch(4, b"a") + bomb + batch(7, b"z", codec=GZIP), MOST)
    assert read(kept) == [(4, b"a"), (7, b"z")]
    assert why == [
        f"passed over the records from offset 5 on: they are over {MOST} bytes, or not gzip"
    ]
    assert read(bounded_records(bomb, MOST)[0]) == []


def test_many_members_in_one_batch_are_counted_together() -> None:
    half = gzip.compress(b"\0" * (MOST // 2))
    plain = batch(0, b"x", codec=GZIP)
    for members, passed in ((1, 0), (2, 1)):
        body = plain[61:] + half * members
        made = plain[:8] + (49 + len(body)).to_bytes(4, "big") + plain[12:61] + body
        assert len(bounded_records(made, MOST)[1]) == passed


@pytest.mark.parametrize(
    "body", [b"", b"\x1f\x8b", b"no gzip", gzip.compress(b"half", mtime=0)[:-9]]
)
def test_what_is_no_gzip_is_passed_over(body: bytes) -> None:
    plain = batch(3, b"x", codec=GZIP)
    made = plain[:8] + (49 + len(body)).to_bytes(4, "big") + plain[12:61] + body
    kept, why = bounded_records(made + batch(4, b"next"), MOST)
    assert read(kept) == [(4, b"next")]
    assert len(why) == 1


@pytest.mark.parametrize("codec", [2, 3, 4, 7])
def test_other_codecs_are_passed_over(codec: int) -> None:
    plain = bytearray(batch(3, b"x"))
    plain[22] |= codec
    kept, why = bounded_records(bytes(plain), MOST)
    assert read(kept) == []
    assert f"codec {codec}" in why[0]


def test_formats_of_before_kafka_0_11_are_passed_over() -> None:
    builder = LegacyRecordBatchBuilder(1, 0, 1 << 20)
    builder.append(0, timestamp=1, key=b"k", value=b"v" * 100)
    kept, why = bounded_records(bytes(builder.build()) + batch(1, b"next"), MOST)
    assert read(kept) == [(1, b"next")]
    assert "before Kafka 0.11" in why[0]


@pytest.mark.parametrize("cut", [0, 11, 60, 62])
def test_half_a_batch_is_left_to_aiokafka(cut: int) -> None:
    half = batch(0, b"x")[:cut]
    assert bounded_records(half, MOST) == (half, [])


async def test_a_consumer_s_fetches_are_bounded_and_its_other_requests_are_not() -> None:
    bomb = batch(0, b"\0" * (8 * MOST), codec=GZIP)
    other = SimpleNamespace(API_KEY=3)
    answers = [
        FetchResponse_v4(0, [("t", [(0, 0, 9, 9, [], bomb), (1, 0, 9, 9, [], b"")])]),
        other,
    ]

    async def send(node_id: int, request: object, **options: Any) -> Any:
        return answers.pop(0)

    consumer: Any = SimpleNamespace(_client=SimpleNamespace(send=send))
    told: list[str] = []
    bound_batches(consumer, MOST, told.append)
    response = await consumer._client.send(1, object())
    ((_, partitions),) = response.topics
    assert read(partitions[0][-1]) == []
    assert partitions[1][-1] == b""
    assert len(told) == 1
    assert await consumer._client.send(1, object()) is other


def test_aiokafka_s_inside_is_where_it_was() -> None:
    """It is private: whoever upgrades aiokafka has to look where it went."""
    assert FetchRequest.API_KEY == 1
    assert "self._client = AIOKafkaClient(" in inspect.getsource(AIOKafkaConsumer.__init__)
    assert "await self._client.send(node_id, request)" in inspect.getsource(
        Fetcher._proc_fetch_request
    )
    assert "MemoryRecords(part_data[-1])" in inspect.getsource(Fetcher._proc_fetch_request)
    assert list(inspect.signature(AIOKafkaClient.send).parameters)[:3] == [
        "self",
        "node_id",
        "request",
    ]

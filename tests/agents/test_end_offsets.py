"""Records of caughtup-end-offsets: taken, forgotten, and refused when they are malformed."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import faust
import pytest

from caughtup.agents.clock import now_ms
from caughtup.agents.kept_channel import kept_channel
from caughtup.agents.topics.applying import apply_topic
from caughtup.agents.topics.consumer import ConsumerRecord
from caughtup.agents.topics.reports import end_offsets
from caughtup.models.ids import TopicPartition
from caughtup.models.offsets import EndOffsets
from caughtup.models.records.end_offsets import EndOffsetsRecord
from tests.support.own_topics.malformed import malformed
from tests.support.states import cluster_state

PARTITION = TopicPartition("orders-in", 3)
KEY = b"orders-in-3"
FIELDS: dict[str, Any] = {
    "schema": 1,
    "topic": "orders-in",
    "partition": 3,
    "start_offset": 5,
    "last_stable_offset": 90,
    "end_offset": 100,
    "as_of_ms": 1_000,
    "readable_end_offset": 88,
    "topic_id": "00112233445566778899aabbccddeeff",
    "listed_by": "host:1/5",
}


def encoded(**changes: Any) -> bytes:
    return json.dumps({**FIELDS, **changes}).encode()


def test_a_record_is_taken_whole() -> None:
    state = cluster_state()
    end_offsets.apply_record(state, KEY, encoded())
    assert state.ends.latest(PARTITION) == EndOffsets(5, 90, 100, 1_000, 88)
    assert state.topics.names == {bytes.fromhex(FIELDS["topic_id"]): "orders-in"}
    assert state.ends.partition_counts() == {"orders-in": 1}


def test_the_fields_are_those_that_are_written() -> None:
    assert list(FIELDS) == list(EndOffsetsRecord.__struct_fields__)


def test_fields_of_a_later_version_are_passed_over() -> None:
    state = cluster_state()
    end_offsets.apply_record(state, KEY, encoded(leader_epoch=7))
    assert state.ends.latest(PARTITION) is not None


def test_a_tombstone_forgets_the_partition_that_its_key_names() -> None:
    state = cluster_state()
    end_offsets.apply_record(state, KEY, encoded())
    end_offsets.apply_record(state, b"orders-in-4", None)
    assert len(state.ends) == 1
    end_offsets.apply_record(state, KEY, None)
    assert len(state.ends) == 0


def test_a_record_of_another_instance_keeps_the_readable_end_that_is_known() -> None:
    state = cluster_state()
    end_offsets.apply_record(state, KEY, encoded())
    end_offsets.apply_record(state, KEY, encoded(readable_end_offset=None, as_of_ms=1_100))
    assert state.ends.latest(PARTITION) == EndOffsets(5, 90, 100, 1_100, 88)
    end_offsets.apply_record(state, KEY, encoded(readable_end_offset=89, as_of_ms=1_200))
    assert state.ends.latest(PARTITION) == EndOffsets(5, 90, 100, 1_200, 88)
    end_offsets.apply_record(state, KEY, encoded(readable_end_offset=87, as_of_ms=1_300))
    assert state.ends.latest(PARTITION) == EndOffsets(5, 90, 100, 1_300, 87)
    moved = {"last_stable_offset": 91, "readable_end_offset": None}
    end_offsets.apply_record(state, KEY, encoded(as_of_ms=1_400, **moved))
    assert state.ends.latest(PARTITION) == EndOffsets(5, 91, 100, 1_400, None)


def test_a_topic_of_the_same_name_has_no_readable_end_of_the_one_before() -> None:
    state = cluster_state()
    end_offsets.apply_record(state, KEY, encoded())
    again = {"start_offset": 0, "readable_end_offset": None, "as_of_ms": 1_100}
    end_offsets.apply_record(state, KEY, encoded(**again))
    assert state.ends.latest(PARTITION) == EndOffsets(0, 90, 100, 1_100, None)


def test_a_record_says_who_lists_the_topic_where_instances_share_the_groups() -> None:
    state = cluster_state()
    names = [f"host:{number}" for number in range(20)]
    for shared in (False, True):
        if shared:
            state.held.name, state.held.numbers = "host:x", frozenset()
        listers = set()
        for name in names:
            end_offsets.apply_record(state, KEY, encoded(listed_by=f"{name}/5"))
            listers.add(state.listers.lister("orders-in", names, 1_000, 1_000))
        assert (len(listers) > 2) == shared
    end_offsets.apply_record(state, KEY, encoded(listed_by=None, as_of_ms=1_100))
    assert state.listers.lister("orders-in", names, 1_000, 1_000) is not None  # refused
    without = json.dumps({name: FIELDS[name] for name in FIELDS if name != "listed_by"}).encode()
    end_offsets.apply_record(state, KEY, without)
    assert state.listers.lister("orders-in", names, 1_000, 1_000) is None


@pytest.mark.parametrize(
    ("reason", "key", "value"),
    [
        *malformed(KEY, encoded()),
        pytest.param("bad_type", KEY, encoded(end_offset="100"), id="a string for a number"),
        pytest.param("bad_type", KEY, encoded(end_offset=None), id="null"),
        pytest.param("bad_type", KEY, encoded(end_offset=2**63), id="beyond all offsets"),
        pytest.param("bad_type", KEY, b'{"schema": 1, "topic": "orders-in"}', id="fields missing"),
        pytest.param("too_large", KEY, b"[" * 50_000, id="nested deeply and large"),
        pytest.param("too_large", KEY, encoded(later="x" * 20_000), id="too large"),
        pytest.param("bad_key", b"orders-in-4", encoded(), id="of another partition"),
        pytest.param("from_the_future", KEY, encoded(as_of_ms=4_102_444_800_000), id="of 2100"),
        pytest.param("bad_key", None, None, id="a tombstone without a key"),
        pytest.param("bad_key", b"", None, id="a tombstone with an empty key"),
        pytest.param("bad_key", b"orders-in-x", None, id="a tombstone of no partition"),
        pytest.param("bad_key", b"\xff-1", None, id="a tombstone of no topic"),
    ],
)
def test_a_malformed_record_is_refused_with_its_reason(
    reason: str, key: bytes | None, value: bytes | None
) -> None:
    state = cluster_state()
    end_offsets.apply_record(state, key, value)
    assert len(state.ends) == 0
    assert state.refused.counts == {("end-offsets", reason): 1}
    assert state.faults.newest() == []
    end_offsets.apply_record(state, KEY, encoded())
    assert len(state.ends) == 1


def test_clocks_may_differ_by_minutes() -> None:
    state = cluster_state()
    end_offsets.apply_record(state, KEY, encoded(as_of_ms=now_ms() + 60_000))
    assert len(state.ends) == 1


async def test_after_our_clock_was_set_back_new_ends_are_taken_whatever_the_broker_s_clock_says() -> (
    None
):
    app = faust.App("ends", store="memory://", web_enabled=False)
    channel, state, done = kept_channel(app), cluster_state(), asyncio.Event()

    async def applied() -> None:
        done.set()

    apply_topic(app, channel, state, end_offsets, applied)
    now, hour_ms = now_ms(), 3_600_000
    samples = [(now + 4_000, 100), (now - 1_000, 120)]
    await channel.put(
        [
            ConsumerRecord(KEY, encoded(as_of_ms=at_ms, end_offset=end), now + hour_ms)
            for at_ms, end in samples
        ]
    )
    agent = app.agents["end_offsets"]
    await agent.start()
    try:
        await asyncio.wait_for(done.wait(), 10)
    finally:
        await agent.stop()
    latest = state.ends.latest(PARTITION)
    assert latest is not None
    assert (latest.end_offset, latest.as_of_ms) == (120, now - 1_000)

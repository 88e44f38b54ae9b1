"""A record that can't be taken costs itself alone, whoever is to blame."""

from __future__ import annotations

import asyncio
from threading import current_thread

import faust

from caughtup.agents.clock import now_ms
from caughtup.agents.kept_channel import kept_channel
from caughtup.agents.topics.applying import (
    AppliedTopic,
    apply_topic,
    clock_against,
    isolated_record,
    times_of,
)
from caughtup.agents.topics.consumer import ConsumerRecord
from caughtup.models.records.decoding import BAD_TYPE, RefusedError
from caughtup.models.state.cluster import ClusterState
from tests.support.states import cluster_state

HOUR_MS = 3_600_000


def test_what_is_refused_is_counted_and_what_fails_is_a_fault() -> None:
    state = cluster_state()
    with isolated_record(state, "lag", b"key", 7) as clock:
        raise RefusedError(BAD_TYPE, "no number")
    assert clock == 7
    assert state.refused.counts == {("lag", "bad_type"): 1}
    assert state.refused.newest["lag"].at_ms == 7
    with isolated_record(state, "lag", b"\xff" * 1_000_000, 8):
        raise RecursionError
    (fault,) = state.faults.newest()
    assert (fault.part, fault.cause, fault.last_ms) == ("reading lag", "RecursionError", 8)
    with isolated_record(state, "lag", None) as clock:
        pass
    assert abs(clock - now_ms()) < HOUR_MS


def test_the_broker_s_clock_counts_where_it_stamps_records_and_ours_where_anybody_does() -> None:
    ahead_ms = now_ms() + HOUR_MS
    assert clock_against(ahead_ms, by_broker=True) == ahead_ms
    assert clock_against(ahead_ms, by_broker=False) < ahead_ms
    assert clock_against(0, by_broker=True) >= ahead_ms - HOUR_MS
    assert times_of(ConsumerRecord(None, None, ahead_ms, by_broker=True)) == (ahead_ms, ahead_ms)
    at_ms, clock_ms = times_of(ConsumerRecord(None, None, ahead_ms, by_broker=False))
    assert clock_ms < at_ms == ahead_ms


def _decode(key: bytes | None, value: bytes | None, at_ms: int | None, _: int) -> tuple[str, int]:
    if value == b"bad":
        raise RefusedError(BAD_TYPE, "bad")
    return current_thread().name, at_ms or 0


async def _applied(values: list[bytes]) -> tuple[ClusterState, list[tuple[str, int]], list[int]]:
    """Have an agent apply a slice of records, of which the table has room for two."""
    app = faust.App("applied", store="memory://", web_enabled=False)
    channel, state, table, wakeups = kept_channel(app), cluster_state(), [], []
    done = asyncio.Event()

    def apply(_: ClusterState, decoded: tuple[str, int]) -> bool:
        if len(table) < 2:
            table.append(decoded)
            return True
        return False

    async def applied() -> None:
        wakeups.append(len(table))
        done.set()

    topic = AppliedTopic("task-positions", _decode, apply, "two are enough")
    apply_topic(app, channel, state, topic, applied)
    agent = app.agents["task_positions"]
    await channel.put([ConsumerRecord(b"k", value, at_ms) for at_ms, value in enumerate(values)])
    await agent.start()
    try:
        await asyncio.wait_for(done.wait(), 10)
    finally:
        await agent.stop()
    return state, table, wakeups


async def test_an_agent_applies_slices_and_wakes_whoever_waits_after_each() -> None:
    state, table, wakeups = await _applied([b"1", b"bad", b" " * (1 << 16), b"full"])
    main = current_thread().name
    assert [at_ms for _, at_ms in table] == [0, 2]
    small, large = (thread for thread, _ in table)
    assert small == main != large
    assert wakeups == [2]
    assert state.refused.counts == {
        ("task-positions", "bad_type"): 1,
        ("task-positions", "too_many"): 1,
    }

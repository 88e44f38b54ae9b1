"""caughtup-lag: what is written of groups, and of which nothing is made again."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from confluent_kafka import Producer
from hypothesis import given, settings

from caughtup.agents import lag_topic
from caughtup.agents.lag_topic import LagTopic
from caughtup.agents.process.health import Health
from caughtup.agents.settings import Settings
from caughtup.models.ids import TopicPartition
from caughtup.models.offsets import EndOffsets
from caughtup.models.state.cluster import ClusterState
from tests.support.changes import Change, changes
from tests.support.groups.records import START_MS, commit
from tests.support.sizes import daily
from tests.support.states import assess, cluster_state, read

GROUP = "readers"
ZERO = TopicPartition("clicks", 0)


class Written(Producer):
    """A producer that has no brokers, and remembers what it was given."""

    def __init__(self) -> None:
        super().__init__({"bootstrap.servers": "127.0.0.1:9", "log_level": 0})
        self.records: dict[bytes, bytes] = {}
        self.count = 0

    def produce(self, topic: str, value: bytes | None, key: bytes, **_: Any) -> None:
        self.count += 1
        self.records.pop(key, None)
        if value is not None:
            self.records[key] = value


def ageless(records: dict[bytes, bytes]) -> dict[bytes, dict[str, Any]]:
    """Return the lines of records without their ages, which grow while nothing is written."""
    lines = {key: json.loads(value) for key, value in records.items()}
    return {
        key: {**line, "lag_seconds": line.get("lag_seconds", 0) > 0} for key, line in lines.items()
    }


def topic_of(state: ClusterState) -> LagTopic:
    return LagTopic(Settings(), state, Health(ready=True), lambda: True)


@settings(print_blob=True, deadline=None, max_examples=daily(20, 50))
@given(changes)
def test_after_each_round_the_topic_has_every_line_of_those_who_were_assessed(
    made: list[Change],
) -> None:
    state, producer = cluster_state(), Written()
    topic = topic_of(state)

    async def rounds() -> None:
        for change in made:
            change(state)
            state.forget_gone()
            await topic._round(producer)
            expected: dict[bytes, bytes] = {}
            for group in state.group_names():
                if group in state.assessments.verdicts:
                    expected |= lag_topic._records(state, group)
            for group in state.group_names():
                if group not in state.assessments.verdicts:
                    gone = [key for key in producer.records if json.loads(key)[0] == group]
                    expected |= {key: producer.records[key] for key in gone}
            assert ageless(producer.records) == ageless(expected)

    asyncio.run(rounds())
    assert not state.faults.totals


@pytest.fixture
def state() -> ClusterState:
    state = cluster_state()
    state.apply_ends(ZERO, EndOffsets(0, 9, 9, START_MS))
    read(state, commit(0, 9, topic="clicks", group=GROUP, at_ms=1))
    assess(state, START_MS)
    return state


async def test_of_a_group_at_rest_no_line_is_made_again(
    state: ClusterState, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, producer = topic_of(state), Written()
    assert await topic._round(producer)
    assert producer.count == 1
    with monkeypatch.context() as patch:
        patch.setattr(lag_topic, "_records", None)
        assess(state, START_MS + 60_000)
        assert await topic._round(producer)
    read(state, commit(0, 12, topic="clicks", group=GROUP, at_ms=2))
    assert await topic._round(producer)
    assert [json.loads(value)["committed"] for value in producer.records.values()] == [12]
    assert not state.faults.totals


async def test_a_line_of_which_only_the_age_grows_is_written_once(state: ClusterState) -> None:
    topic, producer, hour_ms = topic_of(state), Written(), 3_600_000
    state.apply_ends(TopicPartition("clicks", 1), EndOffsets(0, 9, 9, START_MS))
    read(state, commit(1, 8, topic="clicks", group=GROUP, at_ms=1))
    state.apply_ends(ZERO, EndOffsets(0, 12, 12, START_MS + 2_000))
    assess(state, START_MS + 3 * hour_ms)
    await topic._round(producer)
    key = next(key for key in producer.records if key.endswith(b",0]"))
    written = json.loads(producer.records[key])
    read(state, commit(1, 9, topic="clicks", group=GROUP, at_ms=2))
    assess(state, START_MS + 3 * hour_ms + 10_000)
    await topic._round(producer)
    assert producer.count == 3
    assess(state, START_MS + 9 * hour_ms)
    await topic._round(producer)
    later = json.loads(producer.records[key])
    assert producer.count == 4
    assert later["why"] != written["why"]
    assert later["lag_seconds"] == pytest.approx(written["lag_seconds"] + 6 * hour_ms / 1000)


async def test_a_record_that_was_not_delivered_is_written_again_though_its_group_rests(
    state: ClusterState,
) -> None:
    topic, producer = topic_of(state), Written()
    await topic._round(producer)
    (key,) = producer.records

    class Failed:
        def str(self) -> str:
            return "no leader"

        def key(self) -> bytes:
            return key

    failed: Any = Failed()
    topic._delivered(failed, failed)
    await topic._round(producer)
    assert producer.count == 2
    await topic._round(producer)
    assert producer.count == 2


async def test_a_round_like_the_one_before_it_is_spread_over_the_interval(
    state: ClusterState, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever more there is to write is written without delay."""
    topic, producer, interval = topic_of(state), Written(), Settings().lag_interval
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(topic, "sleep", sleep)
    monkeypatch.setattr(lag_topic, "_TURN_SECONDS", 0.0)  # a turn for each record

    async def round_of(partitions: int, offset: int) -> list[float]:
        pauses.clear()
        for partition in range(partitions):
            state.apply_ends(TopicPartition("clicks", partition), EndOffsets(0, 9, 9, START_MS))
            read(state, commit(partition, offset, topic="clicks", group=GROUP, at_ms=offset))
        assess(state, START_MS + offset)
        await topic._round(producer)
        return pauses[:]

    at_once = await round_of(200, 1)
    spread = await round_of(200, 2)
    more = await round_of(400, 3)
    assert sum(at_once) < interval / 2
    assert interval / 2 < sum(spread) <= interval
    assert more[:200] == pytest.approx(spread)
    assert sum(more[200:]) == pytest.approx(sum(at_once))
    assert not state.faults.totals

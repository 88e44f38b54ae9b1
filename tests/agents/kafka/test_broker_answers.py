"""When brokers last answered, by what librdkafka's statistics say."""

from __future__ import annotations

import json
from typing import Any

from caughtup.agents.kafka.broker_answers import BrokerAnswers

TOPIC = "__consumer_offsets"


class Connections:
    """Two brokers and two partitions, one on each, told of as librdkafka does."""

    def __init__(self) -> None:
        self.now_ms = 100_000
        self.answers = BrokerAnswers(TOPIC, lambda: self.now_ms)

    def told(self, *idle_ms: int, **changes: Any) -> int | None:
        """Apply statistics: a time since the last answer of each broker, and changes."""
        partitions = {
            str(number): {"broker": 1 + number, "fetch_state": "active", "hi_offset": 5}
            | changes.get(f"partition_{number}", {})
            for number in (0, 1)
        }
        brokers = {
            f"host:{node}/{node}": {"nodeid": node, "state": "UP", "rxidle": 1_000 * idle}
            | changes.get(f"broker_{node}", {})
            for node, idle in enumerate(idle_ms, 1)
        }
        brokers["GroupCoordinator"] = {"nodeid": -1, "state": "INIT", "rxidle": -1}
        none = {"broker": -1, "fetch_state": "none"}
        topics = {TOPIC: {"partitions": {**partitions, "-1": none}}}
        self.answers.take(json.dumps({"brokers": brokers, "topics": topics}))
        return self.answers.at_ms


def test_the_longest_ago_of_all_partitions_counts() -> None:
    assert Connections().told(100, 200) == 99_800


def test_nothing_is_told_before_every_partition_was_answered_for() -> None:
    connections = Connections()
    assert connections.answers.at_ms is None
    assert connections.told(0, 0, broker_2={"rxidle": -1}) is None
    assert connections.told(0, 0, partition_1={"fetch_state": "offset-query"}) is None
    assert connections.told(0, 0) == 100_000
    connections.answers.take(json.dumps({"brokers": {}, "topics": {}}))
    assert connections.answers.at_ms == 100_000


def test_a_broker_that_is_silent_or_gone_lets_the_time_stand() -> None:
    connections = Connections()
    assert connections.told(100, 100) == 99_900
    connections.now_ms += 5_000
    assert connections.told(100, 5_100) == 99_900
    assert connections.told(100, 5_200) == 99_900  # told of a little late
    assert connections.told(100, 0, broker_2={"state": "CONNECT"}) == 99_900
    assert connections.told(100, 0, partition_1={"broker": -1}) == 99_900
    assert connections.told(100) == 99_900
    assert connections.told(100, 0) == 104_900

"""What brokers refuse the probes is asked for once in ten minutes, and is said to be unknown all the time."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

import pytest
from aiokafka.errors import (
    ClusterAuthorizationFailedError,
    GroupAuthorizationFailedError,
    KafkaError,
    TopicAuthorizationFailedError,
    UnsupportedVersionError,
)

from caughtup.agents.kafka.protocol.answers import ResourceConfigs
from caughtup.agents.kafka.protocol.cluster_answers import (
    ApiVersions,
    Broker,
    DescribedPartitions,
    PartitionInfo,
)
from caughtup.agents.kafka.protocol.requests import Call, Key, flexible_array, flexible_string
from caughtup.agents.kafka.recent_names import SECONDS, RecentNames
from caughtup.agents.probes.assignors import ask_for_assignors
from caughtup.agents.probes.reassignments import ReassignmentObserver
from caughtup.agents.probes.throttles import ThrottleObserver, Throttles
from caughtup.agents.probes.transactions import TransactionObserver
from caughtup.models.ids import TopicPartition
from caughtup.models.offsets import EndOffsets
from caughtup.models.state.cluster import ClusterState

_INT16 = struct.Struct(">h")
_REFUSED = TopicAuthorizationFailedError.errno
ORDERS, HIDDEN = TopicPartition("orders", 0), TopicPartition("hidden", 0)


class Brokers:
    """Stands for the calls of a cluster of one broker, which refuses what is about the cluster.

    ``asked`` counts the calls, and the topics of those about topics.
    """

    def __init__(self, error: type[KafkaError] = ClusterAuthorizationFailedError) -> None:
        self.asked = Counter[str]()
        self.connections = self
        self._error = error

    @property
    def brokers(self) -> dict[int, Broker]:
        return {1: Broker(1, "h", 9092)}

    def all_offered(self) -> list[ApiVersions]:
        return []

    def _refuse(self, what: str) -> KafkaError:
        self.asked[what] += 1
        return self._error()

    async def list_reassignments(self) -> None:
        raise self._refuse("reassignments")

    async def describe_quorum(self) -> None:
        raise self._refuse("quorum")

    async def topic_names(self) -> list[str]:
        return ["orders", "hidden"]

    async def broker_configs(self, *_: object) -> None:
        raise self._refuse("broker")

    async def topic_configs(self, topics: Iterable[str], _: Sequence[str]) -> list[ResourceConfigs]:
        self.asked.update(topics)
        return [ResourceConfigs(t, _REFUSED if t == "hidden" else 0, {}) for t in topics]

    async def describe_partitions(
        self, partitions: Collection[TopicPartition]
    ) -> DescribedPartitions:
        info = PartitionInfo((1,), (1,), 1, 0, ())
        return DescribedPartitions(dict.fromkeys(partitions, info), {})

    async def ask_any(self, _: object) -> None:
        raise self._refuse("coordinator")

    async def ask(self, _: int, call: Call) -> bytes:
        """Answer who the producers are: nobody, or an error."""
        assert call.key is Key.DESCRIBE_PRODUCERS
        asked = [topic for topic in ("orders", "hidden") if topic.encode() in call.body]
        self.asked.update(asked)
        answers = [
            flexible_string(topic)
            + flexible_array(
                [bytes(4) + _INT16.pack(_REFUSED if topic == "hidden" else 0) + b"\0\1\0"]
            )
            + b"\0"
            for topic in asked
        ]
        return bytes(4) + flexible_array(answers) + b"\0"


class Listed(Brokers):
    """Brokers that are asked for themselves, too."""

    async def brokers(self) -> tuple[Broker, ...]:  # type: ignore[override]
        return (Broker(1, "h", 9092),)


@pytest.mark.parametrize(
    ("error", "times"), [(ClusterAuthorizationFailedError, 1), (UnsupportedVersionError, 3)]
)
async def test_throttles_that_are_refused(error: type[KafkaError], times: int) -> None:
    now = 0.0
    brokers = Brokers(error)
    observer = ThrottleObserver(brokers, clock=lambda: now)  # type: ignore[arg-type]
    for _ in range(3):
        missing = set[str]()
        assert await observer.observe(["orders", "hidden"], [1], missing) == Throttles()
        assert "throttles of topics: missing: DESCRIBE_CONFIGS on the topic" in missing
        assert any(why.startswith("throttles of broker 1: ") for why in missing)
    assert (brokers.asked["broker"], brokers.asked["hidden"]) == (times, 1)
    assert brokers.asked["orders"] == 3
    now = SECONDS + 1
    await observer.observe(["hidden"], [1], set())
    await observer.stop()
    assert brokers.asked["hidden"] > 1
    assert brokers.asked["broker"] > times


async def test_reassignments_that_are_refused() -> None:
    observer = ReassignmentObserver({"bootstrap_servers": ""})
    brokers = Listed()
    for name in ("brokers", "list_reassignments", "describe_quorum", "topic_names"):
        setattr(observer.protocol, name, getattr(brokers, name))
    for _ in range(3):
        found = await observer.observe()
        assert not found.listed
        assert {
            "partitions in movement: missing: DESCRIBE on the cluster",
            "the controllers' quorum: missing: DESCRIBE on the cluster",
        } <= set(found.cluster.missing)
    assert brokers.asked == {"reassignments": 1, "quorum": 1}


async def test_producers_that_are_refused() -> None:
    now = 0.0
    brokers, refused = Listed(), RecentNames(lambda: now)
    ends = dict.fromkeys((ORDERS, HIDDEN), EndOffsets(0, 5, 9, 1_000))
    for _ in range(3):
        observer = TransactionObserver(brokers, refused)  # type: ignore[arg-type]
        found, missing = await observer.observe(ends)
        assert found == []
        assert missing.reasons == ("producers of hidden: missing: READ on the topic",)
        assert missing.partitions == 1
    assert brokers.asked == {"orders": 3, "hidden": 1}
    now = SECONDS + 1
    await TransactionObserver(brokers, refused).observe(ends)  # type: ignore[arg-type]
    assert brokers.asked["hidden"] == 2


async def test_groups_that_may_not_be_described_have_no_assignor() -> None:
    now = 0.0
    brokers, refused = Listed(GroupAuthorizationFailedError), RecentNames(lambda: now)
    state = ClusterState("c", {})
    state.groups.consumer["orders"] = {}  # type: ignore[assignment]
    for _ in range(3):
        await ask_for_assignors(brokers, state, ["orders"], refused)  # type: ignore[arg-type]
    assert brokers.asked == {"coordinator": 1}
    now = SECONDS + 1
    await ask_for_assignors(brokers, state, ["orders"], refused)  # type: ignore[arg-type]
    assert brokers.asked == {"coordinator": 2}

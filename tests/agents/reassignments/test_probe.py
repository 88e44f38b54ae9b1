"""The probe knows what is ongoing from the tracker, to which the agent applies what was published."""

from __future__ import annotations

from typing import Any, cast

import msgspec
import pytest
from msgspec.structs import replace

from caughtup.agents.kafka.protocol.cluster_answers import PartitionInfo
from caughtup.agents.probes.reassignments import ReassignmentObserver, ReassignmentRound
from caughtup.agents.process.health import Health
from caughtup.agents.reassignments.agent import apply_record
from caughtup.agents.reassignments.probe import ReassignmentsProbe
from caughtup.agents.settings import Settings
from caughtup.agents.topics.publisher import TopicWriter
from caughtup.models.ids import TopicPartition
from caughtup.models.records.reassignments import (
    ClusterRecord,
    ReassignmentRecord,
)
from tests.support.own_topics.kept_topic import KeptTopic
from tests.support.reassignments.observations import ORDERS, a_reassignment
from tests.support.states import cluster_state

DONE = PartitionInfo((3, 1), (3, 1), 1, 6, ())


def observed(at_ms: int) -> ReassignmentRecord:
    return a_reassignment(at_ms=at_ms, leader_epoch=5)


class Topic(KeptTopic):
    """What the probe publishes to."""

    def of_orders(self) -> list[Any]:
        """Return what was sent of the partition since the last call."""
        found = [value for key, value in self.decoded() if key == b"orders-0"]
        self.sent.clear()
        return found


class Observer:
    """Answers with what is ongoing at a moment, and what metadata shows of the rest."""

    def __init__(self) -> None:
        self.at_ms = 0
        self.ongoing: tuple[ReassignmentRecord, ...] = ()
        self.described: dict[TopicPartition, PartitionInfo | None] = {}

    async def observe(self, also: object = ()) -> ReassignmentRound:
        self.at_ms += 1_000
        return ReassignmentRound(
            ClusterRecord(2, self.at_ms, {}), True, self.ongoing, self.described
        )


class Probed:
    """A probe whose records are applied by nobody: the tracker stays empty."""

    def __init__(self) -> None:
        self.topic, self.observer = Topic(), Observer()
        self.probe = ReassignmentsProbe(
            Settings(bootstrap_servers="nowhere:1"),
            Health(),
            cluster_state(),
            cast("TopicWriter", self.topic),
        )

    async def round(
        self, *ongoing: ReassignmentRecord, **described: PartitionInfo | None
    ) -> list[Any]:
        """Let the probe observe once, and return what it published of the partition."""
        self.observer.ongoing = ongoing
        self.observer.described = {TopicPartition(name, 0): one for name, one in described.items()}
        await self.probe._round(cast("ReassignmentObserver", self.observer))
        return self.topic.of_orders()


def apply(probed: Probed, record: dict[str, Any] | ReassignmentRecord) -> None:
    """Let the agent apply a record, as it was published."""
    value = msgspec.json.encode(record)
    assert apply_record(probed.probe._state, b"orders-0", value) is not None


@pytest.fixture
def probed() -> Probed:
    return Probed()


async def test_records_have_the_beginning_that_was_applied(probed: Probed) -> None:
    (first,) = await probed.round(observed(1_000))
    assert "since_ms" not in first
    apply(probed, replace(observed(1_000), since_ms=300, original=(2, 1)))
    (second,) = await probed.round(observed(2_000))
    assert (second["since_ms"], second["original"]) == (300, [2, 1])


async def test_one_that_follows_another_at_once_has_a_beginning_of_its_own(probed: Probed) -> None:
    tracker = probed.probe._state.reassignments
    tracker.apply_cluster(ClusterRecord(2, 1_000, {}))
    (first,) = await probed.round(observed(1_000))
    apply(probed, first | {"since_ms": 300, "original": [2, 1]})
    follower = ReassignmentRecord(
        2, *ORDERS, 2_000, (4, 3, 1), (4,), (3,), (1, 3), 1, leader_epoch=7
    )
    for at_ms in (2_000, 3_000):  # the agent may be behind
        (record,) = await probed.round(replace(follower, as_of_ms=at_ms))
        assert "since_ms" not in record
        assert "original" not in record
    apply(probed, record)
    (record,) = await probed.round(replace(follower, as_of_ms=4_000))
    assert (record["since_ms"], record["original"]) == (3_000, [3, 1])
    assert tracker.ongoing[ORDERS].since_ms == 3_000
    assert tracker.ongoing[ORDERS].original == (3, 1)
    assert [ended.outcome for ended in tracker.ended] == ["completed"]


async def test_what_others_published_ends_once_if_it_is_not_listed(probed: Probed) -> None:
    assert await probed.round() == []
    apply(probed, observed(1_000))
    assert await probed.round() == []  # no metadata yet
    ended, tombstone = await probed.round(orders=DONE)
    assert (ended["ended"], ended["replicas"], tombstone) == (True, [3, 1], None)
    assert await probed.round(orders=DONE) == []


async def test_an_end_that_nobody_followed_is_published_with_the_last_observation(
    probed: Probed,
) -> None:
    await probed.round(observed(1_000))
    last, ended, tombstone = await probed.round(orders=DONE)
    assert (last["as_of_ms"], last["adding"]) == (1_000, [3])
    assert ended["ended"]
    assert tombstone is None


async def test_after_its_topic_was_made_anew_an_end_is_published_again(probed: Probed) -> None:
    apply(probed, observed(1_000))
    await probed.round(orders=DONE)
    probed.probe.write_again()
    ended, _ = await probed.round(orders=DONE)
    assert ended["ended"]


async def test_what_is_no_longer_listed_is_unlisted_until_metadata_shows_the_end(
    probed: Probed,
) -> None:
    await probed.round(observed(1_000))
    before = PartitionInfo((3, 1, 2), (1, 2), 1, 5, ())
    (record,) = await probed.round(orders=before)
    assert (record["unlisted"], record["as_of_ms"]) == (True, 2_000)
    assert (await probed.round(orders=DONE))[-1] is None


async def test_records_have_what_was_last_worked_out_of_their_reassignment(probed: Probed) -> None:
    state = probed.probe._state
    (first,) = await probed.round(observed(1_000))
    apply(probed, first)
    (second,) = await probed.round(observed(2_000))
    assert "verdict" not in first | second
    for _ in state.reassignment_watch.assess(state.reassignments, 2_000):
        pass
    (third,) = await probed.round(observed(3_000))
    assert third["verdict"] == "measuring"
    before = PartitionInfo((3, 1, 2), (1, 2), 1, 5, ())
    (unlisted,) = await probed.round(orders=before)
    assert (unlisted["unlisted"], unlisted["verdict"]) == (True, "measuring")

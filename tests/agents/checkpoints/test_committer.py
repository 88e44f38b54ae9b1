"""What is committed to Kafka of Spark's queries: what changed, and groups that are gone are deleted."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException

from caughtup.agents.checkpoints.services import CheckpointCommitter
from caughtup.agents.process.health import Health
from caughtup.agents.settings import Settings
from caughtup.models.ids import TopicPartition
from caughtup.models.spark_queries import CommittedBatch, Look, Looks
from caughtup.models.state.cluster import ClusterState
from caughtup.models.state.spark_looks import apply_looks
from tests.support.groups.records import START_MS


class Admin:
    """Takes every request but those of groups that fail."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.failing: set[str] = set()

    def alter_consumer_group_offsets(
        self, asked: list[ConsumerGroupTopicPartitions], **_: object
    ) -> dict[str, Future[Any]]:
        (one,) = asked
        offsets = {(p.topic, p.partition): p.offset for p in one.topic_partitions}
        done = SimpleNamespace(topic_partitions=[SimpleNamespace(error=None)])
        return self._answer(one.group_id, offsets, done)

    def delete_consumer_groups(self, groups: list[str], **_: object) -> dict[str, Future[Any]]:
        return self._answer(groups[0], "deleted", None)

    def _answer(self, group: str, what: object, done: object) -> dict[str, Future[Any]]:
        answer: Future[Any] = Future()
        if group in self.failing:
            answer.set_exception(KafkaException(KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED)))
        else:
            self.asked.append((group, what))
            answer.set_result(done)
        return {group: answer}

    def taken(self) -> list[Any]:
        found = list(self.asked)
        self.asked.clear()
        return found


class Committing:
    """A committer whose clock stands still unless told."""

    def __init__(self) -> None:
        self.admin, self.seconds, self.active = Admin(), 0.0, True
        self.state, self.health = ClusterState("cluster-1", {}), Health(ready=True)
        self.committer = CheckpointCommitter(
            Settings(), self.state, self.health, lambda: self.active, lambda: self.seconds
        )

    async def round(self, number: int, **queries: dict[int, int]) -> list[Any]:
        """Have each query be so far (offset by partition) after a batch, and let it commit."""
        looks = {}
        for name, offsets in queries.items():
            ends = {TopicPartition("orders", one): offset for one, offset in offsets.items()}
            batch = CommittedBatch(number, ends, START_MS)
            looks[f"spark:{name}"] = f"/{name}", Look("id", number, (batch,))
        for _ in apply_looks(self.state, Looks(looks, {}), START_MS):
            pass
        await self.committer.round(self.admin)  # type: ignore[arg-type]
        return self.admin.taken()


@pytest.fixture
def committing() -> Committing:
    return Committing()


async def test_what_changed_is_committed(committing: Committing) -> None:
    first = {("orders", 0): 5, ("orders", 1): 7}
    assert await committing.round(0, a={0: 5, 1: 7}) == [("spark:a", first)]
    assert await committing.round(1, a={0: 5, 1: 7}) == []
    assert await committing.round(2, a={0: 6, 1: 7}) == [("spark:a", {("orders", 0): 6})]


async def test_all_of_it_is_committed_again_before_it_expires(committing: Committing) -> None:
    await committing.round(0, a={0: 5, 1: 7})
    committing.seconds = 6 * 3600.0 - 1
    await committing.round(1, a={0: 6, 1: 7})  # a change of one doesn't keep the other
    committing.seconds += 2
    (again,) = await committing.round(2, a={0: 6, 1: 7})
    assert again == ("spark:a", {("orders", 0): 6, ("orders", 1): 7})


async def test_a_query_that_is_gone_is_deleted_once(committing: Committing) -> None:
    await committing.round(0, a={0: 5}, b={0: 5})
    assert await committing.round(0, b={0: 5}) == [("spark:a", "deleted")]
    assert await committing.round(0, b={0: 5}) == []


async def test_a_group_that_fails_costs_itself_and_is_tried_again(committing: Committing) -> None:
    committing.admin.failing.add("spark:a")
    (only,) = await committing.round(0, a={0: 5}, b={0: 6})
    assert only[0] == "spark:b"
    assert committing.health.probe_errors["checkpoints"] == 1
    committing.admin.failing.clear()
    assert await committing.round(1, a={0: 5}, b={0: 6}) == [("spark:a", {("orders", 0): 5})]


async def test_an_instance_that_may_not_publish_commits_nothing(committing: Committing) -> None:
    committing.active = False
    assert await committing.round(0, a={0: 5}) == []
    committing.active = True
    assert len(await committing.round(0, a={0: 5})) == 1

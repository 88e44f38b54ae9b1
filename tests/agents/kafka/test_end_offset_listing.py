"""What leaders answer, and what is made of those that don't: a client that answers as librdkafka."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any, cast

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from caughtup.agents.kafka.end_offset_listing import list_end_offsets
from caughtup.models.ids import TopicPartition

#: By partition of ``words``: its leader, and the offset that the client has for it.
LED, LOST, REFUSED, LEADERLESS = (TopicPartition("words", number) for number in range(4))
ANSWERS: dict[int, int | None] = {0: 7, 1: -1001, 2: None, 3: None}


class Client:
    """An AdminClient whose cluster has one topic."""

    def list_topics(self, timeout: float) -> Any:
        partitions = {n: SimpleNamespace(leader=-1 if n == 3 else 1) for n in ANSWERS}
        return SimpleNamespace(topics={"words": SimpleNamespace(partitions=partitions)})

    def list_offsets(self, asked: dict[Any, Any], **_: object) -> dict[Any, Future[Any]]:
        return {partition: self._answer(ANSWERS[partition.partition]) for partition in asked}

    def _answer(self, offset: int | None) -> Future[Any]:
        future: Future[Any] = Future()
        if offset is None:
            future.set_exception(KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE)))
        else:
            future.set_result(SimpleNamespace(offset=offset))
        return future


def test_who_has_a_leader_and_no_offset_is_unanswered() -> None:
    listing = list_end_offsets(cast(AdminClient, Client()), lambda _: True)
    assert listing.found.keys() == {LED}
    assert listing.found[LED].end_offset == 7
    assert listing.present == {LED, LOST, REFUSED, LEADERLESS}
    assert listing.unanswered == {LOST, REFUSED}

"""Commits in transactions in the history: as the coordinator has them, whatever is open."""

from __future__ import annotations

import uuid
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.models.records.topics import MOVEMENTS, RECOMMENDATIONS
from caughtup.pipelines.history.decoding.log_ranges import PENDING
from caughtup.pipelines.history.stream import history
from caughtup.pipelines.tables import COMMITS
from tests.integration.conftest import MakeTopic
from tests.support.groups.records import GROUP
from tests.support.kafka.transactions import transactional, wait_markers
from tests.support.own_topics.records import service_records
from tests.support.pipelines.delta import rows_of
from tests.support.pipelines.watched import Watched
from tests.support.service import wait_for

pytestmark = [pytest.mark.heavy, pytest.mark.xdist_group("spark")]
STEPS = 18


class Group:
    """A group with plain commits, and with commits in transactions of two producers."""

    def __init__(self, watched: Watched, seed: int) -> None:
        self._watched = watched
        self._drawn = Random(seed)
        self._producers = [
            Producer({**watched.client, "transactional.id": uuid.uuid4().hex}) for _ in range(2)
        ]
        for producer in self._producers:
            producer.init_transactions(30)
        self._open: set[int] = set()
        self._admin = AdminClient(watched.client)
        self._asked = ConsumerGroupTopicPartitions(watched.group)
        consumer = Consumer({**watched.client, "group.id": watched.group})
        self._metadata = consumer.consumer_group_metadata()

    def step(self) -> None:
        number, partition = self._drawn.randrange(2), self._drawn.randrange(2)
        kind = self._drawn.choice(["commit", "send", "send", "end"])
        if kind == "commit":
            self._watched.commit(partition, self._drawn.randrange(1_000))
        elif kind == "send":
            if number not in self._open:
                self._producers[number].begin_transaction()
                self._open.add(number)
            offset = TopicPartition(self._watched.topic, partition, self._drawn.randrange(1_000))
            self._producers[number].send_offsets_to_transaction([offset], self._metadata, 30)
        elif number in self._open:
            self._end(number, commit=self._drawn.random() < 0.7)

    def finish(self) -> None:
        for number in sorted(self._open):
            self._end(number, commit=True)

    def _end(self, number: int, *, commit: bool) -> None:
        producer = self._producers[number]
        if commit:
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)
        self._open.discard(number)

    def asked(self) -> dict[int, int]:
        """Ask the coordinator."""
        asked = self._admin.list_consumer_group_offsets([self._asked])
        [found] = asked.values()
        return {one.partition: one.offset for one in found.result(30).topic_partitions}


def written(watched: Watched) -> dict[int, int]:
    """Return the group's last commits in the history, in the order of the log."""
    history(watched.spark, watched.options, lambda: False)
    rows = watched.rows(COMMITS, "log_partition", "log_offset")
    return {row["partition"]: row["committed"] for row in rows if row["group"] == watched.group}


@pytest.mark.parametrize("seed", range(1, 12))
@pytest.mark.thorough
def test_whenever_the_job_runs_it_has_what_offset_fetch_says(
    cluster: EmbeddedCluster, watched: Watched, seed: int
) -> None:
    group, partitions = Group(watched, seed), [TopicPartition(watched.topic, n) for n in range(2)]
    assert written(watched) == {}
    # A small batch at a time from now on, so that transactions go on from batch to batch.
    watched.options = replace(watched.options, records_per_batch=4)
    for step in range(STEPS):
        group.step()
        if step % 6 == 5:
            # Markers of a transaction are written after its producer was told.
            wait_for(
                f"the history is right, seed {seed}, step {step}",
                lambda: written(watched) == group.asked(),
            )
    group.finish()
    wait_markers(cluster, *partitions)
    assert written(watched) == group.asked(), f"seed {seed}, at the end"
    rows = watched.rows(COMMITS, "log_partition", "log_offset")
    places = [(row["log_partition"], row["log_offset"]) for row in rows]
    assert len(places) == len(set(places)), "each commit is written once"


def test_an_open_transaction_holds_no_other_group_back(
    cluster: EmbeddedCluster, watched: Watched
) -> None:
    producer = Producer({**watched.client, "transactional.id": uuid.uuid4().hex})
    producer.init_transactions(30)
    producer.begin_transaction()
    metadata = Consumer({"group.id": watched.group}).consumer_group_metadata()
    producer.send_offsets_to_transaction([TopicPartition(watched.topic, 0, 88)], metadata, 30)
    watched.commit(1, 10)
    assert written(watched) == {1: 10}
    unread = replace(watched.options, read=None)
    at = Path(watched.options.output).parent
    watched.options = replace(unread, output=str(at / "spark"), checkpoint=str(at / "its"))
    assert written(watched) == {}, "Spark's source waits for the transaction"
    producer.commit_transaction(30)
    wait_markers(cluster, TopicPartition(watched.topic, 0))
    assert written(watched) == {0: 88, 1: 10}


def test_of_own_topics_what_is_in_a_transaction_counts_once_it_is_committed_and_never_if_aborted(
    cluster: EmbeddedCluster, watched: Watched, make_topic: MakeTopic
) -> None:
    own = {"movements": make_topic("movements"), "decisions": make_topic("decisions")}
    watched.options = replace(watched.options, topics={**watched.options.topics, **own})
    values = {one.topic: one.encoded for one in service_records() if one.key == GROUP.encode()}
    looks_like_a_commit = b"\x00\x01\x00\x01g"

    def decide(producer: Producer) -> None:
        for name, topic in (("decisions", RECOMMENDATIONS), ("movements", MOVEMENTS)):
            producer.produce(own[name], values[topic], GROUP.encode())
        producer.produce(own["movements"], b"no record", looks_like_a_commit)
        assert producer.flush(30) == 0

    def rows() -> dict[str, list[int]]:
        history(watched.spark, watched.options, lambda: False)
        named = [*own, "quarantine"]
        found = {name: rows_of(watched.options.output, name) for name in named}
        return {name: sorted(row["log_offset"] for row in found[name]) for name in named}

    aborted, still_open = transactional(cluster), transactional(cluster)
    aborted.begin_transaction()
    decide(aborted)
    aborted.abort_transaction(30)
    places = [TopicPartition(topic, 0) for topic in own.values()]
    wait_markers(cluster, *places)
    still_open.begin_transaction()
    decide(still_open)
    decide(Producer(watched.client))
    # First come the records of the aborted one and its marker, then those of the open one.
    assert rows() == {"movements": [5], "decisions": [3], "quarantine": [6]}
    still_open.commit_transaction(30)
    wait_markers(cluster, *places)
    assert rows() == {"movements": [3, 5], "decisions": [2, 3], "quarantine": [4, 6]}
    assert not [r for r in rows_of(watched.options.output, "_state") if r["kind"] == PENDING]

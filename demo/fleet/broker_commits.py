"""Commits through the brokers, plain and in transactions.

A transaction is that of an instance of an application with ``exactly_once_v2``, with a group's
offsets and nothing else. The topics have to exist. Where some groups commit in transactions, all
have to commit through the brokers: a coordinator that finds records of others in its partition of
``__consumer_offsets`` loads it again.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable
from concurrent.futures import Future
from functools import partial
from typing import Self

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from caughtup.models.errors import CaughtupError

#: As instances have one each. librdkafka waits 100 ms between two transactions: each makes nine a second.
_PRODUCERS = 96
_WAITING = 2 * _PRODUCERS
_SECONDS = 60.0
#: Errors of a coordinator that is loading its partition, or has just moved.
_NOT_YET = (
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
)


def is_transactional(group: int, percent: int) -> bool:
    """Return whether a group, by its number, is one of the percentage that commits in transactions."""
    return group * percent % 100 < percent


_Commit = tuple[str, list[TopicPartition]]


class BrokerCommits:
    """Commits of many groups at once; those in transactions each by the next producer that is free.

    A context manager: leaving it waits for all of them, and raises CaughtupError ``not_committed``
    if one failed.
    """

    def __init__(self, bootstrap_servers: str, seconds: float = _SECONDS) -> None:
        """Prepare them; ``seconds``: how long a broker may take for each."""
        self._servers, self._seconds = bootstrap_servers, seconds
        self._admin = AdminClient({"bootstrap.servers": bootstrap_servers})
        self._asked = threading.BoundedSemaphore(_WAITING)
        self._waiting: queue.Queue[_Commit | None] = queue.Queue(_WAITING)
        self._threads = [
            threading.Thread(target=self._run, args=(number,), daemon=True)
            for number in range(_PRODUCERS)
        ]
        self._metadata: dict[str, bytes] = {}
        self._failure: BaseException | None = None

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *problem: object) -> None:
        for _ in self._threads:
            self._waiting.put(None)
        for thread in self._threads:
            thread.join()
        for _ in range(_WAITING):
            self._asked.acquire()
        if self._failure is not None and problem[0] is None:
            raise CaughtupError("not_committed", f"a group's offsets: {self._failure}")

    def commit(
        self, group: str, offsets: Iterable[TopicPartition], *, in_transaction: bool
    ) -> None:
        """Commit a group's offsets; waits while many others wait."""
        if in_transaction:
            self._waiting.put((group, list(offsets)))
            return
        self._asked.acquire()
        self._ask(ConsumerGroupTopicPartitions(group, list(offsets)))

    def _ask(self, asked: ConsumerGroupTopicPartitions) -> None:
        for future in self._admin.alter_consumer_group_offsets([asked]).values():
            future.add_done_callback(partial(self._answered, asked))

    def _answered(
        self, asked: ConsumerGroupTopicPartitions, future: Future[ConsumerGroupTopicPartitions]
    ) -> None:
        failure = future.exception()
        if failure is None:
            errors = [one.error for one in future.result().topic_partitions or () if one.error]
            if any(error.code() in _NOT_YET for error in errors):
                self._ask(asked)
                return
            failure = KafkaException(errors[0]) if errors else None
        self._failure = failure or self._failure
        self._asked.release()

    def _run(self, number: int) -> None:
        config = {
            "bootstrap.servers": self._servers,
            "transactional.id": f"broker-commits-{number}",
        }
        producer = None
        try:
            while (commit := self._waiting.get()) is not None:
                if producer is None:  # not before it is needed: the brokers make a topic for it
                    producer = Producer(config)
                    producer.init_transactions(self._seconds)
                group, offsets = commit
                if group not in self._metadata:  # a consumer is too dear to make for each
                    consumer = Consumer({"group.id": group})
                    self._metadata[group] = consumer.consumer_group_metadata()
                    consumer.close()
                producer.begin_transaction()
                producer.send_offsets_to_transaction(offsets, self._metadata[group], self._seconds)
                producer.commit_transaction(self._seconds)
        except KafkaException as error:
            self._failure = error
            while self._waiting.get() is not None:
                pass

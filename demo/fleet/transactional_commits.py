"""Commits in transactions, as instances of applications with ``exactly_once_v2`` send them.

Each is a transaction of a real producer with a group's offsets and nothing else. The topics have to
exist.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable
from typing import Self

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from caughtup.models.errors import CaughtupError

#: An application's commits wait for each other, those of several applications don't.
_PRODUCERS = 8
_WAITING = 64
_SECONDS = 60.0


def is_transactional(group: int, percent: int) -> bool:
    """Return whether a group, by its number, is one of the percentage that commits in transactions."""
    return group * percent % 100 < percent


_Commit = tuple[str, list[TopicPartition]]


class TransactionalCommits:
    """Commits in transactions, with a thread and a producer for each of some applications.

    A context manager: leaving it waits for all of them, and raises CaughtupError ``not_committed``
    if one failed.
    """

    def __init__(self, bootstrap_servers: str, seconds: float = _SECONDS) -> None:
        """Prepare them; ``seconds``: how long a broker may take for each."""
        self._servers, self._seconds = bootstrap_servers, seconds
        self._queues: list[queue.Queue[_Commit | None]] = [
            queue.Queue(_WAITING) for _ in range(_PRODUCERS)
        ]
        self._threads = [
            threading.Thread(target=self._run, args=(number,), daemon=True)
            for number in range(_PRODUCERS)
        ]
        self._failure: KafkaException | None = None

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *problem: object) -> None:
        for waiting in self._queues:
            waiting.put(None)
        for thread in self._threads:
            thread.join()
        if self._failure is not None and problem[0] is None:
            raise CaughtupError("not_committed", f"a transaction: {self._failure.args[0].str()}")

    def commit(self, group: str, offsets: Iterable[TopicPartition]) -> None:
        """Commit a group's offsets in a transaction; waits while many others wait."""
        self._queues[hash(group) % _PRODUCERS].put((group, list(offsets)))

    def _run(self, number: int) -> None:
        config = {
            "bootstrap.servers": self._servers,
            "transactional.id": f"transactional-commits-{number}",
        }
        waiting, producer = self._queues[number], None
        try:
            while (commit := waiting.get()) is not None:
                if producer is None:  # not before it is needed: the brokers make a topic for it
                    producer = Producer(config)
                    producer.init_transactions(self._seconds)
                group, offsets = commit
                producer.begin_transaction()
                metadata = Consumer({"group.id": group}).consumer_group_metadata()
                producer.send_offsets_to_transaction(offsets, metadata, self._seconds)
                producer.commit_transaction(self._seconds)
        except KafkaException as error:
            self._failure = error
            while waiting.get() is not None:
                pass

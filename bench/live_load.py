"""The load of benchmarks of live commits: many group-partitions, some of which commit again and again."""

from __future__ import annotations

import multiprocessing
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import product
from multiprocessing.synchronize import Event
from typing import TYPE_CHECKING, NamedTuple

from confluent_kafka import TopicPartition as ClientTopicPartition

from caughtup.agents.clock import now_ms
from caughtup.agents.progress import Progress
from caughtup.bench.offsets.command import OFFSETS_PARTITIONS
from caughtup.models.assignors.java.strings import coordinator_partition

if TYPE_CHECKING:
    from caughtup.demo.cluster.cluster import EmbeddedCluster
    from caughtup.demo.fleet.offset_commits import RawRecord

MARKER = "bench-live-marker"
_TOPICS = 10
#: The records of each partition; idle groups have committed its end.
_END_OFFSET = 100
_MARK_SECONDS = 0.05
_FLUSH_SECONDS, _BEGIN_SECONDS = 60.0, 60.0
_AT_ONCE = 100_000
_READ = re.compile(r"^caughtup_offsets_records_total\{[^}]*\} ([\d.e+]+)$", re.MULTILINE)


class Load(NamedTuple):
    """``groups`` × ``partitions`` have commits; ``active`` of them get ``commits`` more a second.

    A percentage of the groups is ``transactional``, with all that a group commits in one.
    """

    groups: int
    partitions: int
    active: int
    a_second: int
    transactional: int

    def turns(self, seconds: float) -> int:
        """Return the most commits that an active group-partition makes in some seconds."""
        return int(seconds * self.a_second / self.active) + 2


def records_read(metrics: str) -> float:
    """Return the number of records of ``__consumer_offsets`` that a service has read, by /metrics."""
    return sum(map(float, _READ.findall(metrics)))


@contextmanager
def committing(bootstrap_servers: str, load: Load, turns: int) -> Iterator[None]:
    """Commit in a process of its own until the context ends; ``turns`` as in ``write``.

    Waits until that process has begun: on a busy machine it starts slowly.
    """
    context = multiprocessing.get_context("spawn")
    stop, begun = context.Event(), context.Event()
    arguments = (bootstrap_servers, load, stop, turns, begun)
    writer = context.Process(target=write, args=arguments, daemon=True)
    writer.start()
    begun.wait(_BEGIN_SECONDS)
    try:
        yield
    finally:
        stop.set()
        writer.join()


@contextmanager
def again_and_again(
    work: Callable[[threading.Event], object], interval_seconds: float
) -> Iterator[None]:
    """Work in a thread, with an interval between two times, until the context ends.

    The work is given the event of the end, for what would take longer.
    """
    ended = threading.Event()

    def repeat() -> None:
        while not ended.is_set():
            with suppress(OSError):  # who refuses is asked again
                work(ended)
            ended.wait(interval_seconds)

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def fill(cluster: EmbeddedCluster, load: Load) -> None:
    """Create the topics, and the last commit of every group-partition."""
    from caughtup.demo.cluster.load import produce_empty
    from caughtup.demo.cluster.topics import create_topics
    from caughtup.demo.fleet.offset_commits import make_offsets_topic, write_records

    create_topics(cluster, dict.fromkeys(map(topic_of, range(_TOPICS)), load.partitions))
    partitions = product(map(topic_of, range(_TOPICS)), range(load.partitions))
    produce_empty(cluster, partitions, _END_OFFSET)
    make_offsets_topic(cluster)
    with Progress().task("writing commits", load.groups * load.partitions) as advance:
        count = load.groups * load.partitions
        for start in range(0, count, _AT_ONCE):
            keys = range(start, min(count, start + _AT_ONCE))
            write_records(cluster, [_commit(load, key, _last_offset(load, key)) for key in keys])
            advance(len(keys))


def write(
    bootstrap_servers: str, load: Load, stop: Event, turns: int = 0, begun: Event | None = None
) -> None:
    """Write commits at their rate, with a marker at intervals, until ``stop`` is set.

    ``turns``: how often each active group-partition has committed already. ``begun`` is set before
    the first commit.
    """
    from caughtup.demo.fleet.broker_commits import BrokerCommits, is_transactional
    from caughtup.demo.fleet.offset_commits import offsets_producer, produce_record

    commits, markers = (offsets_producer(bootstrap_servers, linger) for linger in (20, 0))
    if begun is not None:
        begun.set()
    began, written = time.monotonic(), 0
    with BrokerCommits(bootstrap_servers) as through_brokers:
        while not stop.is_set():
            for _ in range(int((time.monotonic() - began) * load.a_second) - written):
                turn, key = divmod(written, load.active)
                offset, written = _END_OFFSET // 2 + turns + turn, written + 1
                partition, number = divmod(key, load.groups)
                if not load.transactional:
                    produce_record(commits, _commit(load, key, offset))
                elif partition == 0:  # with all of its active partitions
                    active = range((load.active - 1 - number) // load.groups + 1)
                    offsets = [ClientTopicPartition(topic_of(number), p, offset) for p in active]
                    transactional = is_transactional(number, load.transactional)
                    through_brokers.commit(_group(number), offsets, in_transaction=transactional)
            produce_record(markers, _commit(load, 0, now_ms(), MARKER))
            for producer in (commits, markers):
                producer.poll(0)
            time.sleep(_MARK_SECONDS)
    for producer in (commits, markers):
        producer.flush(_FLUSH_SECONDS)


def _commit(load: Load, key: int, offset: int, name: str | None = None) -> RawRecord:
    """Return the commit of a group-partition by number, or of a named group on the first one."""
    from caughtup.demo.fleet.offset_commits import (
        RawRecord,
        commit_key,
        commit_value,
    )

    # The active group-partitions are spread over all groups.
    partition, number = divmod(key, load.groups)
    group = name or _group(number)
    home = coordinator_partition(group, OFFSETS_PARTITIONS)
    at_ms = now_ms()
    raw_key = commit_key(group, partition, topic_of(number))
    return RawRecord(home, 0, at_ms, raw_key, commit_value(offset, at_ms))


def _last_offset(load: Load, key: int) -> int:
    """Return the previously committed offset; the end for idle groups."""
    return _END_OFFSET // 2 - 1 if key < load.active else _END_OFFSET


def _group(number: int) -> str:
    return f"bench-live-group-{number:06d}"


def topic_of(number: int) -> str:
    """Return the topic on which a group commits, by its number."""
    return f"bench-live-{number % _TOPICS}"

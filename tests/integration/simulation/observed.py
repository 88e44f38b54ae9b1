"""What a story was, of a real application and of a simulated one, in the same figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from confluent_kafka import Consumer, TopicPartition

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.models.simulation.time_line import Mark, TimeSpan, standing_still

#: Shorter pauses are no standing still: a heartbeat's and a busy machine's, on either side.
LEAST_MS = 2_000
_SECONDS = 30.0


@dataclass(frozen=True)
class Figures:
    """For how long each task stood still (ms), when all was balanced (ms), and what it cost.

    ``still_ms`` has every task, 0 where it never stood still for as long as LEAST_MS.
    """

    still_ms: Mapping[str, int]
    balanced_ms: int
    copies: int
    rebalances: int

    @property
    def median_ms(self) -> float:
        """The median over the tasks that stood still; 0 if none did."""
        stood = [still for still in self.still_ms.values() if still]
        return median(stood) if stood else 0.0


def of_time_line(
    spans: Sequence[TimeSpan], marks: Sequence[Mark], tasks: Iterable[str], until_ms: int
) -> Figures:
    """Return the figures of a simulated story, which began at 0."""
    still = {
        task: _long(end - start for start, end in pauses)
        for task, pauses in standing_still(spans, tasks, 0, until_ms).items()
    }
    rebalances = [mark.at_ms for mark in marks if mark.kind == "rebalance"]
    changes = [one.start_ms for one in spans if one.start_ms > 0]
    return Figures(
        still,
        max((*rebalances, *changes), default=0),
        sum(mark.kind == "copy" for mark in marks),
        len(rebalances),
    )


def stood_still(written: Sequence[int], since_ms: int, until_ms: int) -> tuple[int, int]:
    """Return for how long in all a task didn't write, and when the last such pause ended (ms)."""
    pauses = [
        (max(one, since_ms), later)
        for one, later in pairwise([*written, until_ms])
        if later > since_ms and one < until_ms
    ]
    long = [(start, end) for start, end in pauses if end - start >= LEAST_MS]
    return sum(end - start for start, end in long), max((end for _, end in long), default=since_ms)


def longest_still(times: Mapping[int, Sequence[int]], since_ms: int) -> int:
    """Return the longest time (ms) since a moment that any task didn't write."""
    return max(
        (later - one for at in times.values() for one, later in pairwise(at) if later > since_ms),
        default=0,
    )


def written_times(
    cluster: EmbeddedCluster, topic: str, since_ms: int, until_ms: int
) -> dict[int, list[int]]:
    """Read when records came to each partition of a topic between two moments (broker's ms)."""
    consumer = Consumer(
        {
            **cluster.client_config(),
            "group.id": "caughtup-measures",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 50,
        }
    )
    try:
        numbers = consumer.list_topics(topic, _SECONDS).topics[topic].partitions
        begin = consumer.offsets_for_times(
            [TopicPartition(topic, number, since_ms) for number in numbers], _SECONDS
        )
        times: dict[int, list[int]] = {number: [] for number in numbers}
        ends = {
            number: consumer.get_watermark_offsets(TopicPartition(topic, number), _SECONDS)[1]
            for number in numbers
        }
        left = {one.partition for one in begin if 0 <= one.offset < ends[one.partition]}
        consumer.assign([one for one in begin if one.partition in left])
        while left:
            for message in consumer.consume(2_000, 0.5):
                at_ms = message.timestamp()[1]
                if at_ms <= until_ms:
                    times[message.partition()].append(at_ms)
                if message.offset() + 1 >= ends[message.partition()] or at_ms > until_ms:
                    left.discard(message.partition())
        return {number: sorted(at) for number, at in times.items()}
    finally:
        consumer.close()


def _long(pauses: Iterable[int]) -> int:
    return sum(pause for pause in pauses if pause >= LEAST_MS)

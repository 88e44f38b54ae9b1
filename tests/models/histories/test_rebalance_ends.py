"""Bounds of what a leader listed, by the order of what was asked and answered, without any clock."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from caughtup.models.histories.rebalance_ends import ListedBounds, RebalanceEnds
from caughtup.models.ids import TopicPartition

PARTITIONS = [TopicPartition("orders-store-changelog", number) for number in range(3)]
JOINING, SYNCING, STABLE = "joining", "syncing", "stable"


@dataclass
class Cluster:
    """A group that rebalances, and logs that grow: advanced by one event at a time."""

    rng: random.Random
    state: str = STABLE
    ends: dict[TopicPartition, int] = field(default_factory=lambda: dict.fromkeys(PARTITIONS, 100))
    log_end: int = 40
    listed: dict[TopicPartition, int] | None = None
    #: By the offset of a generation's record: what its leader had listed.
    truth: dict[int, dict[TopicPartition, int]] = field(default_factory=dict)

    def advance(self) -> None:
        for partition in PARTITIONS:
            self.ends[partition] += self.rng.choice((0, 0, 1, 5))
        self.log_end += self.rng.choice((0, 0, 0, 1))  # other groups commit
        if self.rng.random() < 0.6:
            return
        if self.state == STABLE:
            self.state = JOINING
        elif self.state == JOINING:
            self.state = SYNCING
        elif self.listed is None:
            self.listed = dict(self.ends)
        elif self.rng.random() < 0.1:  # another member joins meanwhile
            self.state, self.listed = JOINING, None
        else:
            self.truth[self.log_end] = self.listed
            self.log_end += 1
            self.state, self.listed = STABLE, None

    def some_time(self, most: int = 4) -> None:
        for _ in range(self.rng.randint(0, most)):
            self.advance()


def watch(cluster: Cluster, kept: RebalanceEnds) -> None:
    """List once, each partition at its own moment, then look."""
    found = {}
    for partition in cluster.rng.sample(PARTITIONS, len(PARTITIONS)):
        cluster.some_time(1)
        if cluster.rng.random() > 0.05:  # not answered
            found[partition] = cluster.ends[partition]
    cluster.some_time(1)
    log_end = cluster.log_end
    cluster.some_time(1)
    kept.add(found, log_end if cluster.rng.random() > 0.05 else None)
    cluster.some_time()
    if cluster.state == JOINING:
        kept.is_joining()
    cluster.some_time()


@pytest.mark.parametrize("seed", range(100))
def test_what_the_leader_listed_is_within_the_bounds(seed: int) -> None:
    print(f"seed {seed}")
    cluster = Cluster(random.Random(f"rebalances {seed}"))
    kept = RebalanceEnds(PARTITIONS)
    lows = highs = total = 0
    for _ in range(300):
        before = len(cluster.truth)
        watch(cluster, kept)
        if len(cluster.truth) == before:
            continue
        for _ in range(3):
            watch(cluster, kept)
        for offset in sorted(cluster.truth)[-4:]:
            for partition, bounds in kept.bounds(offset).items():
                true = cluster.truth[offset][partition]
                assert bounds.low is None or bounds.low <= true
                assert bounds.high is None or true <= bounds.high
                lows, highs = lows + (bounds.low is not None), highs + (bounds.high is not None)
                total += 1
    assert lows > total / 3
    assert highs > total / 2


def test_without_a_look_at_the_join_phase_there_is_no_lower_bound() -> None:
    kept = RebalanceEnds(PARTITIONS[:1])
    for end, log_end in ((10, 5), (20, 5), (30, 6), (40, 6)):
        kept.add({PARTITIONS[0]: end}, log_end)
    assert kept.bounds(5) == {PARTITIONS[0]: ListedBounds(None, 40)}
    assert kept.bounds(6) == {PARTITIONS[0]: ListedBounds(None, None)}


def test_a_lower_bound_is_from_before_the_record_was_written() -> None:
    """The group waits for members again right after its generation 5 was written."""
    kept = RebalanceEnds(PARTITIONS[:1])
    for end, log_end in ((10, 5), (20, 5), (30, 6), (40, 6)):
        kept.add({PARTITIONS[0]: end}, log_end)
        kept.is_joining()
    assert kept.bounds(5)[PARTITIONS[0]] == ListedBounds(10, 40)
    assert kept.bounds(6)[PARTITIONS[0]] == ListedBounds(30, None)


def test_of_a_recreated_topic_the_other_bounds_stay() -> None:
    assert ListedBounds(500, 600).meet((0, 30)) == (0, 30)
    assert ListedBounds(10, 20).meet((0, 30)) == (10, 20)
    assert ListedBounds(None, 20).meet((5, 30)) == (5, 20)
    assert ListedBounds(10, 20).meet(None) == (10, 20)
    assert ListedBounds(10, None).meet(None) is None

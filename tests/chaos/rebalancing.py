"""A cluster behind a proxy with emulated groups that rebalance all the time."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

from tests.chaos.cluster import ChaosCluster
from tests.support.groups.emulated import Rebalancing
from tests.support.kafka.topics import words_read

#: A multiple of the usual 4, so that emulated groups keep to partitions of their own (see ``name``).
PARTITIONS = {"offsets.topic.num.partitions": "32"}


@contextmanager
def rebalancing_cluster() -> Iterator[tuple[ChaosCluster, Rebalancing]]:
    """Start a cluster of one broker, and the groups; print their seed."""
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"groups of seed {seed}")
    with ChaosCluster(nodes=1, controllers=1, broker_properties=PARTITIONS) as cluster:
        words_read(cluster, 10, 1)
        with Rebalancing(cluster, seed, brief=3, long=6) as groups:
            groups.start()
            yield cluster, groups

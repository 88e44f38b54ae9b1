"""What makes one of several instances that share the groups fail: the others have all groups."""

from __future__ import annotations

import sys
import time
import uuid
from pathlib import Path

import pytest
from confluent_kafka import Producer

from caughtup.demo.cluster.cluster import EmbeddedCluster
from tests.integration.conftest import MakeTopic
from tests.support import breaking
from tests.support.kafka.topics import words_read
from tests.support.service import Service, commit, wait_for

#: A session, a rebalance and the reading back, on a machine that is busy with other tests.
TAKEN_OVER_SECONDS = 40.0
#: More than a session.
_WATCHED_SECONDS = 12.0


def held(*services: Service) -> list[int]:
    """Return how many partitions of ``__consumer_offsets`` each has by its own word."""
    return [int(service.value("offsets_held_partitions") or 0) for service in services]


def notices(service: Service) -> str:
    """Return what a service says of itself on its page."""
    return "; ".join(service.page()["notices"])


def wait_held(expected: list[int], *services: Service) -> None:
    """Wait until all are ready and have so many partitions."""

    def is_so() -> bool:
        return all(service.ready() for service in services) and held(*services) == expected

    wait_for(f"they have {expected}", is_so, TAKEN_OVER_SECONDS)


@pytest.mark.thorough
def test_a_part_that_fails_ends_its_instance_and_the_other_has_all_groups(
    cluster: EmbeddedCluster, make_topic: MakeTopic, tmp_path: Path
) -> None:
    words, trigger = make_topic("words"), tmp_path / "now"
    groups = [f"readers-{number}-{words}" for number in range(8)]
    for group in groups:
        commit(cluster, group, words, 0)
    own = f"caughtup-{uuid.uuid4().hex[:8]}"
    file = Path(breaking.__file__)
    command = [sys.executable, "-P", str(file), "the assessor of groups", str(trigger)]
    breaks = Service(cluster, command=command, application_id=own, workers="shared")
    with breaks, Service(cluster, application_id=own, workers="shared") as other:
        wait_held([2, 2], breaks, other)
        trigger.touch()
        wait_for("it has ended", lambda: breaks.process.exit_code == 1, TAKEN_OVER_SECONDS)
        wait_held([4], other)
        for group in groups:
            other.wait_value(0, "group_committed_offset", group=group)


@pytest.mark.thorough
def test_nobody_has_groups_of_one_that_cannot_be_fenced_until_there_are_enough_replicas() -> None:
    names = ("transaction.state.log.replication.factor", "transaction.state.log.min.isr")
    both = dict.fromkeys((*names, "offsets.topic.replication.factor"), "2")
    own = f"caughtup-{uuid.uuid4().hex[:8]}"
    with EmbeddedCluster(nodes=2, broker_properties=both) as cluster:
        words_read(cluster, 1, 1)
        first = Producer({**cluster.client_config(), "transactional.id": "first"})
        first.init_transactions(30)
        goes, stays = (Service(cluster, application_id=own, workers="shared") for _ in "ab")
        with stays, goes:
            wait_held([2, 2], goes, stays)
            cluster.kill_node(2)
            cluster.wait_ready()
            goes.kill()
            # Its transactional id can't be fenced: nobody is given its partitions.
            said = "no instance has 2: brokers do not let it fence instances that are gone"
            wait_for("it says so", lambda: said in notices(stays), TAKEN_OVER_SECONDS)
            until = time.monotonic() + _WATCHED_SECONDS
            while time.monotonic() < until:
                assert held(stays) == [2]
                time.sleep(0.1)
            wait_for("it is ready with its own", stays.ready)
            cluster.start_node(2)
            wait_held([4], stays)

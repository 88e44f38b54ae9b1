"""Instances share the groups: each group is with one of them, whoever comes and goes, and however.

With ``-m thorough`` HAND_OVERS=100 times. It prints seeds, and for how long groups heard nothing.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from random import Random

import pytest
from confluent_kafka import Producer

from caughtup.demo.cluster.load import produce
from caughtup.demo.cluster.topics import create_topics
from caughtup.models.durations import counted
from tests.chaos.cluster import ChaosCluster
from tests.chaos.hand_over import Told, lived, silences
from tests.chaos.leaving import CODES, LEAVING, Leaving, cut_off
from tests.chaos.rebalancing import PARTITIONS, rebalancing_cluster
from tests.support.groups.emulated import Rebalancing, name
from tests.support.kafka.topics import read_topic
from tests.support.service import Service, caughtup, commit, wait_for

pytestmark = pytest.mark.heavy

HAND_OVERS = int(os.environ.get("HAND_OVERS", "100"))
#: A session, and what a machine needs that is busy with other tests.
TAKEN_OVER_SECONDS, GONE_SECONDS, HEARD_SECONDS = 40.0, 40.0, 40.0
#: The longest that a decision may take beside the hand-over.
DECIDED_SECONDS = 5.0


@dataclass
class Fleet:
    """Instances that share groups which rebalance all the time."""

    cluster: ChaosCluster
    rebalancing: Rebalancing
    own: str = field(default_factory=lambda: name("caughtup"))
    running: list[Service] = field(default_factory=list)

    def begin(self, *, proxied: bool = False) -> Service:
        """Begin an instance, and wait until the groups are shared with it."""
        place = self.cluster.behind_proxy() if proxied else self.cluster
        service = Service(place, application_id=self.own, workers="shared")
        service.start()
        self.running.append(service)
        self.wait_shared()
        return service

    def close(self) -> None:
        for service in self.running:
            service.process.terminate(10)

    def shares(self) -> list[dict[str, float]]:
        """Return the generations by group that each instance shows."""
        return [
            {
                sample.labels["group"]: sample.value
                for sample in service.metrics()
                if sample.name == "caughtup_group_generation"
                and sample.labels["group"] in self.rebalancing.groups
            }
            for service in self.running
        ]

    def wait_shared(self) -> None:
        """Wait until all are ready, and each group is shown by one of them."""

        def is_shared() -> bool:
            if not all(service.ready() for service in self.running):
                return False
            shown = [group for share in self.shares() for group in share]
            return sorted(shown) == sorted(self.rebalancing.groups)

        wait_for("each group is with one", is_shared, TAKEN_OVER_SECONDS)

    def told(self) -> Told:
        return Told.of(self.cluster, self.running[0], self.rebalancing.groups)

    def wait_heard(self) -> None:
        """Wait until each group was told of its generation of now, or a newer one."""
        newest = self.rebalancing.newest()

        def is_heard() -> bool:
            time.sleep(0.3)  # to read a whole topic takes the services' time
            found = self.told().decided
            return all(found.get(group, 0) >= newest[group] for group in newest)

        wait_for("each group is decided", is_heard, HEARD_SECONDS)


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    with rebalancing_cluster() as (cluster, rebalancing):
        made = Fleet(cluster, rebalancing)
        try:
            yield made
        finally:
            made.close()


def lose_one(fleet: Fleet, fault: Leaving, *, seed: int) -> dict[str, float]:
    """Lose an instance, and check what was told; return for how long groups heard nothing (s)."""
    leaving = fleet.begin(proxied=fault is cut_off)
    fleet.wait_heard()
    theirs = frozenset(fleet.shares()[-1])
    assert theirs, "groups are spread over the partitions, so that each instance has some"
    since = time.time()
    time.sleep(Random(seed).uniform(0.0, 3.0))
    at = time.time()
    with fault(fleet.cluster, leaving):
        fleet.running.remove(leaving)
        fleet.wait_shared()
        lasted = time.time() - at
        fleet.wait_heard()
    process = leaving.process
    wait_for("it has ended", lambda: process.exit_code is not None, GONE_SECONDS)
    assert process.exit_code == CODES.get(fault, process.exit_code), leaving.log
    judged, ends = time.time(), fleet.rebalancing.ends()
    began = [one for one in list(fleet.rebalancing.began) if ends.get(one[:2], judged) > since]
    found = fleet.told()
    assert found.wrong(fleet.rebalancing.groups) == []
    assert lived(began, ends, lasted + DECIDED_SECONDS, judged) - found.at.keys() == set()
    silent = silences(found, began, ends, at)
    of_others = _summary(silent, frozenset(silent) - theirs)
    print(f"{fault.__name__}: {_summary(silent, theirs)}; of others: {of_others}")
    return {group: seconds for group, seconds in silent.items() if group in theirs}


def _summary(silent: Mapping[str, float], groups: frozenset[str]) -> str:
    times = [seconds for group, seconds in silent.items() if group in groups]
    if not times:
        return "none had anything to hear"
    median, worst = statistics.median(times), max(times)
    return (
        f"{counted(len(times), 'group')} heard nothing for {median:.1f} s (median), {worst:.1f} s"
    )


def test_each_group_is_with_one_whoever_comes_and_goes(fleet: Fleet) -> None:
    fleet.begin()
    fleet.begin()
    fleet.wait_heard()
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    for number, fault in enumerate(LEAVING):
        lose_one(fleet, fault, seed=seed + number)
    check_what_they_say(fleet)


def check_what_they_say(fleet: Fleet) -> None:
    """Check that each says who has how many partitions, and that one watches reassignments."""
    count = int(PARTITIONS["offsets.topic.num.partitions"])
    held = [int(service.value("offsets_held_partitions") or 0) for service in fleet.running]
    assert sum(held) == count
    assert max(held) - min(held) <= 1
    wide = [one for one in fleet.running if "caughtup_reassignments" in one.metrics_text()]
    assert len(wide) == 1
    for own, service, other in zip(held, fleet.running, fleet.running[::-1], strict=True):
        notice = next(one for one in service.page()["notices"] if one.startswith("shares: "))
        assert f"this instance has {own} of {count} partitions" in notice
        assert f":{other.process.pid} has {count - own}" in notice
    groups = sorted(fleet.rebalancing.groups)
    for service in fleet.running:
        for group in groups:
            lines = service.lines(f"api/lag?group={group}")
            assert {line["group"] for line in lines} == {group}
        assert {line["group"] for line in service.lines("api/lag")} >= {*groups}
        assert {row["group"] for row in service.page()["groups"]} >= {*groups}
        assert [one.get("why") for one in service.page()["instances"]] == [None]
    check_each_topic_is_listed_by_one(fleet)
    check_markers_are_no_lag_whoever_lists_the_topic(fleet)
    directory = fleet.cluster.processes.directory
    checked = caughtup("check", "--config", fleet.running[0].settings_file, directory=directory)
    assert "share the" in checked.out


def check_each_topic_is_listed_by_one(fleet: Fleet) -> None:
    """Check that of two instances with groups on a topic, one lists its end offsets."""
    for number in range(4):  # so that both have one of them
        commit(fleet.cluster, f"words-{number}-{fleet.own}", "words", 1)
    time.sleep(5)  # until one leaves it to the other
    since_ms = int(time.time() * 1000)
    while time.time() * 1000 < since_ms + 4_000:
        produce(fleet.cluster, "words", 10)
        time.sleep(0.3)
    until_ms = int(time.time() * 1000)
    listed = []
    # It grows all the time: its end is when what is read is of a later time.
    consumer = read_topic(fleet.cluster, fleet.running[0].topic("end-offsets"))
    deadline = time.monotonic() + HEARD_SECONDS
    while time.monotonic() < deadline:
        message = consumer.poll(1.0)
        one = json.loads((message and message.value()) or b"{}")
        if one.get("as_of_ms", 0) > until_ms:
            break
        if one.get("topic") == "words" and one["as_of_ms"] > since_ms:
            listed.append(one["listed_by"].partition("/")[0])
    consumer.close()
    assert len(listed) > 2
    assert len(set(listed)) == 1
    ends = [
        service.lines(f"api/lag?group=words-0-{fleet.own}")[0]["end_offset"]
        for service in fleet.running
    ]
    assert min(ends) > 40


def check_markers_are_no_lag_whoever_lists_the_topic(fleet: Fleet) -> None:
    """Check groups that have read all records of a topic that ends with a transaction's marker."""
    create_topics(fleet.cluster, {"paid": 1})
    config = {**fleet.cluster.client_config(), "transactional.id": f"paying-{fleet.own}"}
    producer = Producer(config)
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("paid", b"1")
    producer.commit_transaction(30)
    committed = {f"paid-{offset}-{n}-{fleet.own}": offset for offset in (0, 1) for n in range(4)}
    for group, offset in committed.items():
        commit(fleet.cluster, group, "paid", offset)

    def lags() -> dict[str, object]:
        lines = [line for service in fleet.running for line in service.lines("api/lag")]
        return {line["group"]: line.get("lag") for line in lines if line["group"] in committed}

    expected = {group: 1 - offset for group, offset in committed.items()}
    wait_for("markers are no lag", lambda: lags() == expected, HEARD_SECONDS)


@pytest.mark.thorough
@pytest.mark.timeout(60 + 60 * HAND_OVERS)
def test_a_hundred_instances_go(fleet: Fleet) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}, {HAND_OVERS} hand-overs")
    fleet.begin()
    fleet.begin()
    drawn, silent = Random(seed), []
    for number in range(HAND_OVERS):
        silent += lose_one(fleet, drawn.choice(LEAVING), seed=seed + number).values()
    print(
        f"{len(silent)} times: median {statistics.median(silent):.1f} s, worst {max(silent):.1f} s"
    )

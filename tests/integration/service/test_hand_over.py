"""The active one of two instances goes in every way there is, while groups rebalance all the time.

For a reader of committed records each generation that lives for longer than the hand-over is
decided once, nothing contradicts what was said before, and movements are whole. With ``-m thorough``
HAND_OVERS=100 times. It prints seeds, and for how long groups heard nothing.
"""

from __future__ import annotations

import os
import random
import statistics
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest
from confluent_kafka import KafkaException, Producer

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.story.stage import caughtup_command
from caughtup.models.durations import counted
from tests.chaos.cluster import ChaosCluster
from tests.chaos.hand_over import Told, lived, silences
from tests.chaos.leaving import CODES as LEAVING_CODES
from tests.chaos.leaving import LEAVING, Leaving, cut_off, killed
from tests.support.clocks import COMPILER, another_clock
from tests.support.groups.emulated import Rebalancing, name
from tests.support.kafka.topics import words_read
from tests.support.service import Service, wait_for

HAND_OVERS = int(os.environ.get("HAND_OVERS", "100"))
_AT_ONCE = 5
#: A session, and what a machine needs that is busy with other tests.
TAKEN_OVER_SECONDS, GONE_SECONDS, HEARD_SECONDS = 40.0, 40.0, 40.0
#: The longest that a decision may take beside the hand-over; generations that have to be decided
#: live for longer than both.
DECIDED_SECONDS = 5.0
CLOCKS_SECONDS = (300, -240)


@dataclass
class Pair:
    """The active instance, and the one that stands by."""

    cluster: ChaosCluster
    active: Service
    standby: Service


@contextmanager
def impersonated(cluster: ChaosCluster, service: Service) -> Iterator[None]:
    """Another program begins with the transactional id, and leaves a transaction open."""
    own = service.application_id
    stranger = Producer({**cluster.client_config(), "transactional.id": own, "log_level": 0})
    stranger.init_transactions(30)
    stranger.begin_transaction()
    stranger.produce("words", b"a stranger's")
    stranger.flush(30)
    yield
    with pytest.raises(KafkaException):
        stranger.commit_transaction(30)


class HandOver(NamedTuple):
    """A hand-over: the pair, for how long each group heard nothing (s), and what was checked.

    ``due``: how many generations had to be decided, of ``decided``.
    """

    pair: Pair
    silences: dict[str, float]
    due: int
    decided: int


#: The exit code of the instance that was active, unless it is killed.
CODES = {**LEAVING_CODES, impersonated: 1}


@dataclass
class Stage:
    """A broker behind a proxy, and groups that rebalance all the time."""

    cluster: ChaosCluster
    rebalancing: Rebalancing

    @contextmanager
    def pair(self, *, proxied: bool, clocks: Path | None) -> Iterator[Pair]:
        own = name("caughtup")
        commands: list[Sequence[str] | None] = [None, None]
        if clocks is not None:
            commands = [command(seconds, clocks) for seconds in CLOCKS_SECONDS]
        places = [self.cluster.behind_proxy() if proxied else self.cluster, self.cluster]
        active, standby = (
            Service(place, application_id=own, command=command)
            for place, command in zip(places, commands, strict=True)
        )
        with active:
            standby.begin()
            try:
                wait_for("the other stands by", lambda: "is active" in standby.unready())
                yield Pair(self.cluster, active, standby)
            finally:
                standby.process.terminate(10)

    def hand_over(self, fault: Leaving, seed: int, clocks: Path | None = None) -> HandOver:
        """Bring a fault upon a pair, and check what was told."""
        groups = self.rebalancing.groups
        with self.pair(proxied=fault is cut_off, clocks=clocks) as pair:

            def told() -> Told:
                return Told.of(self.cluster, pair.standby, groups)

            def is_heard() -> bool:
                """Return whether each group was told of its generation of then, or a newer one."""
                time.sleep(0.3)  # to read a whole topic takes the services' time
                found = told().decided
                return all(found.get(group, 0) >= newest[group] for group in groups)

            newest = self.rebalancing.newest()
            wait_for("each group is decided", is_heard, HEARD_SECONDS)
            since = time.time()
            time.sleep(Random(seed).uniform(0.0, 3.0))
            at = time.time()
            with fault(self.cluster, pair.active):
                wait_for("the other is ready", pair.standby.ready, TAKEN_OVER_SECONDS)
                lasted = time.time() - at
                newest = self.rebalancing.newest()
                wait_for("each group is decided again", is_heard, HEARD_SECONDS)
            process = pair.active.process
            wait_for("the first has ended", lambda: process.exit_code is not None, GONE_SECONDS)
            assert process.exit_code == CODES.get(fault, process.exit_code), pair.active.log
            judged, ends = time.time(), self.rebalancing.ends()
            began = [
                one for one in list(self.rebalancing.began) if ends.get(one[:2], judged) > since
            ]
            found = told()
            assert found.wrong(groups) == []
            due = lived(began, ends, lasted + DECIDED_SECONDS, judged)
            assert due - found.at.keys() == set()
            assert found.events
            # The times in records are by another clock where clocks are apart.
            silent = silences(found, began, ends, at) if clocks is None else {}
            return HandOver(pair, silent, len(due), len(found.decisions))


def command(seconds: int, directory: Path) -> list[str]:
    """Return the service's command with a clock that is off by so many seconds."""
    variables = another_clock(seconds, directory)
    return ["env", *(f"{name}={value}" for name, value in variables.items()), *caughtup_command()]


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"groups of seed {seed}")
    with ChaosCluster(nodes=1, controllers=1) as cluster:
        words_read(cluster, 10, 1)
        with Rebalancing(cluster, seed) as rebalancing:
            rebalancing.start()
            yield Stage(cluster, rebalancing)


def report(what: str, done: Sequence[HandOver]) -> None:
    silent = [seconds for one in done for seconds in one.silences.values()]
    due, decided = sum(one.due for one in done), sum(one.decided for one in done)
    said = [counted(len(done), "hand-over"), counted(decided, "decision"), f"{due} of them due"]
    if silent:
        median, worst = statistics.median(silent), max(silent)
        heard = f"{counted(len(silent), 'time')} a group heard nothing for {median:.1f} s"
        said.append(f"{heard} (median), {worst:.1f} s (at worst)")
    print(f"{what}: {', '.join(said)}")


@pytest.mark.thorough
def test_who_goes_while_groups_rebalance_contradicts_nobody_and_nothing_is_told_twice(
    stage: Stage, tmp_path: Path
) -> None:
    """One goes of each of five pairs. The clocks of one pair are nine minutes apart."""
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    apart = tmp_path if COMPILER is not None else None
    cases = [(fault, apart if fault is killed else None) for fault in (*LEAVING, impersonated)]
    with ThreadPoolExecutor(len(cases)) as threads:
        running = [
            threads.submit(stage.hand_over, fault, seed + number, clocks)
            for number, (fault, clocks) in enumerate(cases)
        ]
    for (fault, _), handed_over in zip(cases, running, strict=True):
        done = handed_over.result()
        report(fault.__name__, [done])
        if fault is impersonated:
            active = done.pair.active
            said = f"another producer began with the transactional id {active.application_id}"
            assert said in active.log


@pytest.mark.thorough
@pytest.mark.timeout(60 + 30 * HAND_OVERS)
def test_a_hundred_hand_overs(stage: Stage) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}, {HAND_OVERS} hand-overs")
    drawn, handed_over = Random(seed), {fault: [] for fault in LEAVING}
    for first in range(0, HAND_OVERS, _AT_ONCE):
        # One at a time is cut off: all that are behind the proxy would be.
        faults = [cut_off, *(drawn.choice(LEAVING[:3]) for _ in range(_AT_ONCE - 1))]
        faults = faults[: HAND_OVERS - first]
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            seeds = [drawn.randrange(1 << 32) for _ in faults]
            for fault, done in zip(
                faults, threads.map(stage.hand_over, faults, seeds), strict=True
            ):
                handed_over[fault].append(done)
    for fault, done in handed_over.items():
        report(fault.__name__, done)
    report("all", [one for done in handed_over.values() for one in done])


@pytest.mark.thorough
def test_no_instance_becomes_active_until_transactions_have_enough_replicas() -> None:
    names = ("transaction.state.log.replication.factor", "transaction.state.log.min.isr")
    both = dict.fromkeys((*names, "offsets.topic.replication.factor"), "2")
    with EmbeddedCluster(nodes=2, broker_properties=both) as cluster:
        words_read(cluster, 1, 1)
        first = Producer({**cluster.client_config(), "transactional.id": "first"})
        first.init_transactions(30)
        cluster.kill_node(2)
        cluster.wait_ready()
        service = Service(cluster)
        service.begin()
        said = f"the coordinator of the transactional id {service.application_id} does not let it"
        wait_for("it says so", lambda: said in service.unready(), TAKEN_OVER_SECONDS)
        cluster.start_node(2)
        wait_for("it is ready", service.ready, TAKEN_OVER_SECONDS)
        assert service.stop() == 0

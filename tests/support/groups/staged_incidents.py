"""Incidents of real consumer groups, each with a cause that is known because it is staged, or two."""

from __future__ import annotations

import json
import random
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack
from itertools import combinations
from typing import Any, NamedTuple

from confluent_kafka import Producer

from caughtup.agents.clock import now_ms
from caughtup.demo.cluster.cluster import EmbeddedCluster
from tests.support.groups.member_process import MemberProcess
from tests.support.groups.recorded_incidents import Recorded, Recorder
from tests.support.groups.staged_rebalances import CLASSIC, Stage

#: How long (s) after an incident began its cause is asked for.
_AFTER_SECONDS = 25.0
_FLOOD = 5_000
#: The recorder has been told everything from before so long (s) ago.
_TOLD_SECONDS = 2.0


class Scene:
    """Two members of one group that keep up with a topic of four partitions."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        #: The groups whose records tell about it, and their topics.
        self.groups, self.topics = [stage.group], list(stage.topics)
        self.begin()

    def begin(self) -> None:
        """Start the members, and wait until they keep up."""
        self.first, self.second = self.stage.member("first"), self.stage.member("second", **_POLL)
        self.stage.settle(2)

    def slow(self, seconds: float) -> None:
        """Let each member wait so long before each record."""
        for member in self.members:
            member.tell(f"slow {seconds}")

    @property
    def members(self) -> tuple[MemberProcess, MemberProcess]:
        """Both members."""
        return self.first, self.second

    def wants(self, topic: str) -> bool:
        """Return whether the ends of a topic tell about it."""
        return topic in self.topics


#: The second member may not poll for so long.
_POLL: dict[str, object] = {"max_poll_interval_ms": 10_000}


def open_transaction(scene: Scene) -> None:
    """A producer opens a transaction on all partitions, and leaves it open."""
    stage = scene.stage
    config = {**stage.cluster.client_config(), "transactional.id": f"{stage.group}-open"}
    producer = Producer(config)
    producer.init_transactions(30)
    producer.begin_transaction()
    for partition in range(4):
        producer.produce(stage.topics[0], b"open", partition=partition)
    producer.flush(30)
    stage.running.callback(producer.abort_transaction, 30)


def poll_interval_exceeded(scene: Scene) -> None:
    """A member takes too long with the records of one poll."""
    scene.second.tell("stall")


def slow_consumer(scene: Scene) -> None:
    """Both members read more slowly than records come."""
    scene.slow(0.7)


def hot_partition(scene: Scene) -> None:
    """One partition gets many records at once, more than its member reads."""
    stage = scene.stage
    scene.slow(0.02)
    producer = Producer(stage.cluster.client_config())
    for _ in range(_FLOOD):
        producer.produce(stage.topics[0], b"x" * 100, partition=stage.rng.choice([2]))
    producer.flush(30)


def no_members(scene: Scene) -> None:
    """Both members leave."""
    for member in scene.members:
        member.leave()


def rebalance_storm(scene: Scene) -> None:
    """A third member starts and stops again and again."""
    for _ in range(4):
        with scene.stage.member("restless") as member:
            time.sleep(2.0)
            member.leave()


Act = Callable[[Any], None]
SINGLE: list[Act] = [
    open_transaction,
    poll_interval_exceeded,
    slow_consumer,
    hot_partition,
    no_members,
    rebalance_storm,
]
#: Two at once that don't exclude each other: without members nobody is slow, or polls too seldom.
DOUBLE: list[tuple[Act, ...]] = [
    pair
    for pair in combinations(SINGLE, 2)
    if not (no_members in pair and pair != (open_transaction, no_members))
    and pair not in {(slow_consumer, hot_partition), (open_transaction, slow_consumer)}
]


class Incident(NamedTuple):
    """What is staged: acts, one after the other, in a scene.

    ``replicas``: of each partition of the group's topic, with 0 for the broker that is lost; None for
    the brokers' choice. ``kinds``: how ``why`` may name it first, by default as the acts are named.
    """

    acts: tuple[Act, ...]
    scene: Callable[[Stage], Scene] = Scene
    replicas: list[list[int]] | None = None
    kinds: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The names of its acts."""
        return "+".join(act.__name__ for act in self.acts)

    @property
    def staged(self) -> tuple[str, ...]:
        """How ``why`` may name it first."""
        return self.kinds or tuple(act.__name__ for act in self.acts)


INCIDENTS = [Incident((one,)) for one in SINGLE] + [Incident(pair) for pair in DOUBLE]


class Answered(NamedTuple):
    """What was staged, and the links of the service's answer."""

    staged: tuple[str, ...]
    kinds: list[str]
    answer: dict[str, Any]

    @property
    def is_right(self) -> bool:
        """Whether a staged cause comes first."""
        return self.kinds[:1] != [] and self.kinds[0] in self.staged

    @property
    def has_all(self) -> bool:
        """Whether every staged cause is there."""
        return set(self.staged) <= set(self.kinds)

    @property
    def invented(self) -> list[str]:
        """The causes that are called certain, and weren't staged; what follows from causes is none."""
        return [
            link["kind"]
            for link in self.answer.get("links", ())
            if link["sure"] == "certain" and link["kind"] in CAUSES - set(self.staged)
        ]


#: The causes that nothing else can be taken for: a group is slow, or has a hot partition, for many reasons.
CAUSES = {
    one.__name__ for one in SINGLE if one is not slow_consumer and one is not hot_partition
} | {
    "broker_gone",
    "no_leader",
    "reassignment",
    "connect_task_failed",
    "restoring_tasks",
    "warmups_waiting",
}


def why_of(url: str, group: str) -> dict[str, Any]:
    """Return a service's answer to why a group is as it is."""
    address = f"{url}api/groups/{urllib.parse.quote(group)}/why"
    with urllib.request.urlopen(address, timeout=30) as answer:
        found: dict[str, Any] = json.loads(answer.read())
    return found


def answered(
    cluster: EmbeddedCluster,
    url: str,
    incident: Incident,
    seed: int,
    old_topic: str,
    recorder: Recorder | None = None,
) -> tuple[Answered, Recorded | None]:
    """Stage an incident, ask the service why the group is as it is, and end its members.

    Return its answer, and with a recorder the recording of what it was told.
    """
    rng = random.Random(f"{seed} {incident.name}")
    recorded, began_ms = None, now_ms()
    lost = rng.choice(cluster.node_ids[1:] or (0,))  # the first node is the controller
    replicas = incident.replicas
    if replicas is not None:
        replicas = [[broker or lost for broker in one] for one in replicas]
    with ExitStack() as running:
        stage = Stage(cluster, url, CLASSIC, rng, running, old_topic, replicas)
        stage.lost = lost
        scene = incident.scene(stage)
        for act in incident.acts:
            act(scene)
        time.sleep(_AFTER_SECONDS)
        answer, asked_ms = why_of(url, stage.group), now_ms()
        if recorder is not None:
            time.sleep(_TOLD_SECONDS)
            events = recorder.of(scene.groups, scene.wants, began_ms)
            recorded = Recorded(list(incident.staged), stage.group, asked_ms, events)
    kinds = [link["kind"] for link in answer.get("links", ())]
    return Answered(incident.staged, kinds, answer), recorded

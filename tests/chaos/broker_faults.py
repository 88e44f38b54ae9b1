"""Faults of brokers, of their logs, and of the network to them: each on within its context."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from random import Random

from confluent_kafka.admin import AdminClient

from caughtup.agents.kafka.protocol.client import reassigner
from caughtup.demo.cluster.throttle import clear_throttle, set_throttle
from caughtup.models.errors import CaughtupError
from caughtup.models.ids import TopicPartition
from caughtup.models.wire.record_keys import CONSUMER_OFFSETS
from tests.chaos.cluster import OFFSETS_PARTITIONS, coordinator
from tests.chaos.groups import CANARIES, HEAVY, UNCLEAN
from tests.chaos.scene import Scene
from tests.chaos.schedule import Fault

_THROTTLE = 1_000_000
_STEP_SECONDS = 3.0


def _broker(scene: Scene, fault: Fault) -> int:
    return scene.cluster.node_ids[fault.target % len(scene.cluster.node_ids)]


@contextmanager
def broker_killed(scene: Scene, fault: Fault, node: int | None = None) -> Iterator[None]:
    """SIGKILL a broker, and start it again."""
    killed = node or _broker(scene, fault)
    scene.cluster.kill_node(killed)
    try:
        yield
    finally:
        scene.cluster.start_node(killed)


@contextmanager
def broker_suspended(scene: Scene, fault: Fault) -> Iterator[None]:
    """SIGSTOP a broker: its connections stay open, and nothing comes."""
    process = scene.cluster.process(_broker(scene, fault))
    os.kill(process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process.pid, signal.SIGCONT)


def coordinator_killed(scene: Scene, fault: Fault) -> AbstractContextManager[None]:
    """SIGKILL the broker that coordinates the service's own group, or a canary's."""
    own = scene.active.service.application_id
    group = own if fault.target % 2 else CANARIES[fault.target % len(CANARIES)].group
    return broker_killed(scene, fault, coordinator(scene.cluster, group)[0])


@contextmanager
def all_brokers_down(scene: Scene, fault: Fault) -> Iterator[None]:
    """SIGKILL every broker, and start them all again."""
    nodes = scene.cluster.running_nodes
    for node in nodes:
        scene.cluster.kill_node(node)
    try:
        yield
    finally:
        scene.cluster.start_nodes(nodes)


@contextmanager
def unclean_election(scene: Scene, fault: Fault) -> Iterator[None]:
    """Let a replica lead that was out of sync: what was written since is cut off, end offsets fall."""
    cluster = scene.cluster
    admin = AdminClient(cluster.client_config())
    found = admin.list_topics(UNCLEAN, timeout=10).topics[UNCLEAN].partitions[0]
    behind = next(node for node in found.replicas if node != found.leader)
    down = [behind]
    cluster.kill_node(behind)
    try:
        time.sleep(fault.seconds)
        cluster.kill_node(found.leader)
        down.append(found.leader)
        cluster.start_nodes([behind])
        down.remove(behind)
        yield
    finally:
        cluster.start_nodes(down)


@contextmanager
def offsets_log_moved(scene: Scene, fault: Fault) -> Iterator[None]:
    """Move partitions of ``__consumer_offsets`` to other brokers while they are read."""
    random, nodes = Random(fault.seed), scene.cluster.node_ids
    reassign = reassigner(scene.cluster.bootstrap_servers)
    for partition in range(OFFSETS_PARTITIONS):
        replicas = random.sample(nodes, random.randint(1, len(nodes)))
        with suppress(CaughtupError, OSError, TimeoutError):
            reassign(TopicPartition(CONSUMER_OFFSETS, partition), replicas)
    try:
        yield
    finally:
        for partition in range(OFFSETS_PARTITIONS):
            replicas = random.sample(nodes, len(nodes))
            with suppress(CaughtupError, OSError, TimeoutError):
                reassign(TopicPartition(CONSUMER_OFFSETS, partition), replicas)


@contextmanager
def throttled_reassignment(scene: Scene, fault: Fault) -> Iterator[None]:
    """Move a large partition under a throttle, and take the throttle away."""
    random, reassign = Random(fault.seed), reassigner(scene.cluster.bootstrap_servers)
    nodes = list(scene.cluster.node_ids)
    alone = [random.choice(nodes)]
    with suppress(CaughtupError):
        reassign(TopicPartition(HEAVY, 0), alone)
    time.sleep(_STEP_SECONDS)
    set_throttle(scene.cluster, HEAVY, _THROTTLE)
    try:
        with suppress(CaughtupError):
            reassign(TopicPartition(HEAVY, 0), [*alone, *(n for n in nodes if n not in alone)])
            scene.moving[HEAVY, 0] = time.monotonic()
        yield
    finally:
        scene.moving.clear()
        clear_throttle(scene.cluster, HEAVY)


@contextmanager
def _hanging(scene: Scene, *ports: int) -> Iterator[None]:
    """Hold these ports of the proxy, all without any, and say so to the judge."""
    scene.network_hangs = True
    try:
        with scene.cluster.proxy.holding(*ports):
            yield
    finally:
        scene.network_hangs = False


@contextmanager
def half_open_network(scene: Scene, fault: Fault) -> Iterator[None]:
    """Forward nothing between the service and any broker; connections stay open."""
    with _hanging(scene):
        yield


@contextmanager
def half_open_to_one(scene: Scene, fault: Fault) -> Iterator[None]:
    """Forward nothing between the service and one broker."""
    with _hanging(scene, *scene.cluster.proxy_ports(_broker(scene, fault))):
        yield

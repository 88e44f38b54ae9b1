"""Faults of the service, of its topics, and what hostile clients do: each on within its context."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from random import Random

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from caughtup.demo.fleet.connection import Error, GroupConnection
from caughtup.models.errors import CaughtupError
from caughtup.models.ids import ProcessId, TaskId
from caughtup.models.records.topics import (
    END_OFFSETS,
    LAG,
    MOVEMENTS,
    REASSIGNMENTS,
    RECOMMENDATIONS,
)
from caughtup.models.wire.group_metadata import ConsumerSubscription
from caughtup.models.wire.user_data import encode_subscription_info
from tests.chaos.cluster import coordinator
from tests.chaos.groups import WORDS
from tests.chaos.scene import Scene
from tests.chaos.schedule import Fault
from tests.fuzz.service_topics import ServiceTopics
from tests.fuzz.values import Values
from tests.support import wire
from tests.support.service import wait_for

_DELETED = (END_OFFSETS, REASSIGNMENTS, RECOMMENDATIONS, MOVEMENTS, LAG)
_POISON_RECORDS = 400
_LONG_MIN = -(1 << 63)


@contextmanager
def service_killed(scene: Scene, fault: Fault) -> Iterator[None]:
    """SIGKILL an instance, and start it again."""
    instance = scene.hit(fault)
    instance.kill()
    try:
        yield
    finally:
        instance.begin()


@contextmanager
def service_suspended(scene: Scene, fault: Fault) -> Iterator[None]:
    """SIGSTOP an instance."""
    with scene.hit(fault).held():
        yield


@contextmanager
def instance_ended(scene: Scene, fault: Fault) -> Iterator[None]:
    """End an instance by SIGTERM, and start it again."""
    instance = scene.hit(fault)
    instance.stop()
    try:
        yield
    finally:
        instance.begin()


@contextmanager
def instance_cut_off(scene: Scene, fault: Fault) -> Iterator[None]:
    """Forward nothing between one instance and the brokers; connections stay open."""
    with scene.cut_off(scene.hit(fault)):
        yield


@contextmanager
def all_instances_killed(scene: Scene, fault: Fault) -> Iterator[None]:
    """SIGKILL all instances, and start them again."""
    killed = [instance for instance in scene.instances if instance.wanted]
    for instance in killed:
        instance.kill()
    try:
        yield
    finally:
        for instance in killed:
            instance.begin()


@contextmanager
def second_instance(scene: Scene, fault: Fault) -> Iterator[None]:
    """Start one more instance, and stop it again."""
    second = scene.other
    second.begin()
    try:
        yield
    finally:
        second.stop()


@contextmanager
def hand_over(scene: Scene, fault: Fault) -> Iterator[None]:
    """Start one more instance, and end another: by SIGKILL, SIGTERM, or suspended for a while."""
    first, second = scene.hit(fault), scene.other
    second.begin()
    with suppress(AssertionError, OSError):
        if scene.shares:
            wait_for("it has a share", lambda: second.is_ready, 30)
        else:
            wait_for("the second stands by", lambda: "is active" in second.service.unready(), 30)
    first.wanted = False
    with ExitStack() as stack:
        match fault.target % 3:
            case 0:
                first.kill()
            case 1:
                first.stop()
            case _:
                stack.enter_context(first.held())
        yield
    first.stop()


@contextmanager
def own_topic_deleted(scene: Scene, fault: Fault) -> Iterator[None]:
    """Delete a topic of the service's own."""
    name = _DELETED[fault.target % len(_DELETED)]
    topic = scene.active.service.topic(name)
    admin = AdminClient(scene.cluster.client_config())
    admin.delete_topics([topic])[topic].result(20)
    scene.teller.begin_anew(name)
    yield


@contextmanager
def poison(scene: Scene, fault: Fault) -> Iterator[None]:
    """Write hostile records to the service's own topics."""
    values = Values(Random(fault.seed))
    values.now_ms = time.time_ns() // 1_000_000
    hostile = ServiceTopics(values)
    producer = Producer({**scene.cluster.client_config(), "message.timeout.ms": 10_000})
    service = scene.active.service
    for _ in range(_POISON_RECORDS):
        told = hostile.record()
        producer.produce(service.topic(told.topic), told.value, told.key)
        producer.poll(0)
    producer.flush(10)
    yield


@contextmanager
def hostile_member(scene: Scene, fault: Fault) -> Iterator[None]:
    """Join a group as a Streams member whose offset sums and tasks are none."""
    random = Random(fault.seed)
    sums = {
        TaskId(random.choice((0, 1, (1 << 31) - 1)), n): random.choice((_LONG_MIN, -5, 1 << 62))
        for n in range(20)
    }
    said = encode_subscription_info(ProcessId.of(random.getrandbits(60)), sums, 0)
    subscription = wire.subscription(ConsumerSubscription(3, (WORDS,), said, (), -1, None))
    group = f"hostile-{fault.seed}"
    with GroupConnection(
        coordinator(scene.cluster, group)[1], "hostile-StreamThread-1", 15
    ) as member:
        member.send_join(group, "", "stream", subscription, 10_000)
        joined = member.joined()
        if joined.error == Error.MEMBER_ID_REQUIRED:
            member.send_join(group, joined.member_id, "stream", subscription, 10_000)
            joined = member.joined()
        member.require(joined.error)
        member.send_sync(group, joined.generation, joined.member_id, {joined.member_id: said})
        member.synced()
        yield
        with suppress(CaughtupError):
            member.leave(group, joined.member_id)

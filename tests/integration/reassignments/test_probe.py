"""Rounds of observations of real reassignments: what each broker answers, also while one is gone or hangs."""

from __future__ import annotations

import asyncio
import os
import signal
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator

import pytest
from aiokafka.errors import KafkaConnectionError
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from caughtup.agents.kafka.protocol.requests import Key
from caughtup.agents.probes.reassignments import ReassignmentObserver, ReassignmentRound
from caughtup.demo.cluster.broker_config import Security
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.throttle import clear_throttle, set_throttle
from caughtup.models.ids import TopicPartition
from caughtup.models.records.reassignments import ReassignmentRecord, ThrottleRecord
from tests.integration.conftest import MakeCluster
from tests.support.service import SECONDS

pytestmark = pytest.mark.thorough

#: So slow that what is moved here doesn't get further than a first fetch, which is 1 MiB.
THROTTLE = 1_000
RECORDS, RECORD_BYTES = 300, 10_000


@pytest.fixture(scope="module")
def brokers() -> Iterator[EmbeddedCluster]:
    """Three nodes, of which the first is the controller; the third is stopped and killed here."""
    with EmbeddedCluster(nodes=3) as cluster:
        yield cluster


@pytest.fixture
async def observer(brokers: EmbeddedCluster) -> AsyncIterator[ReassignmentObserver]:
    config = {"bootstrap_servers": brokers.bootstrap_servers, "client_id": "looks"}
    async with ReassignmentObserver(config, timeout_seconds=2.0) as observer:
        yield observer


def make_topic(cluster: EmbeddedCluster, partitions: int = 1) -> str:
    """Make a topic of partitions on brokers 1 and 2, with records in each of them."""
    name = f"moved-{uuid.uuid4().hex[:8]}"
    admin = AdminClient(cluster.client_config())
    topic = NewTopic(name, partitions, replica_assignment=[[1, 2]] * partitions)
    admin.create_topics([topic])[name].result(30)
    producer = Producer({**cluster.client_config(), "acks": "all"})
    for number in range(partitions * RECORDS):
        producer.produce(name, os.urandom(RECORD_BYTES), partition=number % partitions)
    assert producer.flush(60) == 0
    return name


async def reassign(observer: ReassignmentObserver, *partitions: TopicPartition) -> None:
    """Let them go from brokers 1 and 2 to 3 and 1."""
    await observer.protocol.alter_reassignments({partition: [3, 1] for partition in partitions})


async def throttled_reassignment(
    brokers: EmbeddedCluster, observer: ReassignmentObserver
) -> TopicPartition:
    """Begin to reassign a partition of a topic that is throttled."""
    partition = TopicPartition(make_topic(brokers), 0)
    set_throttle(brokers, partition.topic, THROTTLE)
    await reassign(observer, partition)
    return partition


async def until(
    observer: ReassignmentObserver, seen: Callable[[ReassignmentRound], bool], *also: TopicPartition
) -> ReassignmentRound:
    """Observe again and again until something is seen."""
    deadline = time.monotonic() + SECONDS
    while not seen(found := await observer.observe(also)):
        assert time.monotonic() < deadline, f"never seen; the last round was {found}"
        await asyncio.sleep(0.05)
    return found


def look_at(found: ReassignmentRound, partition: TopicPartition) -> ReassignmentRecord | None:
    return next(
        (observation for observation in found.ongoing if observation.topic_partition == partition),
        None,
    )


async def test_a_round_sees_every_replica_and_what_holds_it_back(
    brokers: EmbeddedCluster, observer: ReassignmentObserver
) -> None:
    partition = await throttled_reassignment(brokers, observer)

    def is_created(found: ReassignmentRound) -> bool:
        """Brokers learn of topics and throttles one after the other, and a busy one is late."""
        observation = look_at(found, partition)
        return (
            observation is not None
            and 3 in observation.log_ends
            and 3 in observation.sizes
            and not found.cluster.missing
            and partition.topic in found.cluster.throttles
            and all(
                broker.leader_rate and broker.follower_rate
                for broker in (found.cluster.brokers or {}).values()
            )
        )

    found = await until(observer, is_created)
    observation = look_at(found, partition)
    assert observation is not None
    assert (observation.replicas, observation.adding, observation.removing) == (
        (3, 1, 2),
        (3,),
        (2,),
    )
    assert (set(observation.isr), observation.leader, observation.leader_epoch) == ({1, 2}, 1, 0)
    assert (observation.offline, observation.not_hosted, observation.unanswered) == ((), (), ())
    assert observation.log_ends[1] == observation.log_ends[2] == RECORDS
    assert observation.log_ends[3] < RECORDS
    assert observation.sizes[1] > RECORDS * RECORD_BYTES > observation.sizes[3]
    cluster = found.cluster
    assert (found.listed, cluster.missing, cluster.zookeeper) == (True, (), False)
    assert (cluster.quorum_leader, cluster.software) == (1, (4, 3))
    assert cluster.throttles[partition.topic] == ThrottleRecord("*", "*")
    assert cluster.brokers is not None
    assert sorted(cluster.brokers) == [1, 2, 3]
    for broker in cluster.brokers.values():
        rates = broker.leader_rate, broker.follower_rate
        assert (broker.fenced, *rates) == (False, THROTTLE, THROTTLE)
        assert 0 < (broker.usable_bytes or 0) < (broker.total_bytes or 0)
    clear_throttle(brokers, partition.topic)

    def is_over(found: ReassignmentRound) -> bool:
        """Metadata may be older than the list of reassignments."""
        shape = found.described.get(partition)
        over = look_at(found, partition) is None and shape is not None
        return over and shape.replicas == (3, 1)

    await until(observer, is_over, partition)


async def test_of_partitions_that_do_not_move_the_shapes_are_told(
    brokers: EmbeddedCluster, observer: ReassignmentObserver
) -> None:
    topic = make_topic(brokers, partitions=5)
    asked = [TopicPartition(topic, partition) for partition in (0, 1, 4, 5)]
    other = TopicPartition("no-such-topic", 0)
    found = await observer.observe([*asked, other])
    assert found.ongoing == ()
    assert found.described[other] is None
    assert found.described[asked[3]] is None
    assert (await observer.observe(asked[3:])).described == {asked[3]: None}
    for partition in asked[:3]:
        shape = found.described[partition]
        assert shape is not None
        assert (shape.replicas, set(shape.isr), shape.leader) == ((1, 2), {1, 2}, 1)


async def test_a_throttle_is_seen_where_nothing_moves(brokers: EmbeddedCluster) -> None:
    topic = make_topic(brokers)
    set_throttle(brokers, topic, THROTTLE)
    try:
        async with ReassignmentObserver(
            {"bootstrap_servers": brokers.bootstrap_servers}
        ) as observer:
            found = await observer.observe()
    finally:
        clear_throttle(brokers, topic)
    assert found.cluster.throttles[topic] == ThrottleRecord("*", "*")
    assert found.cluster.brokers is not None
    assert {broker.leader_rate for broker in found.cluster.brokers.values()} == {THROTTLE}


async def test_a_broker_that_hangs_costs_only_what_it_alone_knows(
    brokers: EmbeddedCluster, observer: ReassignmentObserver
) -> None:
    partition = await throttled_reassignment(brokers, observer)
    await until(observer, lambda found: look_at(found, partition) is not None)
    pid = brokers._running[3].pid
    os.kill(pid, signal.SIGSTOP)
    try:
        found, again = await observer.observe(), await observer.observe()
    finally:
        os.kill(pid, signal.SIGCONT)
    for seen, why in ((found, "no answer within 2 s"), (again, "caughtup asks it again later")):
        observation = look_at(seen, partition)
        assert observation is not None
        assert observation.unanswered == (3,)
        assert set(observation.log_ends) == set(observation.sizes) == {1, 2}
        (missing,) = [what for what in seen.cluster.missing if "replicas on broker 3" in what]
        assert missing.endswith(why)
    await observer.protocol.alter_reassignments({partition: None})
    clear_throttle(brokers, partition.topic)
    brokers.wait_ready()


async def test_a_broker_that_is_gone_is_told_from_one_without_a_replica(
    brokers: EmbeddedCluster, observer: ReassignmentObserver
) -> None:
    partition = await throttled_reassignment(brokers, observer)
    brokers.kill_node(3)

    def is_fenced(found: ReassignmentRound) -> bool:
        assert found.cluster.brokers is not None
        return found.cluster.brokers[3].fenced is True and look_at(found, partition) is not None

    observation = look_at(await until(observer, is_fenced), partition)
    assert observation is not None
    assert (observation.unanswered, observation.not_hosted, observation.offline) == ((3,), (), (3,))
    await observer.protocol.alter_reassignments({partition: None})
    found = await until(observer, lambda found: not look_at(found, partition), partition)
    shape = found.described[partition]
    assert shape is not None
    assert set(shape.replicas) == {1, 2}
    brokers.start_node(3)
    clear_throttle(brokers, partition.topic)


async def test_without_describe_the_round_says_so_and_goes_on(make_cluster: MakeCluster) -> None:
    users = {"admin": "a", "nobody": "b"}
    cluster = make_cluster(security=Security("sasl_plaintext", users, authorizer=True))
    config = {
        "bootstrap_servers": cluster.bootstrap_servers,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "nobody",
        "sasl_plain_password": users["nobody"],
    }
    async with ReassignmentObserver(config) as observer:
        found = await observer.observe([TopicPartition("hidden", 0)])
    assert (found.listed, found.ongoing, found.described) == (False, (), {})
    assert found.cluster.brokers is not None
    assert sorted(found.cluster.brokers) == [1]
    assert found.cluster.software == (4, 3)
    assert found.cluster.missing == (
        "partitions in movement: missing: DESCRIBE on the cluster",
        "replicas, ISR and leaders: missing: DESCRIBE on the topic hidden",
        "the controllers' quorum: missing: DESCRIBE on the cluster",
        "the names of topics: missing: DESCRIBE_CONFIGS on the cluster",
        "throttles of broker 1: missing: DESCRIBE_CONFIGS on the cluster",
    )


async def test_where_no_broker_can_be_reached_there_is_no_round(unused_tcp_port: int) -> None:
    observer = ReassignmentObserver({"bootstrap_servers": f"127.0.0.1:{unused_tcp_port}"})
    with pytest.raises(KafkaConnectionError, match="Connection refused"):
        await observer.observe()


async def test_brokers_that_offer_less_tell_the_same_in_other_ways(
    brokers: EmbeddedCluster, observer: ReassignmentObserver
) -> None:
    topics = {make_topic(brokers, partitions=5), make_topic(brokers)}
    wanted = [TopicPartition(topic, 0) for topic in (*topics, "no-such-topic")]
    everything = await observer.observe(wanted)
    names = await observer.protocol.topic_names()
    assert topics <= set(names)
    for key in (Key.LIST_CONFIG_RESOURCES, Key.DESCRIBE_TOPIC_PARTITIONS, Key.DESCRIBE_CLUSTER):
        for offered in observer.protocol.connections.all_offered():
            del offered.requests[key]
        assert await observer.protocol.topic_names() == names
        assert (await observer.observe(wanted)).described == everything.described
    seen = (await observer.observe()).cluster.brokers or {}
    assert {broker: observation.fenced for broker, observation in seen.items()} == {
        1: None,
        2: None,
        3: None,
    }
    for offered in observer.protocol.connections.all_offered():
        del offered.requests[Key.DESCRIBE_LOG_DIRS]
    partition = wanted[0]
    set_throttle(brokers, partition.topic, THROTTLE)
    await reassign(observer, partition)
    found = await until(observer, lambda found: look_at(found, partition) is not None)
    observation = look_at(found, partition)
    assert observation is not None
    assert observation.sizes == {}
    assert "sizes on broker 1: the broker does not support DescribeLogDirs" in found.cluster.missing
    await observer.protocol.alter_reassignments({partition: None})
    clear_throttle(brokers, partition.topic)

"""Groups that are there all the time, and a record of what rounds of questions bring about them."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from caughtup.agents.kafka.asking.asker import GroupAsker
from caughtup.agents.kafka.protocol.client import ClusterProtocol
from caughtup.demo.cluster.broker_config import Security
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.load import produce
from caughtup.demo.processes.children import Processes
from caughtup.models.assignors.java.strings import coordinator_partition
from caughtup.models.polls.asked import AskedGroups
from caughtup.models.state.cluster import ClusterState
from caughtup.models.watching import Watching
from tests.support.groups.staged_rebalances import old_topic
from tests.support.kafka.rewriting import Rewriting, Rule
from tests.support.service import commit, wait_for

#: Of an embedded cluster's __consumer_offsets.
_OFFSETS_PARTITIONS = 4
#: Members that nobody polls stay for longer than the tests.
_UNPOLLED_MS = 3_600_000


class Groups(NamedTuple):
    """Groups that are there all the time: two with a member, and some of commits alone."""

    topic: str
    classic: str
    consumer: str
    empty: tuple[str, ...]
    pattern: str

    @property
    def all(self) -> tuple[str, ...]:
        """The names of all."""
        return (self.classic, self.consumer, *self.empty)


@contextmanager
def standing_groups(cluster: EmbeddedCluster) -> Iterator[Groups]:
    """Make such groups of a cluster, which end with the context."""
    topic = old_topic(cluster)
    produce(cluster, topic, 40)
    odd = (" ", "päckchen\n\t🜁", "[a-z]*'\"\\", "x" * 249)
    while True:
        mark = uuid.uuid4().hex[:8]
        made = Groups(
            topic,
            f"classic-{mark}",
            f"consumer-{mark}",
            tuple(f"empty-{mark}{name}" for name in odd),
            f"(?s:.*{mark}.*)",
        )
        # Two brokers lead the partitions in turn: each has to coordinate some of the groups.
        if len({coordinator_partition(name, _OFFSETS_PARTITIONS) % 2 for name in made.all}) == 2:
            break
    for group in made.empty:
        commit(cluster, group, topic, 4)
    members = []
    try:
        for protocol in ("classic", "consumer"):
            member = Consumer(
                {
                    **cluster.client_config(),
                    "group.id": f"{protocol}-{mark}",
                    "group.protocol": protocol,
                    "enable.auto.commit": False,
                    "max.poll.interval.ms": _UNPOLLED_MS,
                    "auto.offset.reset": "earliest",
                }
            )
            members.append(member)
            member.subscribe([topic])
            wait_for("a record", lambda member=member: member.poll(0.1))
            offsets = [TopicPartition(topic, one.partition, 1) for one in member.assignment()]
            member.commit(offsets=offsets, asynchronous=False)
        yield made
    finally:
        for member in members:
            member.close()


class Asked:
    """What rounds of questions have brought so far."""

    def __init__(self, protocol: ClusterProtocol) -> None:
        self.protocol, self.known, self.errors = protocol, AskedGroups(), list[str]()
        self.asker = GroupAsker(protocol, self.known, self.errors.append)
        self.state = ClusterState("c", {})
        self.answered = set[str]()
        self.is_whole = False

    async def round(self, watching: Watching) -> None:
        """Ask about every group once."""
        self.answered.clear()
        self.errors.clear()

        async def took(asked_ms: int, answered: set[str]) -> None:
            self.state.apply_batch(self.known.take(), asked_ms)
            self.answered.update(answered)

        self.is_whole = await self.asker.round(watching, took)  # type: ignore[arg-type]

    def committed(self, group: str) -> bool:
        """Return whether commits of a group are known."""
        return group in self.state.commits.groups()

    def offsets(self, group: str) -> dict[tuple[str, int], int]:
        """Return a group's commits by topic and partition."""
        return {
            (topic, number): commit.committed
            for name, (topic, number), commit in self.state.commits
            if name == group
        }

    def members(self, group: str) -> int | None:
        """Return the number of a group's members, None if they are not known."""
        membership = self.state.groups.membership(group)
        return None if membership is None else len(membership.members)


@dataclass
class Behind:
    """A cluster as it is seen through a network that rewrites."""

    bootstrap_servers: str
    processes: Processes
    security: Security


@asynccontextmanager
async def asking(
    cluster: EmbeddedCluster, *rules: Rule, one_address: bool = False
) -> AsyncIterator[tuple[Asked, Rewriting]]:
    async with AsyncExitStack() as stack:
        proxy = stack.enter_context(
            Rewriting(cluster.bootstrap_servers, *rules, one_address=one_address)
        )
        config = {"bootstrap_servers": proxy.bootstrap_servers}
        protocol = await stack.enter_async_context(ClusterProtocol(config, 5.0))
        yield Asked(protocol), proxy


def deleted(cluster: EmbeddedCluster, group: str) -> None:
    """Delete a group."""
    admin = AdminClient(cluster.client_config())  # Held: a collected client drops its requests.
    admin.delete_consumer_groups([group])[group].result(30)

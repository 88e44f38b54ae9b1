"""Coordinators that don't answer as they should: each failure costs its own groups, and is counted."""

from __future__ import annotations

import asyncio
import random
import re
import time
import uuid
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest
from aiokafka.errors import KafkaError
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from caughtup.agents.kafka.asking import answers
from caughtup.agents.kafka.asking.asker import GroupAsker
from caughtup.agents.kafka.protocol.client import ClusterProtocol
from caughtup.agents.kafka.protocol.requests import Key
from caughtup.demo.cluster.broker_config import Security
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.load import produce
from caughtup.demo.processes.children import Processes
from caughtup.models.assignors.java.strings import coordinator_partition
from caughtup.models.polls.asked import AskedGroups
from caughtup.models.state.cluster import ClusterState
from caughtup.models.watching import Watching, WatchPatterns
from tests.support.groups.staged_rebalances import old_topic
from tests.support.kafka import rewriting
from tests.support.kafka.rewriting import Rewriting, Rule
from tests.support.service import Service, caughtup, commit, wait_for

#: Kafka's error codes.
UNKNOWN_SERVER_ERROR, NOT_COORDINATOR, AUTHORIZATION_FAILED = -1, 16, 30
TOPIC_AUTHORIZATION_FAILED = 29
_ASKED = (Key.LIST_GROUPS, Key.DESCRIBE_GROUPS, Key.CONSUMER_GROUP_DESCRIBE, Key.OFFSET_FETCH)

#: Of the shared cluster's __consumer_offsets.
_OFFSETS_PARTITIONS = 4


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


@pytest.fixture(scope="module")
def groups(shared_cluster: EmbeddedCluster) -> Iterator[Groups]:
    topic = old_topic(shared_cluster)
    produce(shared_cluster, topic, 10)
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
        commit(shared_cluster, group, topic, 4)
    members = []
    try:
        for protocol in ("classic", "consumer"):
            member = Consumer(
                {
                    **shared_cluster.client_config(),
                    "group.id": f"{protocol}-{mark}",
                    "group.protocol": protocol,
                    "enable.auto.commit": False,
                    "auto.offset.reset": "earliest",
                }
            )
            members.append(member)
            member.subscribe([topic])
            wait_for("a record", lambda member=member: member.poll(0.1))
            member.commit(asynchronous=False)
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


@pytest.fixture
def watching(groups: Groups) -> Watching:
    return Watching(WatchPatterns(groups=(groups.pattern,)))


async def test_what_is_answered_is_known(
    shared_cluster: EmbeddedCluster, groups: Groups, watching: Watching
) -> None:
    async with asking(shared_cluster) as (asked, proxy):
        for _ in range(2):
            await asked.round(watching)
            assert (asked.errors, asked.is_whole) == ([], True)
            assert asked.answered == set(groups.all)
        assert all(map(asked.committed, groups.all))
        assert asked.members(groups.classic) == asked.members(groups.consumer) == 1
        assert proxy.requests[Key.CONSUMER_GROUP_DESCRIBE] == 2


@pytest.mark.parametrize(
    "most",
    [
        {Key.CONSUMER_GROUP_DESCRIBE: None},
        {Key.STREAMS_GROUP_DESCRIBE: None},
        {Key.OFFSET_FETCH: 5},
        {Key.LIST_GROUPS: 4},
        {Key.LIST_GROUPS: 4, Key.OFFSET_FETCH: 7, Key.CONSUMER_GROUP_DESCRIBE: None},
        {Key.DESCRIBE_GROUPS: 4},
    ],
    ids=[
        "no consumer groups",
        "no streams groups",
        "commits of one group",
        "no types",
        "an old broker",
        "no classic groups",
    ],
)
@pytest.mark.parametrize("nodes", [None, (0,)], ids=["all", "one"])
async def test_requests_that_brokers_do_not_offer(
    shared_cluster: EmbeddedCluster,
    groups: Groups,
    watching: Watching,
    most: dict[Key, int | None],
    nodes: Sequence[int] | None,
) -> None:
    async with asking(shared_cluster, rewriting.offering(most, nodes)) as (asked, _):
        for _ in range(2):
            await asked.round(watching)
            assert asked.is_whole
            assert asked.answered == set(groups.all), "their commits are answered about"
        assert all(map(asked.committed, groups.all)), asked.errors
        consumer = 0 if most.get(Key.LIST_GROUPS) or Key.CONSUMER_GROUP_DESCRIBE in most else 1
        classic = 0 if Key.DESCRIBE_GROUPS in most else 1
        if nodes is None:
            assert asked.members(groups.consumer) == (consumer or None)
            assert asked.members(groups.classic) == (classic or None)
            unsupported = Key.DESCRIBE_GROUPS in most or (
                Key.CONSUMER_GROUP_DESCRIBE in most and Key.LIST_GROUPS not in most
            )
            assert bool(asked.errors) == unsupported, asked.errors


async def test_one_groups_failure_costs_no_other(
    shared_cluster: EmbeddedCluster, groups: Groups, watching: Watching
) -> None:
    others = set(groups.all) - {groups.consumer}
    async with asking(shared_cluster) as (asked, proxy):
        await asked.round(watching)
        for rule in (
            rewriting.failing(groups.consumer, UNKNOWN_SERVER_ERROR),
            rewriting.garbled(groups.consumer, Key.CONSUMER_GROUP_DESCRIBE),
            rewriting.garbled(groups.consumer, Key.OFFSET_FETCH),
            rewriting.cut(Key.CONSUMER_GROUP_DESCRIBE, about=groups.consumer),
            rewriting.cut(Key.OFFSET_FETCH, about=groups.consumer),
        ):
            proxy.rules = [rule]
            for _ in range(2):
                await asked.round(watching)
                assert asked.answered == others
                assert asked.errors, "a failure that goes on is counted again"
                assert len(asked.errors) <= 2, asked.errors
                assert asked.known.names() == set(groups.all)
            proxy.rules = []
            await asked.round(watching)
            assert asked.answered == set(groups.all)
        assert asked.committed(groups.consumer)
        assert asked.members(groups.consumer) == 1


async def test_a_group_that_may_not_be_described_is_left_alone(
    shared_cluster: EmbeddedCluster, groups: Groups, watching: Watching
) -> None:
    rule = rewriting.failing(groups.classic, AUTHORIZATION_FAILED)
    async with asking(shared_cluster, rule) as (asked, _):
        await asked.round(watching)
        assert any("missing: DESCRIBE" in one for one in asked.errors)
        await asked.round(watching)
        assert asked.errors == []
        assert asked.answered == set(groups.all) - {groups.classic}


async def test_a_group_that_reads_hidden_topics_has_commits_without_members(
    shared_cluster: EmbeddedCluster, groups: Groups, watching: Watching
) -> None:
    async with asking(shared_cluster) as (asked, proxy):
        await asked.round(watching)
        assert asked.members(groups.consumer) == 1
        proxy.rules = [
            rewriting.failing(
                groups.consumer, TOPIC_AUTHORIZATION_FAILED, Key.CONSUMER_GROUP_DESCRIBE
            )
        ]
        await asked.round(watching)
        assert any("DESCRIBE on all topics" in one for one in asked.errors)
        for _ in range(2):
            assert asked.answered == set(groups.all)
            assert asked.members(groups.consumer) is None, "who they are is not known any more"
            assert asked.committed(groups.consumer)
            await asked.round(watching)
            assert asked.errors == []


async def test_a_partition_that_is_refused_keeps_its_last_commit(
    shared_cluster: EmbeddedCluster, groups: Groups, watching: Watching
) -> None:
    group = groups.empty[0]
    async with asking(shared_cluster) as (asked, proxy):
        await asked.round(watching)
        before = asked.offsets(group)
        assert before
        proxy.rules = [rewriting.failing_partition(group, 0, UNKNOWN_SERVER_ERROR)]
        for _ in range(2):
            await asked.round(watching)
            assert asked.answered == set(groups.all) - {group}
            assert any("refused" in one for one in asked.errors)
            assert asked.offsets(group) == before


@pytest.mark.parametrize(
    "rule",
    [
        rewriting.offering({Key.OFFSET_FETCH: None}),
        rewriting.cut(Key.OFFSET_FETCH),
        rewriting.refused(Key.OFFSET_FETCH, UNKNOWN_SERVER_ERROR),
    ],
    ids=["missing", "cut", "malformed"],
)
async def test_members_whose_commits_are_unknown_have_not_never_committed(
    shared_cluster: EmbeddedCluster, groups: Groups, watching: Watching, rule: Rule
) -> None:
    async with asking(shared_cluster, rule) as (asked, proxy):
        for _ in range(2):
            await asked.round(watching)
            assert asked.errors
            assert (asked.answered, asked.state.group_names()) == (set(), [])
        proxy.rules = []
        if rule.__qualname__.startswith("offering"):
            asked.protocol.connections.close()  # the next ones are told what is offered now
        await asked.round(watching)
        assert asked.answered == set(groups.all)


async def test_a_coordinator_that_is_another_one_all_the_time_is_counted(
    shared_cluster: EmbeddedCluster, groups: Groups, watching: Watching
) -> None:
    rule = rewriting.failing(groups.classic, NOT_COORDINATOR)
    async with asking(shared_cluster, rule) as (asked, _):
        counted = []
        for _ in range(3):
            await asked.round(watching)
            counted.append(bool(asked.errors))
        assert counted == [False, True, True]


async def test_no_group_is_gone_because_it_is_not_listed(
    shared_cluster: EmbeddedCluster, groups: Groups, watching: Watching
) -> None:
    async with asking(shared_cluster) as (asked, proxy):
        await asked.round(watching)
        for rule in (
            rewriting.without_groups(),
            rewriting.without_groups(*groups.empty),
            rewriting.refused(Key.LIST_GROUPS, UNKNOWN_SERVER_ERROR),
            rewriting.refused(Key.LIST_GROUPS, UNKNOWN_SERVER_ERROR, nodes=(0,)),
            rewriting.cut(Key.LIST_GROUPS, nodes=(1,)),
            rewriting.offering({Key.LIST_GROUPS: None}),
        ):
            proxy.rules = [rule]
            await asked.round(watching)
            assert asked.known.names() == set(groups.all)
            assert all(map(asked.committed, groups.all))


async def test_a_group_that_is_gone_is_gone(
    shared_cluster: EmbeddedCluster, groups: Groups, watching: Watching
) -> None:
    group = f"{groups.classic}-deleted"
    commit(shared_cluster, group, groups.topic, 1)
    ignored = f"ignored-{uuid.uuid4().hex}"
    commit(shared_cluster, ignored, groups.topic, 1)
    async with asking(shared_cluster) as (asked, _):
        await asked.round(watching)
        assert asked.committed(group)
        counted = watching.counts()["ignored"]
        for name in (group, ignored):
            deleted(shared_cluster, name)
        await asked.round(watching)
        assert not asked.committed(group)
        assert asked.known.names() == set(groups.all)
        assert watching.counts()["ignored"] < counted


async def test_a_group_is_gone_that_could_never_be_described(
    shared_cluster: EmbeddedCluster, groups: Groups
) -> None:
    group = f"described-{uuid.uuid4().hex[:8]}"
    member = Consumer(
        {**shared_cluster.client_config(), "group.id": group, "group.protocol": "consumer"}
    )
    try:
        member.subscribe([groups.topic])
        wait_for("the assignment", lambda: member.poll(0.1) or member.assignment())
        member.commit(offsets=[TopicPartition(groups.topic, 0, 1)], asynchronous=False)
    finally:
        member.close()
    rule = rewriting.offering({Key.CONSUMER_GROUP_DESCRIBE: None})
    async with asking(shared_cluster, rule) as (asked, _):
        watching = Watching(WatchPatterns(groups=(group,)))
        await asked.round(watching)
        assert asked.committed(group)
        deleted(shared_cluster, group)
        await asked.round(watching)
        assert asked.errors == []
        assert asked.state.group_names() == []


async def test_a_throttled_client_takes_what_it_gets(
    shared_cluster: EmbeddedCluster, groups: Groups, watching: Watching
) -> None:
    rule = rewriting.throttled(300, *_ASKED)
    async with asking(shared_cluster, rule) as (asked, _):
        for _ in range(2):
            began, before = time.monotonic(), asked.asker.throttled_seconds
            await asked.round(watching)
            assert asked.answered == set(groups.all)
            assert asked.errors == []
            throttled = asked.asker.throttled_seconds - before
            assert throttled > 0.3
            # Not after the last answer of each of the two brokers; and each waits by itself.
            assert time.monotonic() - began > (throttled - 0.6) / 2


@pytest.mark.parametrize("seed", range(4))
async def test_damaged_answers_cost_no_more_than_themselves(
    shared_cluster: EmbeddedCluster,
    groups: Groups,
    seed: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(answers, "MOST_THROTTLED_SECONDS", 0.01)  # what is damaged may be that
    keys = [*_ASKED, Key.FIND_COORDINATOR, *([Key.DESCRIBE_CLUSTER] if seed % 2 else [])]
    watching = Watching(WatchPatterns(groups=tuple(map(re.escape, groups.all))))
    async with asking(shared_cluster) as (asked, proxy):
        proxy.rules = [rewriting.damaged(random.Random(seed), *keys)]
        for _ in range(60):
            with suppress(KafkaError):  # the list of brokers can't be read
                await asyncio.wait_for(asked.round(watching), 60)
        proxy.rules = []
        for _ in range(2):
            await asked.round(watching)
        assert asked.errors == []
        assert asked.answered == set(groups.all) == set(asked.state.group_names())
        assert asked.members(groups.classic) == asked.members(groups.consumer) == 1
        assert asked.state.faults.totals == {}


async def test_one_address_for_all_brokers(
    shared_cluster: EmbeddedCluster, groups: Groups, watching: Watching
) -> None:
    async with asking(shared_cluster, one_address=True) as (asked, _):
        for _ in range(4):
            await asked.round(watching)
        kept = asked.known.names()
        assert kept == {one for one in groups.all if asked.committed(one)}
        assert kept, asked.errors
        asked.protocol.connections.close()  # the next connections are to other brokers
        await asked.round(watching)
        assert asked.known.names() >= kept


async def test_a_group_that_changes_its_protocol(
    shared_cluster: EmbeddedCluster, groups: Groups, watching: Watching
) -> None:
    group = f"{groups.classic}-changing"
    watching = Watching(WatchPatterns(groups=(group,)))
    async with asking(shared_cluster) as (asked, _):
        for protocol in ("classic", "consumer", "classic"):
            member = Consumer(
                {
                    **shared_cluster.client_config(),
                    "group.id": group,
                    "group.protocol": protocol,
                    "auto.offset.reset": "earliest",
                }
            )
            try:
                member.subscribe([groups.topic])
                wait_for(
                    "the assignment", lambda member=member: member.poll(0.1) or member.assignment()
                )
                for _ in range(50):  # its coordinator may still be rebalancing it
                    await asked.round(watching)
                    seen = asked.state.groups.membership(group)
                    if seen is not None and (seen.group_type, len(seen.members)) == (protocol, 1):
                        break
                    await asyncio.sleep(0.1)
                else:
                    raise AssertionError((protocol, seen, asked.errors))
            finally:
                member.close()


def deleted(cluster: EmbeddedCluster, group: str) -> None:
    """Delete a group."""
    admin = AdminClient(cluster.client_config())  # Held: a collected client drops its requests.
    admin.delete_consumer_groups([group])[group].result(30)


def test_a_service_whose_broker_lists_no_groups_is_ready_without_them(
    shared_cluster: EmbeddedCluster, groups: Groups, tmp_path: Path
) -> None:
    rules = (
        rewriting.refused(Key.LIST_GROUPS, UNKNOWN_SERVER_ERROR, nodes=(0,)),
        rewriting.offering({Key.CONSUMER_GROUP_DESCRIBE: None, Key.OFFSET_FETCH: 5}),
    )
    with Rewriting(shared_cluster.bootstrap_servers, *rules) as proxy:
        seen = Behind(proxy.bootstrap_servers, shared_cluster.processes, shared_cluster.security)
        service = Service(seen, source="ask", own_topics=False, ask_interval=1)  # type: ignore[arg-type]
        service.begin()
        try:
            said = wait_for(
                "it says why it is not ready",
                lambda: (text := service.unready()) and "listing its groups" in text and text,
            )
            assert [line for line in said.splitlines() if line.startswith("groups: broker ")], said
            wait_for("it is ready", service.ready, 30)
            wait_for(
                "the groups of the other broker",
                lambda: (
                    {s.labels["group"] for s in service.metrics("group_lag_records")}
                    & set(groups.all)
                ),
            )
            assert (service.value("probe_errors_total", probe="offsets") or 0) > 0
            proxy.rules = ()
            wait_for(
                "all groups",
                lambda: (
                    {s.labels["group"] for s in service.metrics("group_lag_records")}
                    >= set(groups.all)
                ),
            )
            lines = [line for line in service.log.splitlines() if "asking about groups" in line]
            assert 0 < len(lines) <= 2 * 10, lines  # a minute may have ended meanwhile
            assert service.page()["groups"]
        finally:
            service.process.terminate(10)


def test_commands_say_in_one_line_what_is_refused(
    shared_cluster: EmbeddedCluster, groups: Groups, tmp_path: Path
) -> None:
    environment = {"CAUGHTUP_SOURCE": "ask"}
    with Rewriting(shared_cluster.bootstrap_servers) as proxy:
        servers = ["--bootstrap-servers", proxy.bootstrap_servers]
        proxy.rules = [rewriting.offering({Key.LIST_GROUPS: None})]
        for words in (
            ["lag", groups.classic],
            ["explain", groups.classic],
            ["why", groups.classic],
        ):
            ran = caughtup(*words, *servers, directory=tmp_path, environment=environment)
            assert "does not support ListGroups" in ran.message, words
        checked = caughtup("check", *servers, directory=tmp_path, environment=environment)
        assert "list groups: broker" in checked.message
        assert "does not support ListGroups" in checked.message
        assert checked.code == 1
        proxy.rules = [rewriting.offering({Key.CONSUMER_GROUP_DESCRIBE: None})]
        ran = caughtup(
            "lag", groups.consumer, *servers, directory=tmp_path, environment=environment
        )
        assert ran.code == 0, ran
        assert len(ran.err.splitlines()) <= 2, ran.err

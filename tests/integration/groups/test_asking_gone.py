"""Groups that are no longer listed: only those are gone of which their coordinator says it."""

from __future__ import annotations

import asyncio
import uuid

from confluent_kafka import Consumer, TopicPartition

from caughtup.agents.kafka.protocol.requests import Key
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.models.watching import Watching, WatchPatterns
from tests.support.groups.asked import Groups, asking, deleted
from tests.support.kafka import rewriting_rules
from tests.support.service import commit, wait_for

#: Kafka's error codes.
UNKNOWN_SERVER_ERROR = -1


async def test_no_group_is_gone_because_it_is_not_listed(
    shared_cluster: EmbeddedCluster, groups: Groups, watching: Watching
) -> None:
    async with asking(shared_cluster) as (asked, proxy):
        await asked.round(watching)
        for rule in (
            rewriting_rules.without_groups(),
            rewriting_rules.without_groups(*groups.empty),
            rewriting_rules.refused(Key.LIST_GROUPS, UNKNOWN_SERVER_ERROR),
            rewriting_rules.refused(Key.LIST_GROUPS, UNKNOWN_SERVER_ERROR, nodes=(0,)),
            rewriting_rules.cut(Key.LIST_GROUPS, nodes=(1,)),
            rewriting_rules.offering({Key.LIST_GROUPS: None}),
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
    rule = rewriting_rules.offering({Key.CONSUMER_GROUP_DESCRIBE: None})
    async with asking(shared_cluster, rule) as (asked, _):
        watching = Watching(WatchPatterns(groups=(group,)))
        await asked.round(watching)
        assert asked.committed(group)
        deleted(shared_cluster, group)
        await asked.round(watching)
        assert asked.errors == []
        assert asked.state.group_names() == []


async def test_a_group_that_changes_its_protocol(
    shared_cluster: EmbeddedCluster, groups: Groups
) -> None:
    group = f"changing-{uuid.uuid4().hex[:8]}"
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

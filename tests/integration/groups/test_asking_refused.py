"""What coordinators refuse, or don't offer, costs the groups that it is about, and is counted."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from caughtup.agents.kafka.protocol.requests import Key
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.models.watching import Watching
from tests.support.groups.asked import Groups, asking
from tests.support.kafka import rewriting_rules
from tests.support.kafka.rewriting import Rule

#: Kafka's error codes.
UNKNOWN_SERVER_ERROR, AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED = -1, 30, 29


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
@pytest.mark.parametrize(
    "nodes",
    [pytest.param(None, id="all"), pytest.param((0,), id="one", marks=pytest.mark.thorough)],
)
async def test_requests_that_brokers_do_not_offer(
    shared_cluster: EmbeddedCluster,
    groups: Groups,
    watching: Watching,
    most: dict[Key, int | None],
    nodes: Sequence[int] | None,
) -> None:
    async with asking(shared_cluster, rewriting_rules.offering(most, nodes)) as (asked, _):
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


async def test_a_group_that_may_not_be_described_is_left_alone(
    shared_cluster: EmbeddedCluster, groups: Groups, watching: Watching
) -> None:
    rule = rewriting_rules.failing(groups.classic, AUTHORIZATION_FAILED)
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
            rewriting_rules.failing(
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
        proxy.rules = [rewriting_rules.failing_partition(group, 0, UNKNOWN_SERVER_ERROR)]
        for _ in range(2):
            await asked.round(watching)
            assert asked.answered == set(groups.all) - {group}
            assert any("refused" in one for one in asked.errors)
            assert asked.offsets(group) == before


@pytest.mark.parametrize(
    "rule",
    [
        rewriting_rules.offering({Key.OFFSET_FETCH: None}),
        rewriting_rules.cut(Key.OFFSET_FETCH),
        rewriting_rules.refused(Key.OFFSET_FETCH, UNKNOWN_SERVER_ERROR),
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

"""Coordinators that don't answer as they should: each failure costs its own groups, and is counted."""

from __future__ import annotations

import asyncio
import random
import re
import time
from contextlib import suppress

import pytest
from aiokafka.errors import KafkaError

from caughtup.agents.kafka.asking import answers
from caughtup.agents.kafka.protocol.requests import Key
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.models.watching import Watching, WatchPatterns
from tests.support.groups.asked import Groups, asking
from tests.support.kafka import rewriting_rules

#: Kafka's error codes.
UNKNOWN_SERVER_ERROR, NOT_COORDINATOR = -1, 16
_ASKED = (Key.LIST_GROUPS, Key.DESCRIBE_GROUPS, Key.CONSUMER_GROUP_DESCRIBE, Key.OFFSET_FETCH)


async def test_one_groups_failure_costs_no_other(
    shared_cluster: EmbeddedCluster, groups: Groups, watching: Watching
) -> None:
    others = set(groups.all) - {groups.consumer}
    async with asking(shared_cluster) as (asked, proxy):
        await asked.round(watching)
        for rule in (
            rewriting_rules.failing(groups.consumer, UNKNOWN_SERVER_ERROR),
            rewriting_rules.garbled(groups.consumer, Key.CONSUMER_GROUP_DESCRIBE),
            rewriting_rules.garbled(groups.consumer, Key.OFFSET_FETCH),
            rewriting_rules.cut(Key.CONSUMER_GROUP_DESCRIBE, about=groups.consumer),
            rewriting_rules.cut(Key.OFFSET_FETCH, about=groups.consumer),
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


async def test_a_coordinator_that_is_another_one_all_the_time_is_counted(
    shared_cluster: EmbeddedCluster, groups: Groups, watching: Watching
) -> None:
    rule = rewriting_rules.failing(groups.classic, NOT_COORDINATOR)
    async with asking(shared_cluster, rule) as (asked, _):
        counted = []
        for _ in range(3):
            await asked.round(watching)
            counted.append(bool(asked.errors))
        assert counted == [False, True, True]


async def test_a_throttled_client_takes_what_it_gets(
    shared_cluster: EmbeddedCluster, groups: Groups, watching: Watching
) -> None:
    rule = rewriting_rules.throttled(300, *_ASKED)
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


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in (2, 3))]
)
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
        proxy.rules = [rewriting_rules.damaged(random.Random(seed), *keys)]
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

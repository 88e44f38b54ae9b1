"""Who has which partitions of ``__consumer_offsets``, beside instances that elect one."""

from __future__ import annotations

import asyncio
import itertools
import time
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from caughtup.agents.election import agent as module
from caughtup.agents.election import instances, shared
from caughtup.agents.election.agent import Election
from caughtup.agents.election.instances import Assignment, ServiceInstance, Subscription
from caughtup.agents.election.shared import SharedElection
from caughtup.agents.errors import UserError
from caughtup.agents.kafka.protocol.client import ClusterProtocol
from caughtup.agents.process.health import Health
from caughtup.agents.settings import Settings
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.models.sharing import HeldPartitions, PartitionShare
from tests.support.elections import silent, until

SESSION_SECONDS = 2.0
#: Those of the shared clusters.
COUNT = 4
ALL = frozenset(range(COUNT))
#: Whoever says anything.
SELF = ServiceInstance("liar", 1 << 62, "elsewhere", -1)
_pids = itertools.count(1)


class Sharer:
    """An instance as far as its share goes, as if on a machine of its own."""

    def __init__(self, settings: Settings) -> None:
        self.health, self.held = Health(), HeldPartitions()
        self.has: frozenset[int] = frozenset()
        self.slots: list[int] = []
        self.took_again: list[frozenset[int]] = []
        self.refuses = 0
        instance = ServiceInstance("elsewhere", next(_pids), "another machine", 1)
        self.name = instance.name
        self.election = SharedElection(
            settings,
            self.health,
            self.held,
            lambda: self,
            _nothing,
            instance=instance,
        )

    async def take(self, partitions: frozenset[int], slot: int) -> None:
        if self.refuses:
            self.refuses -= 1
            raise UserError("cannot read the topics")
        self.has |= partitions
        self.held.numbers = self.has
        self.slots.append(slot)

    async def take_again(self, partitions: frozenset[int], slot: int) -> None:
        self.took_again.append(partitions)
        self.slots.append(slot)

    async def give_up(self, partitions: frozenset[int]) -> None:
        self.has -= partitions
        self.held.numbers = self.has

    @property
    def publishes(self) -> bool:
        return self.election.may_publish()


async def _nothing() -> None:
    return


@pytest.fixture
def settings(cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setattr(instances, "_SESSION_MS", int(SESSION_SECONDS * 1000))
    monkeypatch.setattr(module, "_BEAT_SECONDS", 0.2)
    return Settings(
        bootstrap_servers=cluster.bootstrap_servers,
        application_id=f"shared-{uuid.uuid4().hex[:8]}",
        workers="shared",
    )


@asynccontextmanager
async def sharing(settings: Settings) -> AsyncIterator[Sharer]:
    sharer = Sharer(settings)
    async with sharer.election:
        yield sharer


@asynccontextmanager
async def electing(settings: Settings) -> AsyncIterator[tuple[Election, Health]]:
    """An instance that knows of one active instance only, as of an earlier release."""
    health = Health(ready=True)
    instance = ServiceInstance("elsewhere", next(_pids), "another machine", 1)
    async with Election(settings, health, _nothing, _nothing, instance=instance) as election:
        yield election, health


async def test_each_partition_is_with_one_whoever_joins_and_leaves(settings: Settings) -> None:
    async with sharing(settings) as first:
        await until("the first has all", lambda: first.has == ALL and first.publishes)
        async with sharing(settings) as second:
            overlaps = 0

            def is_even() -> bool:
                nonlocal overlaps
                overlaps += bool(first.has & second.has)
                return len(first.has) == len(second.has) == COUNT // 2

            await until("both have half", is_even)
            assert overlaps == 0
            assert first.has | second.has == ALL
            assert (first.slots, second.slots[0]) == ([0], 1)
            await until("both may publish", lambda: first.publishes and second.publishes)
            # Each member hears of an assignment by itself: the second may have taken its half before.
            await until("it is said", lambda: f"{second.name} has 2" in str(first.health.shares))
        await until("the first has all again", lambda: first.has == ALL)
        assert first.health.broken is None


async def test_what_cannot_be_taken_is_tried_again_and_said(settings: Settings) -> None:
    sharer = Sharer(settings)
    sharer.refuses = 2
    async with sharer.election:
        await until("it says why", lambda: "cannot read the topics" in str(sharer.health.standby))
        assert not sharer.publishes
        await until("it has all", lambda: sharer.has == ALL and sharer.publishes)


async def test_alone_it_goes_on_after_it_was_removed_and_reads_back(settings: Settings) -> None:
    async with sharing(settings) as only:
        await until("it has all", lambda: only.publishes)
        await only.election._member.remove([only.election._member.member_id])
        await until("it reads back", lambda: only.took_again == [ALL])
        await until("it may publish", lambda: only.publishes)
        assert only.health.broken is None


async def test_one_whose_part_is_anothers_after_it_was_removed_ends(settings: Settings) -> None:
    async with sharing(settings) as first, sharing(settings) as second:
        await until("both have half", lambda: len(first.has) == len(second.has) == COUNT // 2)
        await until("both may publish", lambda: first.publishes and second.publishes)
        overlaps = 0

        def taken_over() -> bool:
            nonlocal overlaps
            overlaps += first.publishes and second.has == ALL
            return second.has == ALL

        with silent(first.election):
            await until("the other has all", taken_over)
            assert overlaps == 0
        await until("it ends", lambda: first.health.broken is not None)
        assert "others have its partitions" in str(first.health.broken)


async def test_beside_one_that_elects_it_stands_by_and_has_all_afterwards(
    settings: Settings,
) -> None:
    async with electing(settings) as (active, _):
        await until("it is active", active.may_publish)
        async with sharing(settings) as next_one:
            await until("it stands by", lambda: "is active" in str(next_one.health.standby))
            assert active.may_publish()
            await active.stop()
            await until("it has all", lambda: next_one.has == ALL and next_one.publishes)


async def test_who_elects_is_refused_while_others_share(settings: Settings) -> None:
    async with sharing(settings) as one:
        await until("it has all", lambda: one.publishes)
        async with electing(settings) as (late, health):
            await until("it says why", lambda: "other workers" in str(health.standby))
            assert not late.may_publish()
            assert one.publishes
            assert one.has == ALL


@pytest.mark.thorough
async def test_a_leader_that_gives_what_there_is_not_ends_no_instance(settings: Settings) -> None:
    liar = Sharer(settings)

    async def agree(_: str, subscriptions: Mapping[str, Subscription]) -> Assignment:
        shares = {member: PartitionShare(0, (0, 10**9)) for member in subscriptions}
        return Assignment(liar.election._member.member_id, SELF, shares, {}, 10**12)

    liar.election._agree = agree  # type: ignore[method-assign]
    async with liar.election:
        await until("it leads", lambda: "cannot be read" in str(liar.health.standby))
        async with sharing(settings) as one:
            await until("it says so", lambda: "cannot be read" in str(one.health.standby))
            assert one.has == frozenset()
            await liar.election.stop()
            await until("it has all", lambda: one.has == ALL and one.publishes)
            assert one.health.broken is None


async def test_a_member_that_claims_all_is_no_longer_heeded_once_it_is_gone(
    settings: Settings,
) -> None:
    liar = Sharer(settings)

    def subscription() -> Subscription:
        partitions = (-1, *ALL, 1 << 62)
        return Subscription(SELF, True, True, -(1 << 63), {}, partitions, 99, "javascript:")

    liar.election._subscription = subscription  # type: ignore[method-assign]
    async with sharing(settings) as one, sharing(settings) as other:
        await until("both have half", lambda: len(one.has) == len(other.has) == COUNT // 2)
        async with liar.election:
            await until("nobody has any", lambda: not one.has | other.has)
            assert (one.health.broken, other.health.broken) == (None, None)
        await until("both have half", lambda: len(one.has) == len(other.has) == COUNT // 2)
        await until("both may publish", lambda: one.publishes and other.publishes)


async def test_one_with_topics_of_another_prefix_ends_and_the_others_go_on(
    settings: Settings,
) -> None:
    async with sharing(settings) as one, sharing(settings) as other:
        await until("both have half", lambda: len(one.has) == len(other.has) == COUNT // 2)
        async with sharing(replace(settings, topic_prefix="other-")) as third:
            await until("it ends", lambda: third.health.broken is not None)
            assert "has another topic_prefix" in str(third.health.broken)
            await until("they say so", lambda: third.name in str(one.health.settings))
        assert (one.health.broken, other.health.broken) == (None, None)
        await until("they have all", lambda: one.has | other.has == ALL)
        await until("both may publish", lambda: one.publishes and other.publishes)


async def test_what_cannot_be_fenced_is_with_nobody_and_all_keep_theirs(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    fences = asyncio.Event()
    fences.set()
    fence = shared._fence

    async def fence_when_let(cluster: ClusterProtocol, name: str) -> None:
        await fences.wait()
        await fence(cluster, name)

    monkeypatch.setattr(shared, "_fence", fence_when_let)
    monkeypatch.setattr(shared, "_FENCING_SECONDS", 0.3)
    monkeypatch.setattr(shared, "_FENCE_AGAIN_SECONDS", 0.5)
    async with sharing(settings) as stays, sharing(settings) as goes:
        await until("both have half", lambda: len(stays.has) == len(goes.has) == COUNT // 2)
        await until("both may publish", lambda: stays.publishes and goes.publishes)
        fences.clear()
        theirs, before = goes.has, stays.has
        with silent(goes.election):
            await until("it says why", lambda: "do not let it fence" in str(stays.health.shares))
            assert f"no instance has {len(theirs)}: brokers do not" in str(stays.health.shares)
            until_ms = time.monotonic() + 1.5 * SESSION_SECONDS
            while time.monotonic() < until_ms:
                assert (stays.has, stays.publishes) == (before, True)
                await asyncio.sleep(0.05)
            async with sharing(settings) as late:
                await until("it stands by", lambda: "no partitions" in str(late.health.standby))
                assert late.slots == []
                fences.set()
                await until("they have all", lambda: stays.has | late.has == ALL)
                await until("both may publish", lambda: stays.publishes and late.publishes)
        assert "fence" not in str(stays.health.shares)


async def test_one_that_could_not_fence_and_no_longer_leads_asks_for_no_rebalance(
    settings: Settings,
) -> None:
    async with sharing(settings) as one:
        await until("it has all", lambda: one.publishes)
        one.election._unfenced = "no answer"
        assert one.election._must_report()
        one.election._subscription()
        assert not one.election._must_report()

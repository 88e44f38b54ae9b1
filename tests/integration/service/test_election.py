"""Instances come, go, fall silent and come back: one is active, and nobody else says it is."""

from __future__ import annotations

import asyncio
import itertools
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from confluent_kafka import Consumer

from caughtup.agents.election import agent as module
from caughtup.agents.election import instances
from caughtup.agents.election.agent import Election
from caughtup.agents.election.instances import ServiceInstance, list_instances
from caughtup.agents.errors import UserError
from caughtup.agents.process.health import Health
from caughtup.agents.settings import Settings
from caughtup.demo.cluster.cluster import EmbeddedCluster
from tests.support.elections import silent, until
from tests.support.service import wait_for

SESSION_SECONDS = 2.0
_pids = itertools.count(1)


class Running:
    """An instance as far as its election goes, as if on a machine of its own."""

    def __init__(
        self, settings: Settings, health: Health, instance: ServiceInstance | None = None
    ) -> None:
        self.health = health
        self.took_over = 0
        self.refuses = 0
        self.flushed = 0
        self.skipped_seconds = 0.0
        self.name = f"elsewhere:{next(_pids)}"
        host, _, pid = self.name.partition(":")
        elsewhere = instance or ServiceInstance(host, int(pid), "another machine", 1)
        self.election = Election(
            settings, health, self._take_over, self._flush, self._clock, elsewhere
        )

    async def _take_over(self) -> None:
        self.took_over += 1
        if self.refuses:
            self.refuses -= 1
            raise UserError("cannot read the topics")

    async def _flush(self) -> None:
        assert not self.election.may_publish(), "nothing may be added to what is on its way"
        self.flushed += 1

    def _clock(self) -> float:
        return asyncio.get_running_loop().time() + self.skipped_seconds

    @property
    def is_active(self) -> bool:
        return self.election.may_publish()


@pytest.fixture
def settings(cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setattr(instances, "_SESSION_MS", int(SESSION_SECONDS * 1000))
    monkeypatch.setattr(module, "_BEAT_SECONDS", 0.2)
    return Settings(
        bootstrap_servers=cluster.bootstrap_servers,
        application_id=f"elected-{uuid.uuid4().hex[:8]}",
    )


@asynccontextmanager
async def running(settings: Settings, **health: bool) -> AsyncIterator[Running]:
    instance = Running(settings, Health(**health))
    async with instance.election:
        yield instance


async def test_the_first_is_active_and_stays_so_whoever_comes(settings: Settings) -> None:
    async with running(settings) as first, AsyncExitStack() as others:
        await until("the first is active", lambda: first.is_active)
        for _ in range(2):
            other = await others.enter_async_context(running(settings, ready=True))
            await until(
                "it stands by", lambda o=other: o.health.standby == f"{first.name} is active"
            )
            assert not other.is_active
        assert first.is_active
        assert first.took_over == 1
        there = await asyncio.to_thread(list_instances, settings)
        assert there.active == (first.name,)
        assert len(there.standby) == 2


async def test_instances_with_other_settings_are_named_on_both_sides_until_they_are_gone(
    settings: Settings, tmp_path: Path
) -> None:
    (key := tmp_path / "key").write_text("not read here")
    others = replace(settings, signing_key_file=key, watch_groups=("orders.*",))
    async with running(settings) as first:
        await until("the first is active", lambda: first.is_active)
        async with running(others, ready=True) as second:
            await until("it stands by", lambda: second.health.standby == f"{first.name} is active")
            for one, other in ((first, second), (second, first)):
                told = (
                    "settings: other instances have other settings: "
                    f"{other.name}: signing_key_file, watch_groups"
                )
                await until("it says so", lambda o=one, t=told: t in o.health.notices())
            assert second.health.broken is None
        async with running(settings, ready=True) as third:
            await until("it stands by", lambda: third.health.standby == f"{first.name} is active")
            await until("all are alike", lambda: first.health.settings is None)
            assert third.health.settings is None
        assert first.is_active


async def test_one_with_topics_of_another_prefix_ends_with_the_reason(settings: Settings) -> None:
    others = replace(settings, topic_prefix="other-")
    async with running(settings) as first, running(settings, ready=True) as standby:
        await until("the first is active", lambda: first.is_active or standby.is_active)
        first, standby = (first, standby) if first.is_active else (standby, first)
        async with running(others, ready=True) as second:
            await until("it ends", lambda: second.health.broken)
            told = f"settings: other instances have other settings: {second.name}: topic_prefix"
            await until("the one that stands by says so", lambda: told in standby.health.notices())
            assert second.health.broken == (
                f"{first.name} has another topic_prefix, and is in the group "
                f"{settings.application_id}, too: choose another application_id"
            )
        assert first.health.broken is None
        assert standby.health.broken is None
        assert first.is_active


async def test_one_that_leaves_has_sent_everything_and_the_next_takes_over(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(instances, "_SESSION_MS", 60_000)  # nobody waits for that
    async with running(settings) as first:
        await until("the first is active", lambda: first.is_active)
        async with running(settings) as second:
            await until("the second stands by", lambda: "is active" in str(second.health.standby))
            await first.election.stop()
            assert first.flushed == 1
            await until("the second is active", lambda: second.is_active)
            assert second.health.standby is None


async def test_one_whose_tables_are_read_is_preferred(settings: Settings) -> None:
    async with running(settings) as first:
        await until("the first is active", lambda: first.is_active)
        async with running(settings) as reading, running(settings) as ready:
            for one in (reading, ready):
                await until("it stands by", lambda o=one: "is active" in str(o.health.standby))
            ready.health.ready = True
            await until("the group knows", lambda: ready.election.reported_caught_up)
            await first.election.stop()
            await until("the one that has read is active", lambda: ready.is_active)
            assert not reading.is_active


async def test_one_that_falls_silent_doubts_itself_before_another_takes_over(
    settings: Settings,
) -> None:
    async with running(settings) as first, running(settings) as second:
        await until("one is active", lambda: first.is_active or second.is_active)
        active, other = (first, second) if first.is_active else (second, first)
        await until("the other stands by", lambda: "is active" in str(other.health.standby))
        overlaps = 0

        def taken_over() -> bool:
            nonlocal overlaps
            overlaps += active.is_active and other.is_active
            return other.is_active

        with silent(active.election):
            await until("the other takes over", taken_over)
            assert overlaps == 0
            assert not active.is_active
        await until("it knows that it is done for", lambda: active.health.broken is not None)
        assert f"{other.name} is active" in str(active.health.broken)
        assert other.is_active


async def test_alone_it_is_active_again_after_a_silence_and_reads_back_again(
    settings: Settings,
) -> None:
    async with running(settings) as only:
        await until("it is active", lambda: only.is_active)
        await only.election._member.remove([only.election._member.member_id])
        await until("it reads back again", lambda: only.took_over == 2)
        await until("it is active", lambda: only.is_active)
        assert only.health.broken is None


async def test_a_clock_that_jumps_closes_the_door_until_the_coordinator_answers(
    settings: Settings,
) -> None:
    async with running(settings) as only:
        await until("it is active", lambda: only.is_active)
        only.skipped_seconds = 60  # the process stood still, and nothing has noticed yet
        assert not only.is_active
        assert "may be active" in only.health.unready()[0]
        await until("the coordinator has answered", lambda: only.is_active)
        assert "may be active" not in str(only.health.unready())
        assert only.took_over == 1


async def test_what_cannot_be_read_back_is_tried_again_and_said(settings: Settings) -> None:
    instance = Running(settings, Health())
    instance.refuses = 2
    async with instance.election:
        await until("it says why", lambda: "cannot read the topics" in str(instance.health.standby))
        assert not instance.is_active
        await until("it is active", lambda: instance.is_active)


async def test_a_dead_member_on_this_machine_is_not_waited_for(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(instances, "_SESSION_MS", 60_000)
    here = ServiceInstance.current()
    dead = Running(settings, Health(), msgspec.structs.replace(here, pid=2**22 + 1))
    async with dead.election:
        await until("it is active", lambda: dead.is_active)
        dead.election._leaving = True
        dead.election._member.forget()  # it ends without a word
    async with running(settings) as next_one:
        await until("the next one is active", lambda: next_one.is_active, 20)


async def test_a_group_of_others_is_not_joined_and_the_reason_said(
    cluster: EmbeddedCluster, settings: Settings
) -> None:
    consumer = Consumer({**cluster.client_config(), "group.id": settings.application_id})
    assigned: list[object] = []
    consumer.subscribe(["__consumer_offsets"], on_assign=lambda *_: assigned.append(1))
    await asyncio.to_thread(
        wait_for, "it is a group of consumers", lambda: consumer.poll(0.1) or assigned
    )
    try:
        async with running(settings) as one:
            await until("it says why", lambda: "application_id" in str(one.health.standby))
            assert not one.is_active
    finally:
        consumer.close()

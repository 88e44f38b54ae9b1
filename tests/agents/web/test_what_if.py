"""``/api/groups/GROUP/safe`` and ``/cost`` on loopback."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import numpy as np
import pytest

from caughtup.agents.process.health import Health
from caughtup.agents.web import what_if as module
from caughtup.models.state.cluster import ClusterState
from tests.support.groups.broker_assigned import state_of, streams_group
from tests.support.groups.records import GROUP
from tests.support.observability.site import Site
from tests.support.states import NOW_MS, everything

OPERATING = Path(__file__).resolve().parents[3] / "docs/operating.md"


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with Site(everything(), Health(ready=True)) as running:
        yield running


async def test_it_says_whether_an_instance_can_be_stopped_and_why_not(site: Site) -> None:
    async with site.get(f"/api/groups/{GROUP}/safe?stop=b&leave_group=true") as response:
        assert response.status == 200
        assert (await response.json())["safe"] is True
    async with site.get(f"/api/groups/{GROUP}/safe?stop=a&within=1&leave_group=true") as response:
        told = await response.json()
    assert told["safe"] is False
    assert told["reason"].startswith("0_0's only caught-up copy is here")


@pytest.mark.parametrize(
    ("path", "status", "why"),
    [
        ("plain/safe?stop=a", 404, "not a Kafka Streams application"),
        (f"{GROUP}/safe?stop=nobody", 404, "'nobody' is not among a, b"),
        (f"{GROUP}/safe", 400, "?stop=CLIENT"),
        (f"{GROUP}/safe?stop=a&within=nan", 400, "?stop=CLIENT"),
        (f"{GROUP}/safe?stop=a&within=-1", 400, "?stop=CLIENT"),
    ],
)
async def test_what_is_asked_wrongly_is_refused(
    site: Site, path: str, status: int, why: str
) -> None:
    async with site.get(f"/api/groups/{path}") as response:
        assert response.status == status
        assert why in (await response.json())["error"]


async def told_to_stop(site: Site, hook: str, client: str) -> bool:
    """Run the documented hook with one pause, and return whether it let the pod go at once."""
    at = site.url(f"/api/groups/{GROUP}/safe")
    command = hook.replace("http://caughtup:8080/api/groups/orders/safe", at)
    command = command.replace("sleep 5", "exit 9")
    ran = await asyncio.create_subprocess_exec(
        "sh", "-c", command, env={**os.environ, "HOSTNAME": client}
    )
    return await asyncio.wait_for(ran.wait(), 60) == 0


async def test_the_documented_prestop_hook_holds_who_may_not_go(site: Site) -> None:
    (hook,) = re.findall(r"command: \[sh, -c, '(.*)'\]", OPERATING.read_text())
    assert await told_to_stop(site, hook, "b")
    assert not await told_to_stop(site, hook, "a")


@pytest.mark.parametrize(
    ("group", "state"), [(GROUP, everything()), ("orders", state_of(streams_group()))]
)
async def test_unless_asked_it_allows_what_the_application_has_lived_with(
    group: str, state: ClusterState
) -> None:
    async with Site(state, Health(ready=True)) as running:
        path = f"/api/groups/{group}/safe?stop=a&leave_group=true"
        async with running.get(path) as response:
            told = await response.json()
        assert (told["within_ms"], told["within_from"]) == (60_000, "default")
        numbers, behind = np.array([0]), np.array([True])
        for ago_ms in (40_000, 10_000):
            committed = np.array([NOW_MS - ago_ms])
            moment_ms = NOW_MS - ago_ms
            state.recent.standing_still(group).observe("in", numbers, committed, behind, moment_ms)
        async with running.get(path) as response:
            told = await response.json()
        assert (told["within_ms"], told["within_from"]) == (30_000, "record")
        async with running.get(f"{path}&within=7") as response:
            told = await response.json()
        assert (told["within_ms"], told["within_from"]) == (7_000, "asked")


async def test_a_question_whose_client_has_gone_ends_and_too_many_are_refused(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, ended = list[str](), list[str]()

    def endless(
        group: object, client: str, *_: object, between_steps: Callable[[], None], **__: object
    ) -> None:
        begun.append(client)
        try:
            while True:
                between_steps()
                time.sleep(0.001)
        finally:
            ended.append(client)

    with monkeypatch.context() as playing:
        playing.setattr(module, "safe_to_stop", endless)
        async with AsyncExitStack() as clients:
            for number in range(5):
                asking = await clients.enter_async_context(site.connected())
                await asking.ask(f"/api/groups/{GROUP}/safe?stop=b{number}")
            await until(lambda: begun == ["b0"])
            async with site.get(f"/api/groups/{GROUP}/cost") as response:
                assert response.status == 503
                assert int(response.headers["Retry-After"]) > 0
        await until(lambda: ended == ["b0"])
    async with site.get(f"/api/groups/{GROUP}/safe?stop=b&leave_group=true") as response:
        assert response.status == 200
    assert begun == ["b0"], "those that waited left the queue"
    assert site.health.web_refusals == {"questions": 1}


async def until(is_so: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not is_so():  # noqa: ASYNC110 - it happens in a thread
            await asyncio.sleep(0.001)


async def test_it_says_what_instances_more_would_cost_by_both() -> None:
    async with Site(everything(), Health(ready=True)) as site:
        async with site.get(f"/api/groups/{GROUP}/cost?add=1") as response:
            assert response.status == 200
            told = await response.json()
        assert (told["add"], told["instances"], told["generation"]) == (1, 2, 7)
        for cost in (told["cost"], told["kafka_cost"]):
            assert cost.keys() == {"copies", "offsets", "rebalances", "seconds", "estimated"}


@pytest.mark.parametrize(
    ("path", "status", "why"),
    [
        ("plain/cost?add=1", 404, "not a Kafka Streams application"),
        (f"{GROUP}/cost?add=0", 400, "?add=N, from 1 to 100"),
        (f"{GROUP}/cost?add=101", 400, "?add=N, from 1 to 100"),
        (f"{GROUP}/cost?add=two", 400, "?add=N, from 1 to 100"),
        (f"{GROUP}/cost?add=%C2%B2", 400, "?add=N, from 1 to 100"),
        (f"{GROUP}/cost?add=000000001000", 400, "?add=N, from 1 to 100"),
        (f"{GROUP}/cost?add=000000001{'9' * 5_000}", 400, "?add=N, from 1 to 100"),
    ],
)
async def test_a_cost_that_is_asked_for_wrongly_is_refused(
    path: str, status: int, why: str
) -> None:
    async with (
        Site(everything(), Health(ready=True)) as site,
        site.get(f"/api/groups/{path}") as response,
    ):
        assert response.status == status
        assert why in (await response.json())["error"]

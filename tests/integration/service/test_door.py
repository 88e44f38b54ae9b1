"""Others get their answers while the web port is abused: with real sockets, on a real service."""

from __future__ import annotations

import asyncio
import time
from collections import Counter

import pytest

from caughtup.bench.door.abuses import abused
from caughtup.bench.door.crowd import Crowd, HttpAnswer
from caughtup.bench.door.scene import questions, staged
from caughtup.bench.offsets.readers import process_figures
from caughtup.demo.fleet.large_group import GROUP
from caughtup.demo.story.stage import DemoStage

pytestmark = pytest.mark.heavy

#: Deadlines that a machine holds which is busy with ten other tests, too: `caughtup bench door`
#: has the figures of one that isn't.
SECONDS = 10.0
PATIENT_SECONDS = 20.0
#: What a process may have more than before: it keeps buffers and labels of scrapes.
MEGABYTES = 64
ABUSES = (
    "600 half-open connections",
    "1,000 requests for safe, abandoned",
    "500 pages that never read",
)


def memory(stage: DemoStage) -> float:
    """Return what the service holds, in megabytes."""
    return float(process_figures(stage.service.pid)["resident_bytes"]) / (1 << 20)


def test_everybody_else_is_answered_while_the_web_port_is_abused() -> None:
    with staged(10, 50) as stage:
        asyncio.run(abused_and_asked(stage, theirs="127.0.0.2"))
        # Of one's own address, more than 250 connections may open before one's request has come:
        # then the oldest of them is closed, and a probe opens another, as an orchestrator's does.
        asyncio.run(abused_and_asked(stage, theirs="127.0.0.1", connections=3))


async def probed(crowd: Crowd, path: str, connections: int) -> HttpAnswer:
    """Return the first answer over one of so many connections."""
    for _ in range(connections - 1):
        if (answer := await crowd.ask(path, SECONDS)).status:
            return answer
    return await crowd.ask(path, SECONDS)


async def abused_and_asked(stage: DemoStage, theirs: str, connections: int = 1) -> None:
    crowd = Crowd(stage.web_port)
    patient, others = (asked := await questions(crowd, 1_050))[:50], asked[50:]
    assert (await crowd.ask("/metrics")).status == 200
    before = memory(stage)
    async with abused(stage.web_port, theirs, others, ABUSES):
        waiting = asyncio.create_task(crowd.ask_all(patient, PATIENT_SECONDS))
        probes, scrapes = list[HttpAnswer](), list[HttpAnswer]()
        while len(probes) < 20 or not waiting.done():
            probes += [await probed(crowd, path, connections) for path in ("/ready", "/healthz")]
            if len(probes) % 20 == 0:
                scrapes.append(await probed(crowd, "/metrics", connections))
    assert Counter(one.status for one in probes) == {200: len(probes)}
    assert Counter(one.status for one in scrapes) == {200: len(scrapes)}
    assert all(GROUP.encode() in one.body for one in scrapes)
    answers = Counter(one.status for one in await waiting)
    assert answers.keys() <= {200, 503}, answers
    assert answers[503], "they wait in a queue that has room for a few"
    deadline = time.monotonic() + 6 * SECONDS
    while (await crowd.ask(patient[0], SECONDS)).status != 200:  # a colleague's, afterwards
        assert time.monotonic() < deadline
    assert memory(stage) < before + MEGABYTES
    counted = (await crowd.ask("/metrics")).body
    for reason in ("connections", "questions", "event_streams"):
        assert f'reason="{reason}"'.encode() in counted

"""What a service broke with is said in one line; the rest is tests/integration/service/test_breaking.py."""

from __future__ import annotations

import asyncio

import pytest
from mode import Service

from caughtup.agents.process.health import Health
from caughtup.agents.process.supervisor import AgentSupervisor, Supervisor, describe


def test_an_error_is_described_in_one_line_with_where_it_was_raised() -> None:
    try:
        raise OverflowError("too large\nfor a long")
    except OverflowError as error:
        said = describe(error)
    assert said.startswith("OverflowError: too large for a long (test_supervisor.py:")
    assert describe(KeyError()) == "KeyError"
    assert describe(None) == "for an unknown reason"


async def test_what_broke_first_is_what_is_told() -> None:
    health = Health(ready=True)
    supervisor = Supervisor()
    async with supervisor.serving(health) as stop:
        supervisor.broke("the first")
        supervisor.broke("the second")
        await asyncio.wait_for(stop.wait(), 20)
    assert health.broken == "the first"
    assert health.unready() == ["broken: the first"]
    assert not health.is_alive


class Part(Service):
    starts = 0

    async def on_start(self) -> None:
        self.starts += 1


@pytest.mark.parametrize(
    ("error", "crashed"), [(asyncio.CancelledError(), False), (ValueError("no"), True)]
)
async def test_an_agent_that_fails_is_the_end_and_one_that_is_cancelled_ends_as_it_is(
    error: BaseException, crashed: bool
) -> None:
    part = Part()
    supervisor = AgentSupervisor()
    supervisor.add(part)
    await supervisor.start()
    await part.crash(error)
    for _ in range(50):
        supervisor.wakeup()
        await asyncio.sleep(0.01)
        if supervisor.crashed:
            break
    assert (part.starts, bool(supervisor.crashed)) == (1, crashed)
    await supervisor.stop()

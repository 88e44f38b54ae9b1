"""Nothing that waits in a channel is lost."""

from __future__ import annotations

import asyncio
import itertools

import faust
import pytest

from caughtup.agents.kept_channel import kept_channel

_names = itertools.count()


@pytest.fixture
def app() -> faust.App:
    return faust.App(f"kept-{next(_names)}", broker="kafka://127.0.0.1:1", web_enabled=False)


async def test_a_rebalance_empties_nothing_and_holds_nobody_up(app: faust.App) -> None:
    channel = kept_channel(app)
    reader = channel.clone(is_iterator=True)
    theirs = app.channel()
    theirs_reader = theirs.clone(is_iterator=True)
    app.flow_control.resume()
    for each in (channel, theirs):
        await each.put(1)
    # What Faust does when its partitions are revoked and assigned.
    app.flow_control.suspend()
    app.flow_control.clear()
    await asyncio.wait_for(channel.put(2), 20)
    app.flow_control.resume()
    assert theirs_reader.queue.qsize() == 0, "Faust's own is emptied: else we need no other"
    assert [await reader.get(), await reader.get()] == [1, 2]


async def test_an_agent_that_is_started_anew_goes_on_where_the_last_one_ended(
    app: faust.App,
) -> None:
    channel = kept_channel(app)
    await channel.put(1)
    first = channel.clone(is_iterator=True)
    await channel.put(2)
    assert await first.get() == 1
    del first
    assert await channel.clone(is_iterator=True).get() == 2


async def test_a_full_one_is_waited_for(app: faust.App) -> None:
    channel = kept_channel(app, maxsize=1)
    await channel.put(1)
    waiting = asyncio.create_task(channel.put(2))
    await asyncio.sleep(0)
    assert not waiting.done()
    assert await channel.get() == 1
    await asyncio.wait_for(waiting, 20)
    assert await channel.get() == 2

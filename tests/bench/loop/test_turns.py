"""The meter of an event loop's turns: what they cost its own thread, and whose they were."""

from __future__ import annotations

import asyncio
from asyncio import events

from caughtup.bench.loop.turns import LoopTurns, Turn


class Clock:
    """The CPU time of a thread, which goes on as it is told to."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds

    def compute(self) -> None:
        self.seconds += 2

    async def computing(self) -> None:
        self.seconds += 5
        await asyncio.sleep(0)
        self.seconds += 1


async def test_the_longest_turn_is_told_with_what_it_was_until_it_is_reset() -> None:
    ran, clock = events.Handle._run, Clock()
    with LoopTurns(clock) as turns:
        await asyncio.create_task(clock.computing())
        assert turns.longest == Turn(5, "Clock.computing › sleep")
        assert turns.seconds == 6
        turns.reset()
        asyncio.get_running_loop().call_soon(clock.compute)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert turns.longest == Turn(2, "Clock.compute")
    assert events.Handle._run is ran


async def test_the_turns_of_another_threads_loop_are_none_of_ours() -> None:
    clock = Clock()
    with LoopTurns(clock) as turns:
        await asyncio.to_thread(lambda: asyncio.run(clock.computing()))
        assert clock.seconds == 6
        assert turns.longest.seconds == 0

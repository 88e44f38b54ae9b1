"""Costly questions: answered once, in a short queue, and ended when nobody waits for them."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

import pytest
from aiohttp import web

from caughtup.agents.web.door.questions import Questions, Unanswerable, in_thread
from caughtup.agents.web.door.refusals import Refusals

SECONDS = 20.0


class Asked:
    """Questions whose answers wait until they may be given, and what was begun and ended."""

    def __init__(self, most: int = 3, wait_seconds: float = SECONDS) -> None:
        self.refused: Counter[str] = Counter()
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.may_end = asyncio.Event()
        self.questions = Questions(
            "questions",
            Refusals(self.refused),
            most=most,
            wait_seconds=wait_seconds,
            retry_seconds=7,
        )

    def ask(self, question: str) -> asyncio.Task[str]:
        async def make() -> str:
            self.begun.append(question)
            try:
                await self.may_end.wait()
            finally:
                self.ended.append(question)
            return f"{question}!"

        return asyncio.create_task(self.questions.answer(question, make))


async def until(is_so: Callable[[], object]) -> None:
    async with asyncio.timeout(SECONDS):
        while not is_so():  # noqa: ASYNC110 - some of it happens in threads
            await asyncio.sleep(0)


async def left(task: asyncio.Task[str]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_equal_questions_are_answered_once_and_others_one_after_the_other() -> None:
    asked = Asked()
    tasks = [asked.ask(question) for question in ("a", "a", "b", "a")]
    await until(lambda: asked.begun)
    assert asked.begun == ["a"]
    asked.may_end.set()
    assert await asyncio.gather(*tasks) == ["a!", "a!", "b!", "a!"]
    assert asked.begun == asked.ended == ["a", "b"]
    assert await asked.ask("a") == "a!"
    assert asked.begun == ["a", "b", "a"], "an answer that was given is not given again"


async def test_of_too_many_the_last_are_refused_at_once_with_when_to_come_back() -> None:
    asked = Asked(most=2)
    tasks = [asked.ask(question) for question in ("a", "b")]
    await until(lambda: asked.begun)
    with pytest.raises(web.HTTPServiceUnavailable) as refused:
        await asked.ask("c")
    assert (refused.value.text, refused.value.headers["Retry-After"]) == (
        "too many questions\n",
        "7",
    )
    same = asked.ask("a")  # takes no place
    asked.may_end.set()
    assert await asyncio.gather(*tasks, same) == ["a!", "b!", "a!"]
    assert asked.refused == {"questions": 1}


async def test_what_nobody_waits_for_any_more_ends_and_makes_room() -> None:
    asked = Asked(most=2)
    first, second = asked.ask("a"), asked.ask("b")
    await until(lambda: asked.begun)
    await left(second)  # it had not begun
    third, fourth = asked.ask("c"), asked.ask("c")
    await left(first)  # it had
    await until(lambda: asked.begun == ["a", "c"])
    assert asked.ended == ["a"]
    await left(third)  # somebody else still asks
    asked.may_end.set()
    assert await fourth == "c!"
    assert asked.begun == asked.ended == ["a", "c"]


async def test_who_waits_for_too_long_is_refused_as_well() -> None:
    asked = Asked(wait_seconds=0.05)
    first, second = asked.ask("a"), asked.ask("b")
    with pytest.raises(web.HTTPServiceUnavailable):
        await second
    asked.may_end.set()
    assert await first == "a!"
    assert asked.begun == ["a"]


async def test_what_goes_wrong_is_told_to_all_who_ask() -> None:
    questions = Questions(
        "questions", Refusals(Counter()), most=1, wait_seconds=SECONDS, retry_seconds=1
    )

    async def fails() -> None:
        await asyncio.sleep(0)
        raise Unanswerable(404, "no such group")

    found = await asyncio.gather(
        *(questions.answer("a", fails) for _ in range(3)), return_exceptions=True
    )
    assert [(one.status, one.why) for one in found if isinstance(one, Unanswerable)] == [
        (404, "no such group")
    ] * 3


async def test_a_thread_ends_between_two_steps_when_nobody_waits_for_it() -> None:
    began, go_on, steps = threading.Event(), threading.Event(), list[int]()

    def work(between_steps: Callable[[], None]) -> str:
        began.set()
        assert go_on.wait(SECONDS)
        for step in range(3):
            between_steps()
            steps.append(step)
        return "made"

    task = asyncio.create_task(in_thread(work))
    await until(began.is_set)
    task.cancel()
    await asyncio.sleep(0)
    assert not task.done(), "the thread has not ended yet"
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, SECONDS)
    assert steps == []
    assert await in_thread(work) == "made"
    assert steps == [0, 1, 2]

"""Questions about a group whose coordinator isn't there yet, or has just changed."""

from __future__ import annotations

import asyncio
import itertools

import pytest
from aiokafka.errors import GroupAuthorizationFailedError, KafkaError, for_code

from caughtup.agents.kafka.protocol import groups


def asked(*codes: int) -> tuple[int, list[KafkaError]]:
    """Ask until no error code is left; return the answer and the errors before it."""
    given: list[KafkaError] = []

    async def ask() -> int:
        if len(given) < len(codes):
            given.append(for_code(codes[len(given)])())
            raise given[-1]
        return 7

    return asyncio.run(groups.once_coordinated(ask)), given


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    async def sleep(_: float) -> None:
        return None

    monkeypatch.setattr(groups.asyncio, "sleep", sleep)


def test_a_coordinator_that_still_loads_the_group_is_waited_for():
    answer, errors = asked(14, 14, 15, 16, 7)
    assert (answer, len(errors)) == (7, 5)


def test_what_waiting_does_not_change_is_raised_at_once():
    with pytest.raises(GroupAuthorizationFailedError):
        asked(30)


def test_a_coordinator_that_loads_for_ever_is_not_waited_for(monkeypatch: pytest.MonkeyPatch):
    seconds = itertools.count(0, 10)
    monkeypatch.setattr(groups.time, "monotonic", lambda: float(next(seconds)))
    with pytest.raises(for_code(14)):
        asked(*[14] * 1_000)

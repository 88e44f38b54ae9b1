"""The service gets tokens whether or not somebody logs in, and says when there are none."""

from __future__ import annotations

import asyncio
import logging

import pytest

from caughtup.agents.kafka.tokens import keeper
from caughtup.agents.kafka.tokens.keeper import TokenKeeper
from caughtup.agents.process.health import Health
from caughtup.agents.settings import Settings
from tests.support.kafka.tokens import TokenEndpoint, away
from tests.support.service import wait_for


async def test_a_failure_is_a_notice_until_there_is_a_token_again(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setattr("caughtup.agents.kafka.tokens.source._PAUSE_SECONDS", 0.0)
    health = Health(ready=True)
    with TokenEndpoint({"service": "hunter2"}) as endpoint:
        kafka = {"security.protocol": "SASL_SSL", **endpoint.properties("service")}
        looking = TokenKeeper(Settings(kafka=kafka), health)
        with away(endpoint):
            for _ in range(3):
                looking.look()
            (notice,) = health.notices()
            assert notice.startswith(f"login: no token from {endpoint.url}: nothing listens there")
            assert health.unready() == []
        looking.look()
        looking.look()
        assert health.notices() == []
        assert len(endpoint.asked) == 1
    lost, found = caplog.messages
    assert lost.endswith("; trying again; existing connections stay open")
    assert found == "the token source works again"
    assert "hunter2" not in caplog.text


async def test_it_looks_by_itself_where_a_token_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "_LOOK_SECONDS", 0.05)
    with TokenEndpoint({"service": "hunter2"}, seconds=1.0) as endpoint:
        kafka = {"security.protocol": "SASL_SSL", **endpoint.properties("service")}
        async with TokenKeeper(Settings(kafka=kafka), Health()):

            def renewed() -> bool:
                return len(endpoint.asked) >= 2

            await asyncio.to_thread(wait_for, "it has another one", renewed)
    async with TokenKeeper(Settings(), Health()):
        pass

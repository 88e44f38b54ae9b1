"""One token for all clients: kept, renewed in time, and asked for again after a failure."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from aiokafka.errors import SaslAuthenticationFailed

from caughtup.agents.kafka.tokens import source
from caughtup.agents.kafka.tokens.source import (
    AiokafkaTokenProvider,
    TokenSource,
    token_callback,
    token_source,
)
from caughtup.agents.kafka.tokens.token import BearerToken, TokenError


class Asked:
    """An endpoint with a clock: tokens are good for 100 s."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.times: list[float] = []
        self.failure: TokenError | None = None
        self.source = TokenSource(self.ask, lambda: self.now)

    def ask(self) -> BearerToken:
        self.times.append(self.now)
        if self.failure is not None:
            raise self.failure
        return BearerToken(f"token {len(self.times)}", self.now + 100)

    def at(self, seconds: float) -> str:
        self.now = 1_000.0 + seconds
        return self.source.token().value


def test_a_token_is_kept_for_three_quarters_of_its_time() -> None:
    asked = Asked()
    assert [asked.at(t) for t in (0, 1, 74, 76, 77)] == [*["token 1"] * 3, *["token 2"] * 2]
    assert asked.times == [1_000, 1_076]


def test_while_the_old_one_is_good_a_failure_costs_nobody_anything_and_is_told() -> None:
    asked = Asked()
    asked.at(0)
    asked.failure = TokenError("down", passing=True)
    assert [asked.at(t) for t in (80, 80.5, 81, 99)] == ["token 1"] * 4
    assert asked.times == [1_000, 1_080, 1_099], "a failure is followed by a pause"
    assert asked.source.failure() == "down"
    with pytest.raises(TokenError, match="down"):
        asked.at(100)
    asked.failure = None
    with pytest.raises(TokenError):
        asked.at(100.5)
    assert asked.at(102) == "token 4"
    assert asked.source.failure() is None


def test_many_that_ask_at_once_cost_one_request() -> None:
    asked, begun, go_on = Asked(), threading.Event(), threading.Event()
    found: list[str] = []

    def slow() -> BearerToken:
        begun.set()
        assert go_on.wait(10)
        return asked.ask()

    shared = TokenSource(slow, lambda: asked.now)
    threads = [
        threading.Thread(target=lambda: found.append(shared.token().value)) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    assert begun.wait(10)
    go_on.set()
    for thread in threads:
        thread.join(10)
    assert (found, len(asked.times)) == (["token 1"] * 8, 1)


def test_who_has_a_good_one_does_not_wait_for_the_next() -> None:
    asked, begun, go_on = Asked(), threading.Event(), threading.Event()
    shared = TokenSource(asked.ask, lambda: asked.now)
    shared.token()
    asked.now += 80

    def slow() -> BearerToken:
        begun.set()
        assert go_on.wait(10)
        return asked.ask()

    shared._ask = slow
    renewing = threading.Thread(target=shared.token)
    renewing.start()
    assert begun.wait(10)
    assert shared.token().value == "token 1"
    go_on.set()
    renewing.join(10)
    assert shared.token().value == "token 2"


PROPERTIES = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.method": "oidc",
    "sasl.oauthbearer.token.endpoint.url": "http://127.0.0.1:1/",
    "sasl.oauthbearer.client.id": "service",
    "sasl.oauthbearer.client.secret": "hunter2",
}


async def test_every_client_gets_the_same_one_and_a_rotated_secret_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    def fetch(endpoint: Any, _: object) -> BearerToken:
        asked.append(endpoint.client_secret)
        return BearerToken(f"by {endpoint.client_secret}", 4e9)

    monkeypatch.setattr(source, "fetch_token", fetch)
    kafka = dict(PROPERTIES)
    provider = AiokafkaTokenProvider(kafka, {"logicalCluster": "lkc-1"})
    called = token_callback(kafka, {"logicalCluster": "lkc-1"})
    assert provider.extensions() == {"logicalCluster": "lkc-1"}
    assert await provider.token() == "by hunter2"
    assert called("") == ("by hunter2", 4e9, "", {"logicalCluster": "lkc-1"})
    kafka["sasl.oauthbearer.client.secret"] = "hunter3"
    assert await provider.token() == called("")[0] == "by hunter3"
    assert asked == ["hunter2", "hunter3"]


async def test_aiokafka_is_told_why_there_is_none() -> None:
    kafka = {**PROPERTIES, "sasl.oauthbearer.client.id": "another"}
    with pytest.raises(
        SaslAuthenticationFailed, match=r"no token from http://127\.0\.0\.1:1/: nothing"
    ):
        await AiokafkaTokenProvider(kafka, {}).token()
    assert token_source(kafka).failure()

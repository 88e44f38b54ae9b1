"""Brokers that clients can't connect to where they say that they are, and tokens to log in with."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread, Timer
from types import SimpleNamespace

import pytest

from caughtup.agents.errors import UserError
from caughtup.agents.kafka.first_contact import broker_troubles, connect, require_token
from caughtup.agents.settings import Settings
from caughtup.demo.processes.children import free_ports
from tests.agents.kafka.test_diagnosis import answering, handshake
from tests.support.kafka.listeners import listening
from tests.support.kafka.tokens import TokenEndpoint, away
from tests.support.service import wait_for


def test_a_broker_that_is_elsewhere_than_it_says_is_named_with_the_config() -> None:
    (refused,) = free_ports(1)
    with listening(answering(b"", handshake(34))) as sound:
        places = {1: ("127.0.0.1", int(sound.rpartition(":")[2])), 2: ("127.0.0.1", refused)}
        brokers = {
            number: SimpleNamespace(id=number, host=host, port=port)
            for number, (host, port) in places.items()
        }
        metadata = SimpleNamespace(brokers=brokers)
        (line,) = broker_troubles(Settings(), metadata)  # type: ignore[arg-type]
    assert line.startswith(
        f"broker 2 has clients connect to 127.0.0.1:{refused} (advertised.listeners): cannot reach"
    )


DOCUMENTED = Path(__file__).parents[3] / "docs/connecting.md"


@pytest.fixture
def tokens() -> Iterator[TokenEndpoint]:
    with TokenEndpoint({"service": "hunter2"}) as endpoint:
        yield endpoint


def settings(tokens: TokenEndpoint, **changed: str) -> Settings:
    kafka = {"security.protocol": "SASL_SSL", **tokens.properties("service", **changed)}
    return Settings(bootstrap_servers="127.0.0.1:1", kafka=kafka)


def test_a_token_endpoint_that_is_away_is_tried_for_a_moment(
    tokens: TokenEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in ("first_contact._TOKEN_SECONDS", "tokens.source._PAUSE_SECONDS"):
        monkeypatch.setattr(f"caughtup.agents.kafka.{place}", 0.2)
    given = settings(tokens, scope="a moment")
    with away(tokens):
        began = time.monotonic()
        with pytest.raises(UserError, match=re.escape(f"no token from {tokens.url}: nothing lis")):
            connect(given)
        assert time.monotonic() - began > 0.2
    told = "no token from URL: nothing listens there (connection refused)"
    assert f"| {told} |" in DOCUMENTED.read_text()
    require_token(given)


def test_the_service_tries_it_until_it_is_there_and_says_so_once(
    tokens: TokenEndpoint, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for place in ("first_contact._TOKEN_SECONDS", "tokens.source._PAUSE_SECONDS"):
        monkeypatch.setattr(f"caughtup.agents.kafka.{place}", 0.1)
    tokens.stop()

    def come() -> None:
        wait_for("it says that nothing is there", lambda: caplog.messages)
        Timer(0.5, tokens.start).run()  # meanwhile it tries again

    coming = Thread(target=come)
    coming.start()
    require_token(settings(tokens, scope="until it is there"), keep_trying=True)
    coming.join()
    (said,) = caplog.messages
    assert said.endswith(
        "nothing listens there (connection refused); trying until a broker answers"
    )


def test_one_that_refuses_the_credentials_is_not_tried_again(tokens: TokenEndpoint) -> None:
    given = settings(tokens, **{"client.secret": "another"})
    with pytest.raises(UserError, match=r"401 \(invalid_client\)"):
        require_token(given, keep_trying=True)
    assert len(tokens.asked) == 1


def test_who_logs_in_otherwise_needs_no_token(tokens: TokenEndpoint) -> None:
    require_token(Settings())
    require_token(settings(tokens, **{"assertion.file": "/assertion"}))
    assert tokens.asked == []

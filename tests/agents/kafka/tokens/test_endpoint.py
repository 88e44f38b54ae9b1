"""Tokens from an endpoint: what it is asked, and what is said of whatever it answers."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest
import trustme

from caughtup.agents.kafka.tokens.endpoint import fetch_token
from caughtup.agents.kafka.tokens.token import BearerToken, TokenError, expiry_claim
from caughtup.models.security.logins import ClientCredentials
from tests.support.kafka.listeners import before, closing, listening, silent
from tests.support.kafka.tokens import TokenEndpoint

SECRET = "hunter2:hunter2"


@pytest.fixture
def endpoint() -> Iterator[TokenEndpoint]:
    with TokenEndpoint({"service": SECRET}) as endpoint:
        yield endpoint


def asked(url: str, secret: str = SECRET, scope: str = "", **kafka: str) -> BearerToken:
    properties = {name.replace("_", "."): value for name, value in kafka.items()}
    return fetch_token(ClientCredentials(url, "service", secret, scope), properties)


def refusal(url: str, **given: str) -> TokenError:
    with pytest.raises(TokenError) as caught:
        asked(url, **given)
    assert "hunter2" not in str(caught.value)
    assert "\n" not in str(caught.value)
    return caught.value


def test_a_token_is_had_by_id_secret_and_scope(endpoint: TokenEndpoint) -> None:
    token = asked(endpoint.url, scope="kafka other")
    assert token.value.count(".") == 2
    assert token.value not in repr(token)
    assert 3590 < token.expires_at - time.time() <= 3600
    form = {"grant_type": ["client_credentials"], "scope": ["kafka other"]}
    assert endpoint.asked == [("service", form)]


def test_of_the_tokens_own_time_and_the_answers_the_first_to_be_over_counts(
    endpoint: TokenEndpoint,
) -> None:
    endpoint.answer = {"access_token": endpoint.token("service"), "expires_in": 60}
    assert asked(endpoint.url).expires_at - time.time() <= 60
    endpoint.answer = {"access_token": endpoint.token("service")}
    assert 3500 < asked(endpoint.url).expires_at - time.time() <= 3600
    endpoint.answer = {"access_token": "opaque", "expires_in": 60}
    assert asked(endpoint.url).value == "opaque"


def test_a_wrong_secret_is_named_and_not_shown(endpoint: TokenEndpoint) -> None:
    said = refusal(endpoint.url, secret="hunter2, but wrong")
    assert str(said) == (
        f"no token from {endpoint.url}: it answers 401 (invalid_client): check "
        "sasl.oauthbearer.client.id, .client.secret and .scope"
    )
    assert not said.passing


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({}, "not JSON with an access_token"),
        ({"access_token": 1, "expires_in": 60}, "what it returned is not a token"),
        ({"access_token": "a\x01auth=b", "expires_in": 60}, "what it returned is not a token"),
        ({"access_token": "hunter2"}, "no expiry time"),
        ({"access_token": "hunter2", "expires_in": True}, "no expiry time"),
        ({"access_token": "hunter2", "expires_in": -1}, "the token has expired"),
        ({"access_token": "hunter2", "expires_in": 1e300}, "expires in years"),
    ],
)
def test_what_is_no_token_is_not_sent_to_brokers(
    endpoint: TokenEndpoint, answer: dict[str, object], words: str
) -> None:
    endpoint.answer = answer
    said = refusal(endpoint.url)
    assert words in str(said)
    assert not said.passing


@pytest.mark.parametrize(
    ("status", "passing"), [(503, True), (429, True), (404, False), (302, False)]
)
def test_a_failure_that_may_pass_is_told_from_one_that_does_not(
    endpoint: TokenEndpoint, status: int, passing: bool
) -> None:
    endpoint.refusing = status
    said = refusal(endpoint.url)
    assert f"it answers {status} (server_error)" in str(said)
    assert said.passing is passing


def dripping(connection: socket.socket) -> None:
    """Answer byte by byte, each well within the time that an answer has."""
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    for _ in range(1000):
        connection.sendall(b" ")
        time.sleep(0.01)


def test_an_endpoint_that_is_down_hangs_or_breaks_is_named(
    endpoint: TokenEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint.stop()
    said = refusal(endpoint.url)
    assert str(said) == (
        f"no token from {endpoint.url}: nothing listens there (connection refused)"
    )
    assert said.passing
    monkeypatch.setattr("caughtup.agents.kafka.tokens.endpoint._TIMEOUT_SECONDS", 0.2)
    late = "no answer within 0.2 s"
    for serve, words in ((silent, late), (dripping, late), (closing, "onnection")):
        with listening(serve) as address:
            assert words in str(refusal(f"http://{address}/token?secret=hunter2"))


def test_its_certificate_is_verified_by_the_authority_for_https(
    endpoint: TokenEndpoint, tmp_path_factory: pytest.TempPathFactory
) -> None:
    authority = trustme.CA()
    path = tmp_path_factory.mktemp("tls") / "ca.pem"
    authority.cert_pem.write_to_path(path)
    address = endpoint.url.removeprefix("http://").partition("/")[0]
    with listening(before(address, authority.issue_cert("127.0.0.1"))) as secured:
        url = f"https://{secured}/token"
        assert "https.ca.location" in str(refusal(url))
        assert asked(url, https_ca_location=str(path)).value
        assert asked(url, https_ca_pem=path.read_text()).value
    assert "https.ca.*" in str(refusal(url, https_ca_location=str(path.with_name("none"))))


@pytest.mark.parametrize(
    "text", ["", "a.b", "a.b.c", "a.bnVsbA.c", "a.eyJleHAiOiJ4In0.c", "a.W10.c"]
)
def test_a_token_that_says_no_time_has_none(text: str) -> None:
    assert expiry_claim(text) is None
    assert expiry_claim("a.eyJleHAiOjV9.c") == 5.0

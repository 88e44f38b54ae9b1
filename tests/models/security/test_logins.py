"""What clients log in with, as the properties say, and what is said where that is not enough."""

from __future__ import annotations

from typing import Any

import pytest

from caughtup.models.errors import CaughtupError
from caughtup.models.security.kafka import SERVICE, KafkaClient, check_properties, exposures
from caughtup.models.security.logins import (
    Bearer,
    ClientCredentials,
    Password,
    Provider,
    Ticket,
    has_own_way,
    login_of,
)

O = "sasl.oauthbearer."
SASL = {"security.protocol": "SASL_SSL"}
OIDC = SASL | {
    "sasl.mechanism": "OAUTHBEARER",
    f"{O}method": "oidc",
    f"{O}token.endpoint.url": "https://tokens.example.com/oauth2/token",
    f"{O}client.id": "service",
    f"{O}client.secret": "hunter2",
}
PROVIDED = SASL | {"sasl.mechanism": "OAUTHBEARER", f"{O}token.provider": "package.tokens:token"}


def refusal(given: dict[str, Any], *clients: KafkaClient) -> str:
    with pytest.raises(CaughtupError) as caught:
        check_properties(given, clients or SERVICE)
    assert "hunter2" not in caught.value.message
    return caught.value.message


def test_a_login_is_a_password_a_token_or_a_ticket() -> None:
    assert login_of({"security.protocol": "SSL"}) is None
    named = {"sasl.username": "us", "sasl.password": "hunter2"}
    for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
        login = login_of({**SASL, **named, "sasl.mechanism": mechanism})
        assert login == Password(mechanism, "us", "hunter2")
    url = "https://tokens.example.com/oauth2/token"
    scoped = {**OIDC, f"{O}scope": "a b", f"{O}extensions": "logicalCluster=lkc-1, pool=p-2"}
    assert login_of(scoped) == Bearer(
        ClientCredentials(url, "service", "hunter2", "a b"),
        {"logicalCluster": "lkc-1", "pool": "p-2"},
    )
    assert login_of({**PROVIDED, f"{O}config": "region=x"}) == Bearer(
        Provider("package.tokens:token", "region=x"), {}
    )
    assert login_of({**SASL, "sasl.mechanism": "GSSAPI"}) == Ticket("kafka")
    served = {**SASL, "sasl.mechanism": "GSSAPI", "sasl.kerberos.service.name": "broker"}
    assert login_of(served) == Ticket("broker")


def test_the_credentials_of_an_endpoint_have_two_names_each() -> None:
    renamed = {
        name.replace("r.client.", "r.client.credentials.client."): OIDC[name] for name in OIDC
    }
    assert f"{O}client.credentials.client.id" in renamed
    assert login_of(renamed) == login_of(OIDC)
    check_properties(renamed, SERVICE)
    assert "leave one of them out" in refusal({**renamed, f"{O}client.id": "another"})


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({f"{O}method": None}, "sasl.mechanism: OAUTHBEARER has to get tokens somewhere; set "),
        ({f"{O}token.endpoint.url": None}, f"{O}token.endpoint.url: it is not set, and OAUTHB"),
        (
            {f"{O}token.endpoint.url": "tokens.example.com"},
            f"{O}token.endpoint.url: it is not an add",
        ),
        ({f"{O}client.id": None}, f"{O}client.id: it is not set, and OAUTHBEARER needs it"),
        ({f"{O}client.secret": None}, f"{O}client.secret: it is not set, and OAUTHBEARER needs it"),
        ({f"{O}extensions": "auth=x"}, f"{O}extensions: it has to be NAME=VALUE"),
        ({f"{O}extensions": "a=\x01auth=x"}, f"{O}extensions: it has to be NAME=VALUE"),
        ({f"{O}extensions": "logicalCluster"}, f"{O}extensions: it has to be NAME=VALUE"),
        ({f"{O}token.provider": "a:b"}, f"{O}token.provider: {O}method is oidc as well"),
        ({f"{O}token.provider": "a", f"{O}method": None}, f"{O}token.provider: it has to be MOD"),
    ],
)
@pytest.mark.parametrize("clients", [SERVICE, (KafkaClient.LIBRDKAFKA,)])
def test_a_token_that_no_client_could_get_is_refused(
    changed: dict[str, Any], words: str, clients: tuple[KafkaClient, ...]
) -> None:
    given = {name: value for name, value in {**OIDC, **changed}.items() if value is not None}
    assert refusal(given, *clients).startswith(words)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (f"{O}grant.type", "urn:ietf:params:oauth:grant-type:jwt-bearer"),
        (f"{O}assertion.file", "/assertion"),
        (f"{O}metadata.authentication.type", "azure_imds"),
        ("enable.sasl.oauthbearer.unsecure.jwt", True),
    ],
)
def test_other_ways_to_a_token_are_librdkafkas_alone(name: str, value: object) -> None:
    given = {**OIDC, name: value}
    assert has_own_way(given)
    check_properties(given, [KafkaClient.LIBRDKAFKA])
    said = refusal(given)
    assert said.startswith(f"{name}: aiokafka, ")
    assert f"{O}token.provider" in said


def test_spark_gets_tokens_from_an_endpoint_and_calls_no_function() -> None:
    check_properties(OIDC, [KafkaClient.SPARK])
    said = refusal(PROVIDED, KafkaClient.SPARK)
    assert said.startswith(f"{O}token.provider: Spark, ")
    assert "sasl.login.callback.handler.class" in said
    assert refusal({**OIDC, "https.ca.location": "/ca"}, KafkaClient.SPARK).startswith(
        "https.ca.loc"
    )


def test_a_secret_that_crosses_a_network_in_plain_text_is_exposed() -> None:
    assert list(exposures(OIDC)) == []
    for near in ("http://127.0.0.1:1/", "http://localhost/x", "http://[::1]:1/"):
        assert list(exposures({**OIDC, f"{O}token.endpoint.url": near})) == []
    (line,) = exposures({**OIDC, f"{O}token.endpoint.url": "http://tokens.example.com/"})
    assert line.startswith(f"{O}token.endpoint.url begins with http://: the client secret")

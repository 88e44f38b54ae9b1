"""One set of connection properties for every client: each gets its own names, and works."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import faust
import pytest
import trustme
from aiokafka import AIOKafkaConsumer
from confluent_kafka.admin import AdminClient
from faust.types.auth import AuthProtocol, SASLMechanism

from caughtup.agents.errors import UserError
from caughtup.agents.kafka_config import (
    aiokafka_config,
    faust_credentials,
    rdkafka_config,
)
from caughtup.agents.settings import Settings

SCRAM = {
    "security.protocol": "sasl_plaintext",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.username": "us",
    "sasl.password": 'quote " and \\ slash',
}


def settings(**kafka: Any) -> Settings:
    return Settings(bootstrap_servers="127.0.0.1:1", kafka=kafka)


@pytest.fixture
def authority(tmp_path: Path) -> trustme.CA:
    made = trustme.CA()
    made.cert_pem.write_to_path(tmp_path / "ca.pem")
    issued = made.issue_cert("client.example")
    issued.private_key_and_cert_chain_pem.write_to_path(tmp_path / "client.pem")
    return made


@pytest.fixture
def tls(authority: trustme.CA, tmp_path: Path) -> dict[str, Any]:
    return {"security.protocol": "SSL", "ssl.ca.location": str(tmp_path / "ca.pem")}


def test_a_plaintext_listener_needs_nothing() -> None:
    plain = settings()
    assert aiokafka_config(plain) == {
        "bootstrap_servers": "127.0.0.1:1",
        "client_id": "caughtup",
        "security_protocol": "PLAINTEXT",
    }
    assert faust_credentials(plain) is None


def test_librdkafka_gets_the_operators_properties_and_then_the_callers() -> None:
    config = rdkafka_config(
        settings(**{"client.id": "mine", "group.id": "mine"}), **{"group.id": "ours"}
    )
    assert (config["client.id"], config["group.id"]) == ("mine", "ours")
    assert config["bootstrap.servers"] == "127.0.0.1:1"
    AdminClient({**rdkafka_config(settings(**SCRAM)), "bootstrap.servers": ""})


async def test_scram_credentials_reach_every_client_in_its_own_names() -> None:
    config = aiokafka_config(settings(**SCRAM))
    assert config["security_protocol"] == "SASL_PLAINTEXT"
    assert config["sasl_mechanism"] == "SCRAM-SHA-512"
    assert (config["sasl_plain_username"], config["sasl_plain_password"]) == (
        "us",
        SCRAM["sasl.password"],
    )
    await AIOKafkaConsumer(**config).stop()  # it takes them; a wrong name would be refused
    credentials = faust_credentials(settings(**SCRAM))
    assert isinstance(credentials, faust.SASLCredentials)
    assert credentials.protocol == AuthProtocol.SASL_PLAINTEXT
    assert credentials.mechanism == SASLMechanism.SCRAM_SHA_512
    assert (credentials.username, credentials.password) == ("us", SCRAM["sasl.password"])


def test_the_authority_reaches_every_client(tls: dict[str, Any], authority: trustme.CA) -> None:
    context = aiokafka_config(settings(**tls))["ssl_context"]
    assert len(context.get_ca_certs()) == 1
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    credentials = faust_credentials(settings(**tls))
    assert isinstance(credentials, faust.SSLCredentials)
    assert len(credentials.context.get_ca_certs()) == 1
    AdminClient(rdkafka_config(settings(**tls), **{"bootstrap.servers": ""}))


def test_sasl_over_tls_has_both(tls: dict[str, Any]) -> None:
    both = settings(**{**SCRAM, **tls, "security.protocol": "SASL_SSL"})
    config = aiokafka_config(both)
    assert config["security_protocol"] == "SASL_SSL"
    assert isinstance(config["ssl_context"], ssl.SSLContext)
    credentials = faust_credentials(both)
    assert isinstance(credentials, faust.SASLCredentials)
    assert credentials.protocol == AuthProtocol.SASL_SSL
    assert credentials.ssl_context is not None


def test_a_client_certificate_is_loaded(tls: dict[str, Any], tmp_path: Path) -> None:
    certificate = str(tmp_path / "client.pem")
    aiokafka_config(settings(**tls, **{"ssl.certificate.location": certificate}))
    with pytest.raises(UserError, match=r"^setting kafka\.ssl\.\*: "):
        aiokafka_config(settings(**tls, **{"ssl.certificate.location": tls["ssl.ca.location"]}))


@pytest.mark.parametrize(
    ("property_", "value", "verify_mode"),
    [
        ("ssl.endpoint.identification.algorithm", "none", ssl.CERT_REQUIRED),
        ("enable.ssl.certificate.verification", False, ssl.CERT_NONE),
        ("enable.ssl.certificate.verification", "false", ssl.CERT_NONE),
    ],
)
def test_checks_are_left_out_only_as_far_as_asked_for(
    tls: dict[str, Any], property_: str, value: Any, verify_mode: ssl.VerifyMode
) -> None:
    context = aiokafka_config(settings(**tls, **{property_: value}))["ssl_context"]
    assert (context.verify_mode, context.check_hostname) == (verify_mode, False)


@pytest.mark.parametrize(
    ("kafka", "words"),
    [
        ({"security.protocol": "TLS"}, "setting kafka.security.protocol: TLS"),
        ({**SCRAM, "sasl.mechanism": "GSSAPI"}, "setting kafka.sasl.mechanism: GSSAPI"),
        ({"security.protocol": "SSL", "ssl.ca.location": "/nowhere"}, "setting kafka.ssl.*: "),
    ],
)
def test_what_cannot_work_is_refused_in_one_line_by_its_name(
    kafka: dict[str, Any], words: str
) -> None:
    for configure in (aiokafka_config, faust_credentials):
        with pytest.raises(UserError) as failure:
            configure(settings(**kafka))
        assert failure.value.message.startswith(words)
        assert "\n" not in failure.value.message

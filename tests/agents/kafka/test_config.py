"""One set of connection properties for every client: each gets its own names, and works."""

from __future__ import annotations

import ssl
import subprocess
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trustme
from aiokafka import AIOKafkaConsumer
from confluent_kafka.admin import AdminClient
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from caughtup.agents.errors import UserError
from caughtup.agents.kafka.config import aiokafka_config, rdkafka_config
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


def test_librdkafka_gets_the_operators_properties_and_then_the_callers() -> None:
    config = rdkafka_config(
        settings(**{"client.id": "mine", "group.id": "mine"}), **{"group.id": "ours"}
    )
    assert (config["client.id"], config["group.id"]) == ("mine", "ours")
    assert config["bootstrap.servers"] == "127.0.0.1:1"
    assert config["allow.auto.create.topics"] is False, "no client of ours makes topics by asking"
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


def test_the_authority_reaches_every_client(tls: dict[str, Any], authority: trustme.CA) -> None:
    context = aiokafka_config(settings(**tls))["ssl_context"]
    assert len(context.get_ca_certs()) == 1
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    AdminClient(rdkafka_config(settings(**tls), **{"bootstrap.servers": ""}))


def test_sasl_over_tls_has_both(tls: dict[str, Any]) -> None:
    both = settings(**{**SCRAM, **tls, "security.protocol": "SASL_SSL"})
    config = aiokafka_config(both)
    assert config["security_protocol"] == "SASL_SSL"
    assert isinstance(config["ssl_context"], ssl.SSLContext)


def test_a_client_certificate_is_loaded(tls: dict[str, Any], tmp_path: Path) -> None:
    certificate = str(tmp_path / "client.pem")
    aiokafka_config(settings(**tls, **{"ssl.certificate.location": certificate}))
    with pytest.raises(UserError, match=r"^setting kafka\.ssl\.certificate\.\*: "):
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


def shakes_hands(context: ssl.SSLContext, server: trustme.LeafCert) -> None:
    """Connect to a server with a certificate, in memory. Raises SSLError."""
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.configure_cert(serving)
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = context.wrap_bio(back, there, server_hostname="broker.example")
    theirs = serving.wrap_bio(there, back, server_side=True)
    done: set[ssl.SSLObject] = set()
    for side in (ours, theirs) * 4:
        with suppress(ssl.SSLWantReadError):
            side.do_handshake()
            done.add(side)
    assert done == {ours, theirs}


def revoking(authority: trustme.CA, *certificates: trustme.LeafCert) -> bytes:
    """Make an authority's list of revoked certificates."""
    issuer = x509.load_pem_x509_certificate(authority.cert_pem.bytes())
    now = datetime.now(UTC)
    made = x509.CertificateRevocationListBuilder(issuer.subject, now, now + timedelta(days=1))
    for certificate in certificates:
        loaded = x509.load_pem_x509_certificate(certificate.cert_chain_pems[0].bytes())
        revoked = x509.RevokedCertificateBuilder(loaded.serial_number, now)
        made = made.add_revoked_certificate(revoked.build())
    key = load_pem_private_key(authority.private_key_pem.bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return made.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)


def test_a_revoked_certificate_is_refused(
    tls: dict[str, Any], authority: trustme.CA, tmp_path: Path
) -> None:
    good, bad = (authority.issue_cert("broker.example") for _ in range(2))
    (tmp_path / "crl.pem").write_bytes(revoking(authority, bad))
    shakes_hands(aiokafka_config(settings(**tls))["ssl_context"], bad)
    checked = settings(**tls, **{"ssl.crl.location": str(tmp_path / "crl.pem")})
    shakes_hands(aiokafka_config(checked)["ssl_context"], good)
    with pytest.raises(ssl.SSLError, match="revoked"):
        shakes_hands(aiokafka_config(checked)["ssl_context"], bad)
    AdminClient(rdkafka_config(checked, **{"bootstrap.servers": ""}))


def test_certificates_by_value_reach_every_client(authority: trustme.CA) -> None:
    issued = authority.issue_cert("client.example")
    given = settings(
        **{
            "security.protocol": "SSL",
            "ssl.ca.pem": authority.cert_pem.bytes().decode(),
            "ssl.certificate.pem": issued.cert_chain_pems[0].bytes().decode(),
            "ssl.key.pem": issued.private_key_pem.bytes().decode(),
        }
    )
    context = aiokafka_config(given)["ssl_context"]
    assert len(context.get_ca_certs()) == 1
    shakes_hands(context, authority.issue_cert("broker.example"))
    with pytest.raises(ssl.SSLError):
        shakes_hands(context, trustme.CA().issue_cert("broker.example"))
    AdminClient(rdkafka_config(given, **{"bootstrap.servers": ""}))
    other = trustme.CA().issue_cert("client.example")
    mixed = {**given.kafka, "ssl.key.pem": other.private_key_pem.bytes().decode()}
    with pytest.raises(UserError, match="certificate and key don't fit together"):
        aiokafka_config(settings(**mixed))


def test_an_encrypted_key_is_opened_with_its_password_and_never_asked_for(
    tls: dict[str, Any], authority: trustme.CA
) -> None:
    issued = authority.issue_cert("client.example")
    key = load_pem_private_key(issued.private_key_pem.bytes(), None)
    encrypted = key.private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"of the key")
    )
    given = {
        **tls,
        "ssl.certificate.pem": issued.cert_chain_pems[0].bytes().decode(),
        "ssl.key.pem": encrypted.decode(),
    }
    aiokafka_config(settings(**given, **{"ssl.key.password": "of the key"}))
    for password in ({}, {"ssl.key.password": "another"}):
        with pytest.raises(UserError) as failure:
            aiokafka_config(settings(**given, **password))
        assert "another" not in failure.value.message


def test_a_directory_of_authorities_is_one(authority: trustme.CA, tmp_path: Path) -> None:
    given = {"security.protocol": "SSL", "ssl.ca.location": str(tmp_path / "authorities")}
    (tmp_path / "authorities").mkdir()
    hashed = subprocess.run(
        ["openssl", "x509", "-hash", "-noout"],
        input=authority.cert_pem.bytes(),
        capture_output=True,
        check=True,
    )
    name = f"{hashed.stdout.decode().strip()}.0"
    authority.cert_pem.write_to_path(tmp_path / "authorities" / name)
    context = aiokafka_config(settings(**given))["ssl_context"]
    shakes_hands(context, authority.issue_cert("broker.example"))
    probed = aiokafka_config(settings(**{**given, "ssl.ca.location": "probe"}))["ssl_context"]
    assert probed.verify_mode == ssl.CERT_REQUIRED


def test_cipher_suites_are_limited_as_asked(tls: dict[str, Any]) -> None:
    suites = {"ssl.cipher.suites": "ECDHE-ECDSA-AES256-GCM-SHA384"}
    context = aiokafka_config(settings(**tls, **suites))["ssl_context"]
    named = {one["name"] for one in context.get_ciphers() if one["protocol"] == "TLSv1.2"}
    assert named == {"ECDHE-ECDSA-AES256-GCM-SHA384"}
    with pytest.raises(UserError, match=r"^setting kafka\.ssl\.cipher\.suites: "):
        aiokafka_config(settings(**tls, **{"ssl.cipher.suites": "none of them"}))


@pytest.mark.parametrize(
    ("kafka", "words"),
    [
        ({"security.protocol": "SSL", "ssl.keystore.location": "x"}, "setting kafka.ssl.keystore."),
        ({"security.protocol": "SSL", "ssl.providers": "x"}, "setting kafka.ssl.providers: "),
        ({"security.protocol": "TLS"}, "setting kafka.security.protocol: TLS"),
        ({**SCRAM, "sasl.mechanism": "NTLM"}, "setting kafka.sasl.mechanism: NTLM"),
        (
            {"security.protocol": "SSL", "ssl.ca.location": "/nowhere"},
            "setting kafka.ssl.ca.location: ",
        ),
    ],
)
def test_what_cannot_work_is_refused_in_one_line_by_its_name(
    kafka: dict[str, Any], words: str
) -> None:
    with pytest.raises(UserError) as failure:
        aiokafka_config(settings(**kafka))
    assert failure.value.message.startswith(words)
    assert "\n" not in failure.value.message

"""Which client can honour which security property, and what is said of one that can't."""

from __future__ import annotations

import glob
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from caughtup.models.errors import CaughtupError
from caughtup.models.security.kafka import (
    SERVICE,
    KafkaClient,
    check_properties,
    exposures,
    problems,
    verifies,
)
from caughtup.models.security.kafka_names import JAVA, LIBRDKAFKA, SECRETS, is_secret, is_security
from caughtup.models.security.logins import login_of

TLS = {"security.protocol": "SSL"}
LOGIN = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.username": "us",
    "sasl.password": "hunter2",
}
#: librdkafka prints all it knows, to a C file.
SHOW_PROPERTIES = """
import ctypes, sys
library, process = ctypes.CDLL(sys.argv[1]), ctypes.CDLL(None)
process.fdopen.restype = ctypes.c_void_p
file = ctypes.c_void_p(process.fdopen(1, b"w"))
library.rd_kafka_conf_properties_show(file)
process.fflush(file)
"""


def refusal(properties: dict[str, Any], *clients: KafkaClient) -> str:
    with pytest.raises(CaughtupError) as caught:
        check_properties(properties, clients or SERVICE)
    assert caught.value.code == "bad_kafka_property"
    assert "\n" not in caught.value.message
    return caught.value.message


def test_the_list_is_librdkafkas_own() -> None:
    installed = Path(confluent_kafka.__file__).parent.with_name("confluent_kafka.libs")
    (library,) = glob.glob(f"{installed}/librdkafka*")
    shown = subprocess.run(
        [sys.executable, "-c", SHOW_PROPERTIES, library],
        env={**os.environ, "LD_LIBRARY_PATH": str(installed)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout
    rows = [row.split("|") for row in shown.splitlines() if row.count("|") >= 5]
    settable = {row[0].strip() for row in rows if "see dedicated API" not in row[-1]}
    assert "bootstrap.servers" in settable
    assert {name for name in settable if is_security(name)} == LIBRDKAFKA
    # Whatever is about TLS, SASL or OAuth begins as is_security expects.
    about = re.compile("ssl|sasl|oauth|security|https|kerberos", re.IGNORECASE)
    assert {name for name in settable if about.search(name)} == LIBRDKAFKA


@pytest.mark.parametrize("name", sorted(LIBRDKAFKA))
def test_each_property_is_honoured_by_every_client_or_refused_by_its_name(name: str) -> None:
    value = "true" if name.startswith("enable.") else "TLS_X" if "cipher" in name else "x"
    for client in (KafkaClient.AIOKAFKA, KafkaClient.SPARK):
        given = {**LOGIN, "sasl.mechanism": "PLAIN", name: value}
        if name in ("security.protocol", "sasl.mechanism", "sasl.mechanisms"):
            given[name] = LOGIN.get(name, "PLAIN")
        if name in client.value.honoured:
            check_properties(given, [client])
        else:
            said = refusal(given, client)
            assert said.startswith(f"{name}: ")
            assert client.value.label in said
            assert re.search(r"; (use|set) ", said)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("ssl.keystore.typ", "librdkafka has no such property; use ssl.certificate.location"),
        ("ssl.ca.certificate.stores", "aiokafka, .* use ssl.ca.location or ssl.ca.pem"),
        ("ssl.curves.list", "aiokafka, .* openssl.cnf"),
        ("sasl.oauthbearer.assertion.file", "aiokafka, .* use a client's id and secret, or "),
        ("enable.sasl.oauthbearer.unsecure.jwt", "aiokafka, .* sasl.oauthbearer.token.provider"),
        ("ssl.truststore.location", "librdkafka has no such property; use ssl.ca.location"),
        ("sasl.jaas.config", "librdkafka has no such property; use PLAIN"),
        ("ssl.key.passwort", "librdkafka has no such property"),
        ("sasl_plain_password", "librdkafka has no such property"),
        ("ssl_ca", "librdkafka has no such property"),
        ("security.providers", "librdkafka has no such property"),
    ],
)
def test_the_service_says_which_client_cannot_and_what_to_use_instead(
    name: str, words: str
) -> None:
    said = refusal({**TLS, name: "x"})
    assert said.startswith(f"{name}: ")
    assert re.search(words, said)


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({"ssl.crl.location": "x"}, "^ssl.crl.location: Spark, "),
        ({"ssl.curves.list": "X25519"}, "^ssl.curves.list: Spark, .* jdk.tls.namedGroups"),
        ({"ssl.cipher.suites": "ECDHE-RSA-AES128-GCM-SHA256"}, "^ssl.cipher.suites: Spark, "),
        ({"sasl.kerberos.keytab": "x"}, "^sasl.kerberos.keytab: Spark, .* sasl.jaas.config"),
        ({"enable.ssl.certificate.verification": False}, "^enable.ssl.c.*: Spark, .* verifies"),
        ({"ssl.trust.location": "x"}, "^ssl.trust.location: Spark, .* has no such property"),
    ],
)
def test_spark_says_what_its_client_cannot(properties: dict[str, Any], words: str) -> None:
    assert re.search(words, refusal({**TLS, **properties}, KafkaClient.SPARK))


def test_spark_takes_javas_own_names_and_any_clients_spelling() -> None:
    check_properties(dict.fromkeys(JAVA - {"security.protocol", "ssl.cipher.suites"}, "x"), SPARK)
    check_properties({"security_protocol": "SSL", "ssl_cafile": "x"}, SPARK)
    check_properties({**TLS, "ssl.cipher.suites": "TLS_AES_128_GCM_SHA256, TLS_X"}, SPARK)
    check_properties({**LOGIN, "sasl.mechanism": "GSSAPI", "sasl.jaas.config": "m;"}, SPARK)


SPARK = (KafkaClient.SPARK,)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"sasl.mechanism": "NTLM"}, "sasl.mechanism: NTLM is not supported; use PLAIN"),
        ({"sasl.mechanism": "OAUTHBEARER"}, "sasl.mechanism: OAUTHBEARER has to get tokens"),
        ({"sasl.mechanism": None}, "sasl.mechanism: it is not set; use PLAIN"),
        ({"sasl.username": None}, "sasl.username: it is not set"),
        ({"sasl.password": ""}, "sasl.password: it is not set"),
        ({"security.protocol": "TLS"}, "security.protocol: TLS is not a Kafka protocol"),
        ({"sasl.mechanisms": "PLAIN"}, "sasl.mechanism: sasl.mechanisms is set as well"),
        ({"enable.ssl.certificate.verification": "no"}, "enable.ssl.certificate.verification: "),
    ],
)
def test_a_login_that_clients_would_take_differently_is_refused(
    changed: dict[str, Any], words: str
) -> None:
    given = {name: value for name, value in {**LOGIN, **changed}.items() if value is not None}
    said = refusal(given)
    assert said.startswith(words)
    assert "hunter2" not in said


def test_without_sasl_there_is_no_login() -> None:
    assert login_of({}) is None
    assert login_of(TLS) is None
    assert login_of(LOGIN) == ("SCRAM-SHA-512", "us", "hunter2")


@pytest.mark.parametrize(
    ("value", "expected"), [(True, True), ("T", True), ("1", True), (False, False), ("f", False)]
)
def test_booleans_are_read_as_librdkafka_reads_them(value: Any, expected: bool) -> None:
    assert verifies({"enable.ssl.certificate.verification": value}) is expected


def test_what_is_not_safe_is_said_and_nothing_else() -> None:
    for safe in ({}, {"security.protocol": "PLAINTEXT", "socket.timeout.ms": 1}, LOGIN, TLS):
        assert list(exposures(safe)) == []
    (clear,) = exposures({**LOGIN, "security.protocol": "SASL_PLAINTEXT"})
    assert "unencrypted" in clear
    (forgotten,) = exposures({"ssl.ca.location": "/ca.pem", "sasl.password": "hunter2"})
    assert "sasl.password, ssl.ca.location" in forgotten
    (unused,) = exposures({**LOGIN, "security.protocol": "SSL"})
    assert "which ignores sasl.mechanism, sasl.password, sasl.username" in unused
    (anybody,) = exposures({**LOGIN, "enable.ssl.certificate.verification": False})
    assert "pretend" in anybody
    assert "hunter2" not in clear + forgotten + unused + anybody


def test_everything_that_is_wrong_is_named_at_once_and_what_was_meant() -> None:
    given = {"security.protocol": "TLS", "ssl.ca.locaton": "x", "sasl.pasword": "x"}
    pasword, locaton, providers, protocol = problems({**given, "ssl.providers": "x"}, SERVICE)
    assert pasword == "sasl.pasword: librdkafka has no such property; did you mean sasl.password?"
    assert locaton.endswith("; did you mean ssl.ca.location?")
    assert providers.startswith("ssl.providers: aiokafka, ")
    assert protocol == "security.protocol: TLS is not a Kafka protocol"


def test_secrets_are_known_in_any_spelling() -> None:
    assert {name for name in LIBRDKAFKA | JAVA if re.search(r"password|secret|pass", name)} <= (
        SECRETS
    )
    assert is_secret("sasl_plain_password")
    assert not is_secret("sasl.username")

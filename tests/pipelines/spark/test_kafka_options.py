"""Client properties in any client's spelling, as Kafka's Java client takes them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pyspark
import pytest

from caughtup.models.errors import CaughtupError
from caughtup.models.security.kafka_names import JAVA, is_security
from caughtup.pipelines.java.find import find_java
from caughtup.pipelines.java.jars import ensure_spark_jars
from caughtup.pipelines.spark.kafka_options import java_properties, source_options


def test_javas_own_spelling_passes_through() -> None:
    given = {"ssl.truststore.location": "/trust.jks", "client.id": "history"}
    assert java_properties(given) == given


#: Spark 3.5 has Kafka's client of 3.4.
NOT_IN_KAFKA_3_4 = {"sasl.oauthbearer.header.urlencode"}


def test_the_list_is_that_of_the_client_which_spark_brings() -> None:
    ours, sparks = ensure_spark_jars(), Path(pyspark.__file__).parent / "jars"
    told = subprocess.run(
        [
            find_java().program,
            *("-cp", f"{ours}/*:{sparks}/*"),
            "org.apache.kafka.clients.consumer.ConsumerConfig",
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout
    names = set(re.findall(r'id="consumerconfigs_([\w.]+)"', told))
    assert "bootstrap.servers" in names
    found = {name for name in names if is_security(name)}
    assert found <= JAVA
    assert JAVA - found <= NOT_IN_KAFKA_3_4


def test_every_option_is_one_of_sparks_kafka_source() -> None:
    assert source_options("a:1,b:2", {"client.id": "x", "bootstrap.servers": "other:3"}) == {
        "kafka.bootstrap.servers": "a:1,b:2",
        "kafka.client.id": "x",
    }


@pytest.mark.parametrize(
    "given",
    [
        {"security.protocol": "sasl_ssl", "sasl.mechanisms": "SCRAM-SHA-512"}
        | {"sasl.username": "alice", "sasl.password": 'a\\b"c'},
        {"security_protocol": "SASL_SSL", "sasl_mechanism": "SCRAM-SHA-512"}
        | {"sasl_plain_username": "alice", "sasl_plain_password": 'a\\b"c'},
    ],
    ids=["librdkafka", "aiokafka"],
)
def test_user_and_password_become_a_login(given: dict[str, str]) -> None:
    assert java_properties(given) == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="alice" password="a\\\\b\\"c";',
    }


def test_a_login_that_is_given_is_kept() -> None:
    given = {"sasl.mechanism": "OAUTHBEARER", "sasl.jaas.config": "some.Module required;"}
    assert java_properties(given) == given


def test_what_javas_client_cannot_honour_is_refused_and_not_dropped() -> None:
    for name in ("ssl.crl.location", "sasl.kerberos.keytab", "ssl.unknown"):
        with pytest.raises(CaughtupError, match=f"{name}: Spark"):
            source_options("a:1", {"security.protocol": "SSL", name: "x"})


def test_javas_client_always_verifies() -> None:
    verified = {"security.protocol": "SSL", "enable.ssl.certificate.verification": "true"}
    assert java_properties(verified) == {"security.protocol": "SSL"}
    with pytest.raises(CaughtupError, match=r"^bad_kafka_property: enable\.ssl\.certificate"):
        java_properties(verified | {"enable.ssl.certificate.verification": "false"})


def test_certificates_by_value_are_passed_on() -> None:
    given = {f"ssl.{name}.pem": f"the {name}" for name in ("ca", "certificate", "key")}
    assert java_properties(given) == {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": "the ca",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": "the certificate",
        "ssl.keystore.key": "the key",
    }


def test_a_key_that_java_cannot_read_is_refused() -> None:
    with pytest.raises(CaughtupError, match="PKCS #8 only; `openssl pkcs8 -topk8` makes one"):
        java_properties({"ssl.key.pem": "-----BEGIN RSA PRIVATE KEY-----\n…"})


def test_certificates_are_passed_by_value(tmp_path: Path) -> None:
    for name in ("ca", "certificate", "key"):
        (tmp_path / name).write_text(f"the {name}")
    given = {f"ssl.{name}.location": str(tmp_path / name) for name in ("ca", "certificate", "key")}
    assert java_properties(given | {"ssl.endpoint.identification.algorithm": "none"}) == {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": "the ca",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": "the certificate",
        "ssl.keystore.key": "the key",
        "ssl.endpoint.identification.algorithm": "",
    }


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"ssl.ca.location": "/nowhere/ca.pem"}, "ssl.ca.location: /nowhere/ca.pem: No such file"),
        ({"sasl.mechanism": "GSSAPI", "sasl.username": "a"}, "GSSAPI does not use sasl.username"),
    ],
)
def test_what_cannot_work_is_said(given: dict[str, str], words: str) -> None:
    with pytest.raises(CaughtupError, match="bad_kafka_property") as caught:
        java_properties(given)
    assert words in caught.value.message


def test_a_certificate_that_is_not_text_is_said(tmp_path: Path) -> None:
    binary = tmp_path / "ca.jks"
    binary.write_bytes(b"\xfe\xed\xfe\xed")
    with pytest.raises(CaughtupError, match="not a PEM file"):
        java_properties({"ssl.ca.location": str(binary)})


def test_a_token_of_an_endpoints_becomes_javas_own_login() -> None:
    given = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": "https://tokens.example.com/",
        "sasl.oauthbearer.client.id": "service",
        "sasl.oauthbearer.client.secret": 'a"b',
        "sasl.oauthbearer.scope": "kafka",
        "sasl.oauthbearer.extensions": "logicalCluster=lkc-1",
    }
    package = "org.apache.kafka.common.security.oauthbearer"
    assert java_properties(given) == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": "https://tokens.example.com/",
        "sasl.login.callback.handler.class": f"{package}.OAuthBearerLoginCallbackHandler",
        "sasl.jaas.config": f'{package}.OAuthBearerLoginModule required clientId="service" '
        'clientSecret="a\\"b" scope="kafka" extension_logicalCluster="lkc-1";',
    }

"""A client's certificate in PKCS #12, for aiokafka too, which reads PEM."""

from __future__ import annotations

import re
import ssl
from contextlib import suppress
from pathlib import Path

import pytest
import trustme

from caughtup.agents.errors import UserError
from caughtup.agents.kafka import tls
from caughtup.agents.kafka.diagnosis import trouble_at
from caughtup.agents.kafka.property_problems import property_problems
from caughtup.agents.kafka.tls import ssl_context
from caughtup.models.security.kafka import SERVICE, KafkaClient
from tests.support.kafka.keystores import client_forms
from tests.support.kafka.listeners import before, listening

ONLY_LIBRDKAFKA = (KafkaClient.LIBRDKAFKA,)


@pytest.fixture
def forms(tmp_path: Path) -> dict[str, dict[str, str]]:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    issued = authority.issue_cert(common_name="client")
    common = {"security.protocol": "SSL", "ssl.ca.location": str(tmp_path / "ca.pem")}
    return {name: common | form for name, form in client_forms(issued, tmp_path).items()}


def presented(context: ssl.SSLContext, authority: str) -> str:
    """Shake hands in memory, and return the name in the client's certificate."""
    served = trustme.CA()
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.verify_mode = ssl.CERT_REQUIRED
    server.load_verify_locations(authority)
    served.issue_cert("broker.example").configure_cert(server)
    served.configure_trust(context)
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(back, there, server_hostname="broker.example")
    broker = server.wrap_bio(there, back, server_side=True)
    for _ in range(4):
        for side in (client, broker):
            with suppress(ssl.SSLWantReadError):
                side.do_handshake()
    subject = dict(pair for (pair,) in broker.getpeercert()["subject"])  # type: ignore[index,misc]
    return str(subject["commonName"])


@pytest.mark.parametrize("form", ["PEM files", "inline PEM", "PKCS #12"])
def test_each_form_presents_the_same_certificate(
    forms: dict[str, dict[str, str]], form: str
) -> None:
    kafka = forms[form]
    assert list(property_problems(kafka, SERVICE)) == []
    assert presented(ssl_context(kafka), kafka["ssl.ca.location"]) == "client"


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"ssl.keystore.password": "another"}, "or ssl.keystore.password does not open it"),
        ({"ssl.keystore.password": ""}, "or ssl.keystore.password does not open it"),
        ({"ssl.keystore.location": "/nowhere.p12"}, "/nowhere.p12: No such file"),
        ({"ssl.certificate.pem": "PEM"}, "leave one of them out"),
        ({"ssl.key.pem": "PEM"}, "leave one of them out"),
    ],
)
def test_one_that_cannot_be_used_is_named(
    forms: dict[str, dict[str, str]], changed: dict[str, str], words: str
) -> None:
    (line,) = property_problems({**forms["PKCS #12"], **changed}, SERVICE)
    assert line.startswith("setting kafka.ssl.keystore.location: ")
    assert words in line
    assert "hunter2" not in line


def test_what_is_no_keystore_is_named(forms: dict[str, dict[str, str]], tmp_path: Path) -> None:
    (tmp_path / "not.p12").write_bytes(b"\x30\x82hunter2")
    kafka = {**forms["PKCS #12"], "ssl.keystore.location": str(tmp_path / "not.p12")}
    (line,) = property_problems(kafka, SERVICE)
    assert "the file is not PKCS #12" in line


def test_without_the_extra_the_service_names_it_and_librdkafka_alone_needs_none(
    forms: dict[str, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls, "find_spec", lambda _: None)
    kafka = forms["PKCS #12"]
    (line,) = property_problems(kafka, SERVICE)
    assert line.startswith("setting kafka.ssl.keystore.location: ")
    assert "type: pip install 'caughtup[pkcs12]', or use ssl.certificate.location" in line
    assert list(property_problems(kafka, ONLY_LIBRDKAFKA)) == []
    with pytest.raises(UserError, match=r"caughtup\[pkcs12\]"):
        ssl_context(kafka)


@pytest.mark.parametrize("form", ["PEM files", "inline PEM", "PKCS #12"])
def test_a_certificate_that_a_broker_does_not_trust_is_named(
    forms: dict[str, dict[str, str]], form: str, tmp_path: Path
) -> None:
    served = trustme.CA()
    served.cert_pem.write_to_path(tmp_path / "served.pem")
    kafka = {**forms[form], "ssl.ca.location": str(tmp_path / "served.pem")}
    with listening(before("127.0.0.1:1", served.issue_cert("127.0.0.1"), trustme.CA())) as address:
        host, _, port = address.partition(":")
        trouble = trouble_at(host, int(port), kafka)
    assert trouble is not None
    # Which of the two depends on what comes first: the broker's alert, or its reset.
    refused = f"{address} (refuses our certificate|closes the connection once it has .*): check ssl"
    assert re.match(refused, trouble.line)

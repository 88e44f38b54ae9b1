"""Check the properties under ``[kafka]`` before any client gets them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from caughtup.agents.errors import UserError
from caughtup.agents.kafka.property_names import OTHER_PROPERTIES
from caughtup.agents.kafka.tls import ssl_context, without_unopenable_keystore
from caughtup.agents.kafka.tokens.provider import load_provider
from caughtup.agents.kafka.tokens.token import TokenError
from caughtup.models.errors import CaughtupError
from caughtup.models.security.kafka import KafkaClient, problems
from caughtup.models.security.kafka_names import TOKEN_PROVIDER, is_security
from caughtup.models.security.logins import TICKET_MECHANISM, TOKEN_MECHANISM, protocol_of
from caughtup.pipelines.extras import install_command

#: The bootstrap servers are a setting of ours: under ``[kafka]`` only librdkafka would get them.
_ELSEWHERE = ("bootstrap.servers", "metadata.broker.list")
#: Properties that are paths of files, and whether the path may be a directory.
_PATHS = {
    "ssl.ca.location": True,
    "ssl.certificate.location": False,
    "ssl.key.location": False,
    "ssl.keystore.location": False,
    "ssl.crl.location": False,
}
_GSSAPI = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": TICKET_MECHANISM}
_KEYTAB, _KINIT = "sasl.kerberos.keytab", "sasl.kerberos.kinit.cmd"
_RANGE = re.compile(r"is outside allowed range (-?\d+)\.\.(-?\d+)")


def property_problems(
    kafka: Mapping[str, Any], clients: Iterable[KafkaClient], unread: Collection[str] = ()
) -> Iterator[str]:
    """Yield a line for each property that one of the clients cannot use.

    ``unread`` names secrets whose files cannot be read. That is reported elsewhere, so here they
    count as set.
    """
    clients = tuple(clients)
    for name in _ELSEWHERE:
        if name in kafka:
            yield f"setting kafka.{name}: use bootstrap_servers, outside of [kafka]"
    if not clients:
        return
    given = {**kafka, **dict.fromkeys(unread, "unread")}
    found = list(problems(given, clients))
    if KafkaClient.LIBRDKAFKA in clients:
        found += [*_bad_paths(given), *_not_taken(kafka)]
    if not found and KafkaClient.SPARK not in clients:
        found += _missing_packages(given, clients)
    yield from (f"setting kafka.{problem}" for problem in found)
    if not found and not unread and KafkaClient.SPARK not in clients and _speaks_tls(kafka):
        try:
            ssl_context(
                kafka if KafkaClient.AIOKAFKA in clients else without_unopenable_keystore(kafka)
            )
        except UserError as error:
            yield error.message


def _speaks_tls(kafka: Mapping[str, Any]) -> bool:
    try:
        return protocol_of(kafka).endswith("SSL")
    except CaughtupError:  # reported by problems()
        return False


def _missing_packages(kafka: Mapping[str, Any], clients: Collection[KafkaClient]) -> Iterator[str]:
    """Yield a line for each package or setting that a login needs and that is missing here."""
    if not protocol_of(kafka).startswith("SASL"):
        return
    mechanism = kafka.get("sasl.mechanism", kafka.get("sasl.mechanisms"))
    if mechanism == TOKEN_MECHANISM and TOKEN_PROVIDER in kafka:
        try:
            load_provider(str(kafka[TOKEN_PROVIDER]))
        except TokenError as error:
            yield f"{TOKEN_PROVIDER}: {error}"
    if mechanism == TICKET_MECHANISM:
        if not has_gssapi():
            yield (
                "sasl.mechanism: librdkafka is built without GSSAPI here, as in the wheels of "
                "confluent-kafka; build that against a librdkafka with libsasl2, or use another "
                "mechanism"
            )
        elif not kafka.keys() & {_KEYTAB, _KINIT}:
            yield (
                f"{_KEYTAB}: it is not set; librdkafka gets a ticket with it and "
                f"sasl.kerberos.principal, or by a command in {_KINIT}"
            )
        if KafkaClient.AIOKAFKA in clients and find_spec("gssapi") is None:
            yield (
                "sasl.mechanism: what gets aiokafka, which the service uses as well, a ticket is not "
                f"installed; type: {install_command('kerberos')}"
            )


def has_gssapi() -> bool:
    """Return whether librdkafka is built with libsasl2."""
    try:
        AdminClient({"bootstrap.servers": "", "log_level": 0, **_GSSAPI})
    except KafkaException as error:
        return "No provider" not in error.args[0].str()  # otherwise it misses only the keytab
    return True


def _bad_paths(kafka: Mapping[str, Any]) -> Iterator[str]:
    if not _speaks_tls(kafka):
        return
    for name, may_be_directory in _PATHS.items():
        path = kafka.get(name)
        if path is None or path == "probe":
            continue
        try:
            if not (may_be_directory and Path(str(path)).is_dir()):
                with open(str(path), "rb") as file:
                    file.read(1)
        except (OSError, ValueError) as error:  # ValueError: a null character in the path
            yield f"{name}: {path}: {getattr(error, 'strerror', None) or 'it is no path'}"


def _not_taken(kafka: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each property outside security that librdkafka refuses, tried one by one."""
    for name, value in kafka.items():
        if is_security(name) or name in _ELSEWHERE:
            continue
        try:
            AdminClient({"bootstrap.servers": "", "log_level": 0, name: value})
        except KafkaException as error:
            yield f"{name}: {_reason(name, error.args[0])}"
        except (TypeError, ValueError):
            yield f"{name}: only a program can set it"


def _reason(name: str, error: KafkaError) -> str:
    if name not in OTHER_PROPERTIES:
        meant = get_close_matches(name, sorted(OTHER_PROPERTIES), 1, 0.8)
        return f"no client has such a property{f'; did you mean {meant[0]}?' if meant else ''}"
    if allowed := _RANGE.search(error.str()):
        return f"it has to be {allowed[1]} to {allowed[2]}"
    return "it does not take this value"

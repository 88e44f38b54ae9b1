"""Kafka client properties, given in any client's spelling, as options of Spark's Kafka source.

The settings file is shared with clients on librdkafka and aiokafka; Spark's source is Kafka's
own Java client, which spells user names, passwords and certificates otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from caughtup.models.errors import CaughtupError
from caughtup.models.security.kafka import Client, check_properties, verifies_names
from caughtup.models.security.kafka_names import spelling

_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
#: PEM, by value or in files, which are read here: executors on other machines haven't got them.
_PEM = {
    "ssl.ca": ("truststore", "certificates"),
    "ssl.certificate": ("keystore", "certificate.chain"),
    "ssl.key": ("keystore", "key"),
}
#: Private keys that OpenSSL reads and Java doesn't.
_NOT_PKCS8 = ("BEGIN RSA PRIVATE KEY", "BEGIN EC PRIVATE KEY")


def source_options(bootstrap_servers: str, properties: Mapping[str, str]) -> dict[str, str]:
    """Convert client properties to options of Spark's Kafka source, prefixed ``kafka.``.

    ``properties`` may be in Kafka's own spelling, librdkafka's or aiokafka's (underscores).
    Raises CaughtupError ``bad_kafka_property`` for what Kafka's Java client can't honour, for a
    certificate file that can't be read, and for a user name whose SASL mechanism takes none.
    """
    java = java_properties(properties)
    java["bootstrap.servers"] = bootstrap_servers
    return {f"kafka.{name}": java[name] for name in sorted(java)}


def java_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Convert client properties to the Java client's. Raises as source_options does."""
    check_properties(properties, (Client.SPARK,))
    given = {spelling(name): properties[name] for name in sorted(properties)}
    java = _credentials(given) | _certificates(given)
    if "security.protocol" in given:
        given["security.protocol"] = given["security.protocol"].upper()
    given.pop("enable.ssl.certificate.verification", None)  # Java has no such property
    if not verifies_names(given):
        given["ssl.endpoint.identification.algorithm"] = ""
    return given | java


def _certificates(given: dict[str, str]) -> dict[str, str]:
    """Replace files of PEM by their content."""
    java = {}
    for name, (store, part) in _PEM.items():
        file, text = given.pop(f"{name}.location", None), given.pop(f"{name}.pem", None)
        if text is None and file is not None:
            text = _read(f"{name}.location", file)
        if text is None:
            continue
        if any(kind in text for kind in _NOT_PKCS8):
            raise CaughtupError(
                "bad_kafka_property",
                f"{name}: Spark, which uses Kafka's Java client, reads keys in PKCS #8 only; "
                "`openssl pkcs8 -topk8` makes one",
            )
        java[f"ssl.{store}.type"] = "PEM"
        java[f"ssl.{store}.{part}"] = text
    return java


def _credentials(given: dict[str, str]) -> dict[str, str]:
    """Replace user name and password by the JAAS login that says the same."""
    username = given.pop("sasl.username", None)
    password = given.pop("sasl.password", None)
    if username is None or "sasl.jaas.config" in given:
        return {}
    mechanism = given.get("sasl.mechanism", "PLAIN").upper()
    if mechanism not in _LOGIN_MODULES:
        raise CaughtupError(
            "bad_kafka_property",
            f"sasl.mechanism {mechanism} takes no sasl.username; give its sasl.jaas.config",
        )
    login = f"{_LOGIN_MODULES[mechanism]} required username={_quoted(username)}"
    return {
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f"{login} password={_quoted(password or '')};",
    }


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _read(name: str, path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise CaughtupError("bad_kafka_property", f"{name}: {path}: {_reason(error)}") from error


def _reason(error: OSError | UnicodeDecodeError) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return "not a PEM file"

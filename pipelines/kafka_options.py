"""Kafka client properties, given in any client's spelling, as options of Spark's Kafka source.

The settings file is shared with clients on librdkafka and aiokafka; Spark's source is Kafka's
own Java client, which spells user names, passwords and certificates otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from caughtup.models.errors import CaughtupError

#: librdkafka's and aiokafka's spellings of what this module treats specially.
_ALIASES = {
    "sasl.mechanisms": "sasl.mechanism",
    "sasl.plain.username": "sasl.username",
    "sasl.plain.password": "sasl.password",
    "ssl.cafile": "ssl.ca.location",
    "ssl.certfile": "ssl.certificate.location",
    "ssl.keyfile": "ssl.key.location",
}
_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
#: PEM files, read here and passed by value: executors on other machines haven't got the files.
_PEM_FILES = {
    "ssl.ca.location": ("truststore", "certificates"),
    "ssl.certificate.location": ("keystore", "certificate.chain"),
    "ssl.key.location": ("keystore", "key"),
}


def source_options(bootstrap_servers: str, properties: Mapping[str, str]) -> dict[str, str]:
    """Turn client properties into options of Spark's Kafka source, each prefixed ``kafka.``.

    ``properties`` may be in Kafka's own spelling, librdkafka's or aiokafka's (underscores).
    Raises CaughtupError ``bad_kafka_property`` for a certificate file that can't be read, and
    for a user name whose SASL mechanism has no login module here.
    """
    java = java_properties(properties)
    java["bootstrap.servers"] = bootstrap_servers
    return {f"kafka.{name}": java[name] for name in sorted(java)}


def java_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Spell client properties as Kafka's Java client does. Raises as source_options does."""
    given = {_spelling(name): properties[name] for name in sorted(properties)}
    java = _credentials(given)
    for name, (store, part) in _PEM_FILES.items():
        if name in given:
            java[f"ssl.{store}.type"] = "PEM"
            java[f"ssl.{store}.{part}"] = _read(name, given.pop(name))
    if "security.protocol" in given:
        given["security.protocol"] = given["security.protocol"].upper()
    if given.get("ssl.endpoint.identification.algorithm") == "none":
        given["ssl.endpoint.identification.algorithm"] = ""
    return given | java


def _spelling(name: str) -> str:
    dotted = name.replace("_", ".")
    return _ALIASES.get(dotted, dotted)


def _credentials(given: dict[str, str]) -> dict[str, str]:
    """Take user name and password out, and give the login that says the same."""
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

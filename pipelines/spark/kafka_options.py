"""Convert Kafka client properties, in any client's spelling, to options of Spark's Kafka source.

The settings file is shared with librdkafka and aiokafka. Spark's source uses Kafka's Java client,
which has other properties for user names, passwords and certificates.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from caughtup.models.errors import CaughtupError
from caughtup.models.security.kafka import KafkaClient, check_properties, verifies_names
from caughtup.models.security.kafka_names import JAVA, spelling
from caughtup.models.security.logins import (
    TOKEN_MECHANISM,
    TOKEN_PROPERTIES,
    Bearer,
    ClientCredentials,
    Password,
    login_of,
)

_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
_OAUTH = "org.apache.kafka.common.security.oauthbearer"
_SAID_IN_JAAS = {"sasl.username", "sasl.password"} | (TOKEN_PROPERTIES - JAVA)
#: PEM properties. Files are read here, since executors on other machines do not have them.
_PEM = {
    "ssl.ca": ("truststore", "certificates"),
    "ssl.certificate": ("keystore", "certificate.chain"),
    "ssl.key": ("keystore", "key"),
}
#: Formats of private keys that OpenSSL reads and Java does not.
_NOT_PKCS8 = ("BEGIN RSA PRIVATE KEY", "BEGIN EC PRIVATE KEY")


def source_options(bootstrap_servers: str, properties: Mapping[str, str]) -> dict[str, str]:
    """Convert client properties to options of Spark's Kafka source, prefixed ``kafka.``.

    ``properties`` may be in Kafka's own spelling, librdkafka's or aiokafka's (underscores).
    Raises CaughtupError ``bad_kafka_property`` for a property that Kafka's Java client does not
    support, for an unreadable certificate file, and for a user name without a SASL mechanism for it.
    """
    java = java_properties(properties)
    java["bootstrap.servers"] = bootstrap_servers
    return {f"kafka.{name}": java[name] for name in sorted(java)}


def java_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Convert client properties to the Java client's. Raises like ``source_options``."""
    check_properties(properties, (KafkaClient.SPARK,))
    given = {spelling(name): properties[name] for name in sorted(properties)}
    java = _credentials(given) | _certificates(given)
    if "security.protocol" in given:
        given["security.protocol"] = given["security.protocol"].upper()
    given.pop("enable.ssl.certificate.verification", None)  # Java has no such property
    if not verifies_names(given):
        given["ssl.endpoint.identification.algorithm"] = ""
    return given | java


def _certificates(given: dict[str, str]) -> dict[str, str]:
    """Replace the properties of PEM files by their content, in the Java client's properties."""
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
    """Replace the properties of a login by the equivalent JAAS configuration."""
    mechanism = given.get("sasl.mechanism", "PLAIN").upper()
    if "sasl.username" in given and _says_how(given) and mechanism not in _LOGIN_MODULES:
        raise CaughtupError(
            "bad_kafka_property",
            f"sasl.mechanism {mechanism} does not use sasl.username; set its sasl.jaas.config",
        )
    login = login_of(given) if _says_how(given) else None
    for name in _SAID_IN_JAAS & given.keys():
        del given[name]
    match login:
        case Password():
            return _jaas(
                login.mechanism,
                _LOGIN_MODULES[login.mechanism],
                {"username": login.username, "password": login.password},
            )
        case Bearer(source=ClientCredentials() as endpoint):
            options = {"clientId": endpoint.client_id, "clientSecret": endpoint.client_secret}
            options |= {"scope": endpoint.scope} if endpoint.scope else {}
            options |= {f"extension_{name}": value for name, value in login.extensions.items()}
            return _jaas(TOKEN_MECHANISM, f"{_OAUTH}.OAuthBearerLoginModule", options) | {
                "sasl.login.callback.handler.class": f"{_OAUTH}.OAuthBearerLoginCallbackHandler",
            }
    return {}


def _says_how(given: Mapping[str, str]) -> bool:
    told = "sasl.username" in given or "sasl.oauthbearer.method" in given
    return told and "sasl.jaas.config" not in given


def _jaas(mechanism: str, module: str, options: Mapping[str, str]) -> dict[str, str]:
    said = " ".join(f"{name}={_quoted(value)}" for name, value in options.items())
    return {"sasl.mechanism": mechanism, "sasl.jaas.config": f"{module} required {said};"}


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

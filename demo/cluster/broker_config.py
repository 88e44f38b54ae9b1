"""The configuration of an embedded cluster's nodes, as Kafka's own property names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from caughtup.models.errors import CaughtupError

Listeners = Literal["plaintext", "sasl_plaintext", "sasl_ssl"]
ClientConfig = dict[str, str | int | float | bool]
"""librdkafka's properties, as confluent-kafka's clients take them."""


class Tls(NamedTuple):
    """PEM files: the server's certificate chain, its private key in PKCS #8, the authority's."""

    certificate_chain: Path
    private_key: Path
    authority: Path


@dataclass(frozen=True)
class Security:
    """How clients connect to the cluster, and what they may do there.

    ``users``: passwords by name, for SASL PLAIN. With ``authorizer``, operations without an ACL are
    refused, except for ``super_users``. The brokers have a plaintext listener of their own for each
    other, whose (anonymous) user is a super user.
    """

    listeners: Listeners = "plaintext"
    users: Mapping[str, str] = field(default_factory=dict)
    super_users: Sequence[str] = ("admin",)
    authorizer: bool = False
    tls: Tls | None = None

    def __post_init__(self) -> None:
        if self.listeners != "plaintext" and not self.users:
            raise CaughtupError("bad_security", f"{self.listeners} needs users")
        if (self.listeners == "sasl_ssl") != (self.tls is not None):
            raise CaughtupError("bad_security", "tls goes with sasl_ssl, and sasl_ssl with tls")
        if self.authorizer and self.listeners == "plaintext":
            raise CaughtupError(
                "bad_security",
                "an authorizer needs SASL: over plaintext every user is a super user",
            )

    def client_config(self, user: str | None) -> ClientConfig:
        """Return librdkafka's properties without bootstrap.servers, for a user of the cluster."""
        config: ClientConfig = {"security.protocol": self.listeners.upper()}
        if self.listeners != "plaintext":
            name = self.super_users[0] if user is None else user
            config |= {
                "sasl.mechanisms": "PLAIN",
                "sasl.username": name,
                "sasl.password": self.users[name],
            }
        if self.tls is not None:
            config["ssl.ca.location"] = str(self.tls.authority)
        return config


class Ports(NamedTuple):
    """A node's ports on 127.0.0.1; ``controller`` is unused on a node that is only a broker."""

    client: int
    internal: int
    controller: int


def server_properties(
    node: int,
    ports: Mapping[int, Ports],
    controllers: Sequence[int],
    security: Security,
    data: Path,
) -> dict[str, str]:
    """Return a node's ``server.properties``; ``ports`` holds those of all nodes of the cluster.

    Internal topics are small, so that a cluster is up in seconds. Raises CaughtupError
    ``bad_security`` for TLS files that Kafka cannot read.
    """
    replicas = str(min(len(ports), 3))
    mine = ports[node]
    listeners = {"CLIENT": mine.client, "INTERNAL": mine.internal}
    if node in controllers:
        listeners["CONTROLLER"] = mine.controller
    urls = {name: f"{name}://127.0.0.1:{port}" for name, port in listeners.items()}
    return {
        "node.id": str(node),
        "process.roles": "broker,controller" if node in controllers else "broker",
        "controller.quorum.voters": ",".join(
            f"{voter}@127.0.0.1:{ports[voter].controller}" for voter in controllers
        ),
        "controller.listener.names": "CONTROLLER",
        "listeners": ",".join(urls.values()),
        "advertised.listeners": ",".join((urls["CLIENT"], urls["INTERNAL"])),
        "inter.broker.listener.name": "INTERNAL",
        "listener.security.protocol.map": (
            f"CLIENT:{security.listeners.upper()},INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT"
        ),
        "log.dirs": str(data),
        # A dead node is noticed in 6 s, and a busy machine still fences no node.
        "broker.heartbeat.interval.ms": "1000",
        "broker.session.timeout.ms": "6000",
        # By default each node writes and reads a record twice a second that says nothing.
        "metadata.max.idle.interval.ms": "10000",
        "auto.create.topics.enable": "false",
        "default.replication.factor": replicas,
        "offsets.topic.num.partitions": "4",
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.num.partitions": "4",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.num.partitions": "4",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
        "group.streams.initial.rebalance.delay.ms": "0",
        "group.min.session.timeout.ms": "1000",
        "num.network.threads": "2",
        "num.io.threads": "4",
        "log.cleaner.dedupe.buffer.size": str(16 * 1024 * 1024),
        **_client_listener(security),
    }


def _client_listener(security: Security) -> dict[str, str]:
    properties: dict[str, str] = {}
    if security.listeners != "plaintext":
        accounts = " ".join(
            f"user_{name}={_quoted(password)}" for name, password in sorted(security.users.items())
        )
        properties |= {
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.client.plain.sasl.jaas.config": (
                f"org.apache.kafka.common.security.plain.PlainLoginModule required {accounts};"
            ),
        }
    if security.tls is not None:
        key = security.tls.private_key.read_text()
        if "BEGIN PRIVATE KEY" not in key:
            raise CaughtupError(
                "bad_security", f"{security.tls.private_key} is not a private key in PKCS #8"
            )
        properties |= {
            "listener.name.client.ssl.keystore.type": "PEM",
            "listener.name.client.ssl.keystore.key": key,
            "listener.name.client.ssl.keystore.certificate.chain": (
                security.tls.certificate_chain.read_text()
            ),
        }
    if security.authorizer:
        super_users = ["ANONYMOUS", *security.super_users]
        properties |= {
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "allow.everyone.if.no.acl.found": "false",
            "super.users": ";".join(f"User:{name}" for name in super_users),
        }
    return properties


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def properties_text(properties: Mapping[str, str]) -> str:
    """Write a Java properties file; see ``java.util.Properties.load`` for what needs escaping."""
    return "".join(f"{key}={_escaped(value)}\n" for key, value in sorted(properties.items()))


def _escaped(value: str) -> str:
    value = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    if value.startswith((" ", "\t", "\f")):
        value = "\\" + value
    utf16 = value.encode("utf-16-be")
    units = [int.from_bytes(utf16[at : at + 2]) for at in range(0, len(utf16), 2)]
    return "".join(chr(unit) if unit < 0x7F else f"\\u{unit:04x}" for unit in units)

"""A cluster with every login but Kerberos, an authorizer, and relays that see each connection."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import trustme
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from caughtup.demo.cluster.broker_config import Security, Tls
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.processes.children import free_ports
from tests.support.kafka.keystores import client_forms
from tests.support.kafka.listeners import listening
from tests.support.kafka.tokens import AUDIENCE, ISSUER, TokenEndpoint

PASSWORD = "of the user: hunter2"
#: A user who also has a PLAIN password, which the broker must know when it starts.
USER = "caughtup"
#: The first bytes of a TLS connection: a handshake record, TLS 1.0 to 1.3.
CLIENT_HELLO = b"\x16\x03"
#: Every login but Kerberos: SASL mechanisms, and forms of a client's certificate.
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
CERTIFICATES = ("PEM files", "inline PEM", "PKCS #12")
_OAUTH = "org.apache.kafka.common.security.oauthbearer"


class Login(NamedTuple):
    """A listener's address, and the properties to log in there."""

    bootstrap_servers: str
    kafka: Mapping[str, str]


class Guarded(EmbeddedCluster):
    """One broker: SASL_SSL with passwords and tokens, and SSL that requires a client certificate.

    Clients reach both through relays, which record the first bytes of each connection (``hellos``).
    ``tokens`` issues tokens, ``authority`` certificates. ACLs are for users' names, whichever login
    they use.
    """

    def __init__(
        self, tls: Tls, tokens: TokenEndpoint, broker_properties: Mapping[str, str] | None = None
    ) -> None:
        security = Security(
            "sasl_ssl", {"admin": PASSWORD, USER: PASSWORD}, authorizer=True, tls=tls
        )
        super().__init__(security=security)
        self.tls, self.tokens, self.authority = tls, tokens, trustme.CA()
        self.hellos: dict[str, list[bytes]] = {"sasl": [], "certificate": []}
        self._relays = ExitStack()
        (guarded,) = free_ports(1)
        (mine,) = self._ports.values()
        targets = {"sasl": mine.client, "certificate": guarded}
        self._relayed = {name: self._relay(name, port) for name, port in targets.items()}
        at = "://127.0.0.1:"
        self._overrides |= {
            "listeners": f"CLIENT{at}{mine.client},INTERNAL{at}{mine.internal},"
            f"CONTROLLER{at}{mine.controller},GUARDED{at}{guarded}",
            "advertised.listeners": f"CLIENT://{self._relayed['sasl']},INTERNAL{at}{mine.internal},"
            f"GUARDED://{self._relayed['certificate']}",
            "listener.security.protocol.map": "CLIENT:SASL_SSL,INTERNAL:PLAINTEXT,"
            "CONTROLLER:PLAINTEXT,GUARDED:SSL",
            **self._logins(),
            **(broker_properties or {}),
        }

    @property
    def bootstrap_servers(self) -> str:
        """The SASL listener's address, through its relay."""
        return self._relayed["sasl"]

    def login(self, mechanism: str, user: str, directory: Path) -> Login:
        """Return a user's login by a SASL mechanism or a form of certificate.

        Creates the password of a user who needs one.
        """
        common = {"ssl.ca.location": str(self.tls.authority)}
        if mechanism in CERTIFICATES:
            issued = self.authority.issue_cert("client.example", common_name=user)
            form = client_forms(issued, directory)[mechanism]
            return Login(
                self._relayed["certificate"], {"security.protocol": "SSL", **common, **form}
            )
        common["security.protocol"] = "SASL_SSL"
        if mechanism == "OAUTHBEARER":
            self.tokens.clients[user] = PASSWORD
            return Login(self.bootstrap_servers, common | self.tokens.properties(user))
        if mechanism.startswith("SCRAM"):
            self._set_password(user, mechanism)
        named = {"sasl.username": user, "sasl.password": PASSWORD, "sasl.mechanism": mechanism}
        return Login(self.bootstrap_servers, common | named)

    def admin(self) -> AdminClient:
        """Return a client with all rights; keep a reference to it while it is used."""
        return AdminClient({"bootstrap.servers": self.internal_bootstrap_servers, "log_level": 0})

    def unencrypted(self) -> list[bytes]:
        """Return the first bytes of unencrypted connections."""
        every = [hello for hellos in self.hellos.values() for hello in hellos]
        return [hello for hello in every if not hello.startswith(CLIENT_HELLO)]

    def start(self) -> None:
        """Start the broker. Kafka fetches keys only from URLs that a Java property allows."""
        allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={self.tokens.keys_url}"
        with patch.dict(os.environ, {"JAVA_TOOL_OPTIONS": allowed}):
            super().start()

    def close(self) -> None:
        """End the broker and the relays."""
        super().close()
        self._relays.close()

    def _logins(self) -> dict[str, str]:
        key = self.tls.private_key.read_text()
        scram = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        return {
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
            "listener.name.client.scram-sha-256.sasl.jaas.config": scram,
            "listener.name.client.scram-sha-512.sasl.jaas.config": scram,
            "listener.name.client.oauthbearer.sasl.jaas.config": (
                f"{_OAUTH}.OAuthBearerLoginModule required;"
            ),
            "listener.name.client.oauthbearer.sasl.server.callback.handler.class": (
                f"{_OAUTH}.OAuthBearerValidatorCallbackHandler"
            ),
            "sasl.oauthbearer.jwks.endpoint.url": self.tokens.keys_url,
            "sasl.oauthbearer.expected.audience": AUDIENCE,
            "sasl.oauthbearer.expected.issuer": ISSUER,
            "listener.name.guarded.ssl.keystore.type": "PEM",
            "listener.name.guarded.ssl.keystore.key": key,
            "listener.name.guarded.ssl.keystore.certificate.chain": (
                self.tls.certificate_chain.read_text()
            ),
            "listener.name.guarded.ssl.truststore.type": "PEM",
            "listener.name.guarded.ssl.truststore.certificates": (
                self.authority.cert_pem.bytes().decode()
            ),
            "listener.name.guarded.ssl.client.auth": "required",
            "listener.name.guarded.ssl.principal.mapping.rules": "RULE:.*CN=([a-z-]+).*/$1/",
        }

    def _set_password(self, user: str, mechanism: str) -> None:
        kind = ScramMechanism[mechanism.replace("-", "_")]
        wanted = UserScramCredentialUpsertion(
            user, ScramCredentialInfo(kind, 4096), PASSWORD.encode()
        )
        admin = self.admin()
        for altered in admin.alter_user_scram_credentials([wanted]).values():
            altered.result(30)

    def _relay(self, name: str, port: int) -> str:
        def relay(client: socket.socket) -> None:
            client.settimeout(None)
            hello = client.recv(65536)
            if not hello:
                return
            self.hellos[name].append(hello[:3])
            with socket.create_connection(("127.0.0.1", port)) as broker:
                broker.sendall(hello)
                threading.Thread(target=_copy, args=(broker, client), daemon=True).start()
                _copy(client, broker)

        return self._relays.enter_context(listening(relay))


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


class LoggedIn:
    """A cluster as a service needs it, with the properties of a login."""

    def __init__(self, cluster: Guarded, login: Login) -> None:
        self.processes = cluster.processes
        self.bootstrap_servers = login.bootstrap_servers
        self.security = self
        self._kafka = login.kafka

    def client_config(self, _: str | None) -> Mapping[str, str]:
        """Return librdkafka's properties of the login."""
        return self._kafka

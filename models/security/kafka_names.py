"""The names of Kafka clients' security properties, in librdkafka and in Kafka's Java client.

Tests compare both lists with the installed library and with Spark's jar.
"""

from __future__ import annotations

from collections.abc import Mapping

#: What operators write under ``[kafka]``: values by librdkafka's names.
KafkaProperties = Mapping[str, str | int | bool]


def names(text: str) -> frozenset[str]:
    """Return the whitespace-separated names in a text."""
    return frozenset(text.split())


#: librdkafka's properties, except those that only a program can set.
LIBRDKAFKA = names(
    """
    security.protocol
    ssl.ca.certificate.stores ssl.ca.location ssl.ca.pem
    ssl.certificate.location ssl.certificate.pem
    ssl.cipher.suites ssl.crl.location ssl.curves.list ssl.endpoint.identification.algorithm
    ssl.engine.id ssl.engine.location
    ssl.key.location ssl.key.password ssl.key.pem
    ssl.keystore.location ssl.keystore.password
    ssl.providers ssl.sigalgs.list
    enable.ssl.certificate.verification
    https.ca.location https.ca.pem
    sasl.mechanism sasl.mechanisms sasl.username sasl.password
    sasl.kerberos.keytab sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin
    sasl.kerberos.principal sasl.kerberos.service.name
    enable.sasl.oauthbearer.unsecure.jwt
    sasl.oauthbearer.assertion.algorithm
    sasl.oauthbearer.assertion.claim.aud sasl.oauthbearer.assertion.claim.exp.seconds
    sasl.oauthbearer.assertion.claim.iss sasl.oauthbearer.assertion.claim.jti.include
    sasl.oauthbearer.assertion.claim.nbf.seconds sasl.oauthbearer.assertion.claim.sub
    sasl.oauthbearer.assertion.file sasl.oauthbearer.assertion.jwt.template.file
    sasl.oauthbearer.assertion.private.key.file
    sasl.oauthbearer.assertion.private.key.passphrase sasl.oauthbearer.assertion.private.key.pem
    sasl.oauthbearer.client.credentials.client.id
    sasl.oauthbearer.client.credentials.client.secret
    sasl.oauthbearer.client.id sasl.oauthbearer.client.secret
    sasl.oauthbearer.config sasl.oauthbearer.extensions sasl.oauthbearer.grant.type
    sasl.oauthbearer.metadata.authentication.type sasl.oauthbearer.method sasl.oauthbearer.scope
    sasl.oauthbearer.sub.claim.name sasl.oauthbearer.token.endpoint.url
    """
)

#: caughtup's own property, for every client of the service: the function that returns tokens.
TOKEN_PROVIDER = "sasl.oauthbearer.token.provider"

#: The properties of Kafka's Java client 3.9, which is in Spark's connector.
JAVA = names(
    """
    security.protocol security.providers
    ssl.cipher.suites ssl.enabled.protocols ssl.endpoint.identification.algorithm
    ssl.engine.factory.class ssl.key.password ssl.keymanager.algorithm
    ssl.keystore.certificate.chain ssl.keystore.key ssl.keystore.location ssl.keystore.password
    ssl.keystore.type ssl.protocol ssl.provider ssl.secure.random.implementation
    ssl.trustmanager.algorithm ssl.truststore.certificates ssl.truststore.location
    ssl.truststore.password ssl.truststore.type
    sasl.mechanism sasl.jaas.config sasl.client.callback.handler.class
    sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin sasl.kerberos.service.name
    sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor
    sasl.login.callback.handler.class sasl.login.class
    sasl.login.connect.timeout.ms sasl.login.read.timeout.ms
    sasl.login.refresh.buffer.seconds sasl.login.refresh.min.period.seconds
    sasl.login.refresh.window.factor sasl.login.refresh.window.jitter
    sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms
    sasl.oauthbearer.clock.skew.seconds sasl.oauthbearer.expected.audience
    sasl.oauthbearer.expected.issuer sasl.oauthbearer.header.urlencode
    sasl.oauthbearer.jwks.endpoint.refresh.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms
    sasl.oauthbearer.jwks.endpoint.retry.backoff.ms sasl.oauthbearer.jwks.endpoint.url
    sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name
    sasl.oauthbearer.token.endpoint.url
    """
)

_FAMILIES = ("ssl.", "sasl.", "security.", "https.", "enable.ssl.", "enable.sasl.")


def is_security(name: str) -> bool:
    """Return whether a property is about security, whether or not any client has it.

    aiokafka's names have underscores, and so do librdkafka's that only a program can set.
    """
    return name.replace("_", ".").startswith(_FAMILIES)


#: aiokafka's spellings, once their underscores are dots, and the other name of the mechanism.
_ALIASES = {
    "sasl.mechanisms": "sasl.mechanism",
    "sasl.plain.username": "sasl.username",
    "sasl.plain.password": "sasl.password",
    "ssl.cafile": "ssl.ca.location",
    "ssl.certfile": "ssl.certificate.location",
    "ssl.keyfile": "ssl.key.location",
}


def spelling(name: str) -> str:
    """Return librdkafka's spelling of a property that may be in aiokafka's."""
    dotted = name.replace("_", ".")
    return _ALIASES.get(dotted, dotted)


#: Properties whose values are credentials.
SECRETS = names(
    """
    sasl.password ssl.key.password ssl.key.pem ssl.keystore.password
    sasl.oauthbearer.client.secret sasl.oauthbearer.client.credentials.client.secret
    sasl.oauthbearer.assertion.private.key.passphrase sasl.oauthbearer.assertion.private.key.pem
    sasl.oauthbearer.config sasl.jaas.config ssl.keystore.key ssl.truststore.password
    """
)


def is_secret(name: str) -> bool:
    """Return whether a property's value must be kept secret, in any client's spelling."""
    return spelling(name) in SECRETS

"""The first connection to a cluster: whether it answers, takes our credentials, and its id."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from threading import Thread
from typing import Generic, NamedTuple, TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ClusterMetadata

from caughtup.agents.errors import UserError
from caughtup.agents.kafka.config import rdkafka_config
from caughtup.agents.kafka.diagnosis import Trouble, diagnose, troubles_at
from caughtup.agents.kafka.protocol.listeners import STEP_SECONDS
from caughtup.agents.kafka.tokens.source import token_source
from caughtup.agents.kafka.tokens.token import TokenError
from caughtup.agents.process.exiting import UNAWAITED
from caughtup.agents.settings import Settings
from caughtup.models.security.logins import Bearer, complaints, has_own_way, login_of

log = logging.getLogger(__name__)

#: How long a cluster may take to answer if the diagnosis finds nothing wrong.
_PATIENCE_SECONDS = 10.0
#: After this time without an answer or an error, the diagnosis starts.
_SILENT_SECONDS = 1.0
_POLL_SECONDS = 0.05
#: How long a token endpoint that cannot be reached is tried.
_TOKEN_SECONDS = 2.5
_REFUSED = (KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED)
_NO_TOKEN = "Failed to acquire SASL OAUTHBEARER token"

_Result = TypeVar("_Result")


class ConnectedCluster(NamedTuple):
    """A cluster that answered: an admin client, and the cluster's id."""

    admin: AdminClient
    cluster: str


class _BackgroundCall(Generic[_Result]):
    """A call on its own daemon thread; the process may exit before it returns."""

    def __init__(self, call: Callable[[], _Result]) -> None:
        self._call = call
        self.result: _Result | None = None
        self.error: Exception | None = None
        self._thread = Thread(target=self._run, name=UNAWAITED, daemon=True)
        self._thread.start()

    @property
    def done(self) -> bool:
        """Whether the call has returned or raised."""
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            self.result = self._call()
        except (KafkaException, UserError) as error:
            self.error = error


def connect(settings: Settings, *, keep_trying: bool = False) -> ConnectedCluster:
    """Connect, and return a client for the cluster.

    Raises UserError when a property is bad, or when the cluster is away or refuses us. The
    diagnosis starts with the client's first error. ``keep_trying``: wait for a token without limit.
    """
    require_token(settings, keep_trying=keep_trying)
    reasons: list[KafkaError] = []
    try:
        admin = AdminClient(rdkafka_config(settings, error_cb=reasons.append))
    except (KafkaException, TypeError, ValueError) as error:
        raise bad_property(error) from None
    call = _BackgroundCall(lambda: admin.list_topics(timeout=_PATIENCE_SECONDS))
    found = _answer(settings, admin, call, reasons)
    return ConnectedCluster(admin, str(found.cluster_id))


def require_token(settings: Settings, *, keep_trying: bool = False) -> None:
    """Get a token if the login needs one. Raises UserError.

    A failure that may end by itself, such as an endpoint that restarts, is retried for 2.5 s; with
    ``keep_trying`` without limit.
    """
    kafka = settings.kafka
    if has_own_way(kafka) or complaints(login_of, kafka):  # only librdkafka can judge these
        return
    if not isinstance(login_of(kafka), Bearer):
        return
    began, reported = time.monotonic(), False
    while True:
        try:
            token_source(kafka).token()
        except TokenError as error:
            over = time.monotonic() - began > _TOKEN_SECONDS
            if not error.passing or (over and not keep_trying):
                raise UserError(str(error)) from None
            if over and not reported:
                log.warning("%s; trying until a broker answers", error)
                reported = True
            time.sleep(_POLL_SECONDS)
        else:
            return


def _answer(
    settings: Settings,
    admin: AdminClient,
    call: _BackgroundCall[ClusterMetadata],
    reasons: list[KafkaError],
) -> ClusterMetadata:
    began = time.monotonic()
    looking: _BackgroundCall[Trouble | None] | None = None
    trouble: Trouble | None = None
    while not call.done:
        admin.poll(_POLL_SECONDS)  # serves error_cb; the call itself only reports a time-out
        waited = time.monotonic() - began
        if looking is None:
            if reasons or waited > _SILENT_SECONDS:
                looking = _BackgroundCall(lambda: diagnose(settings))
        elif looking.done:
            if looking.error is not None:
                raise looking.error
            trouble = looking.result
            if trouble is None and (refusal := _refusal(settings, reasons)):
                raise refusal
            if trouble is not None:
                looking = None
        if trouble is not None and waited >= trouble.passes_within:
            raise UserError(trouble.line)
    if call.result is not None:
        return call.result
    failure = call.error.args[0] if isinstance(call.error, KafkaException) else None
    raise unreachable(settings, next(reversed(reasons), failure))


def unreachable(settings: Settings, error: KafkaError | None) -> UserError:
    """Return an error that explains why a cluster does not answer or refuses us, and what to do."""
    if error is not None and error.code() in _REFUSED and (refusal := _refusal(settings, [error])):
        return refusal
    trouble = diagnose(settings)
    if trouble is not None:
        return UserError(trouble.line)
    refusal = _refusal(settings, [] if error is None else [error])
    return (
        refusal
        or _unreachable_brokers(settings)
        or UserError(
            f"cannot reach Kafka at {settings.bootstrap_servers}: it accepts connections, but did "
            "not answer in time: look at the brokers' logs, and at advertised.listeners there"
        )
    )


def _unreachable_brokers(settings: Settings) -> UserError | None:
    admin = AdminClient(rdkafka_config(settings))
    try:
        troubles = broker_troubles(settings, admin.list_topics(timeout=STEP_SECONDS))
    except KafkaException:
        return None
    return UserError(*troubles) if troubles else None


def broker_troubles(settings: Settings, metadata: ClusterMetadata) -> list[str]:
    """Return a line for each broker that cannot be reached at its advertised listener."""
    brokers = sorted(metadata.brokers.values(), key=lambda broker: broker.id)
    troubles = troubles_at([(str(broker.host), broker.port) for broker in brokers], settings.kafka)
    return [
        f"broker {broker.id} has clients connect to {broker.host}:{broker.port} "
        f"(advertised.listeners): {trouble.line}"
        for broker, trouble in zip(brokers, troubles, strict=True)
        if trouble is not None
    ]


def _refusal(settings: Settings, reasons: list[KafkaError]) -> UserError | None:
    """Return what to do about a refusal by the right listener; None if no reason is a refusal."""
    servers = settings.bootstrap_servers
    for error in reasons:
        if error.code() in _REFUSED and _NO_TOKEN in error.str():
            return UserError(
                "no token for the login: check sasl.oauthbearer.* under [kafka], and whether what "
                "is at sasl.oauthbearer.token.endpoint.url answers"
            )
        if error.code() in _REFUSED:
            return UserError(f"{servers} refused the credentials: check sasl.* under [kafka]")
        if error.code() == KafkaError._SSL:
            return UserError(f"no TLS connection to {servers}: check ssl.* under [kafka]")
    return None


def bad_property(error: Exception) -> UserError:
    """Return an error that names the property that a client does not accept.

    Most bad properties are found before; what is left are files with the wrong content.
    """
    reason = error.args[0]
    text = reason.str() if isinstance(reason, KafkaError) else str(error)
    name = next((word for word in text.replace('"', " ").split() if word.count(".") >= 1), "")
    return UserError(f"setting kafka.{name}: it does not take this value")

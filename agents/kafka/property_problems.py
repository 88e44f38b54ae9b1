"""Check the properties under ``[kafka]`` before any client gets them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from caughtup.agents.errors import UserError
from caughtup.agents.kafka.tls import ssl_context, without_unopenable_keystore
from caughtup.agents.kafka.tokens.token import TokenError, load_provider
from caughtup.models.errors import CaughtupError
from caughtup.models.security.kafka import KafkaClient, problems
from caughtup.models.security.kafka_names import TOKEN_PROVIDER, KafkaProperties, is_security, names
from caughtup.models.security.logins import TICKET_MECHANISM, TOKEN_MECHANISM, protocol_of
from caughtup.pipelines.extras import install_command

#: librdkafka's properties that are not about security, to suggest the right spelling. A test compares
#: them with the installed library's own list.
OTHER_PROPERTIES = names(
    """
    acks allow.auto.create.topics api.version.fallback.ms api.version.request
    api.version.request.timeout.ms auto.commit.enable auto.commit.interval.ms auto.offset.reset
    batch.num.messages batch.size bootstrap.servers broker.address.family broker.address.ttl
    broker.version.fallback builtin.features check.crcs client.dns.lookup client.id client.rack
    compression.codec compression.level compression.type connections.max.idle.ms
    consume.callback.max.messages coordinator.query.interval.ms debug
    delivery.report.only.error delivery.timeout.ms enable.auto.commit enable.auto.offset.store
    enable.gapless.guarantee enable.idempotence enable.metrics.push enable.partition.eof
    enable.random.seed enabled_events fetch.error.backoff.ms fetch.max.bytes
    fetch.message.max.bytes fetch.min.bytes fetch.queue.backoff.ms fetch.wait.max.ms group.id
    group.instance.id group.protocol group.protocol.type group.remote.assignor
    heartbeat.interval.ms internal.termination.signal isolation.level linger.ms
    log.connection.close log.queue log.thread.name log_level max.in.flight
    max.in.flight.requests.per.connection max.partition.fetch.bytes max.poll.interval.ms
    max.poll.records message.copy.max.bytes message.max.bytes message.send.max.retries
    message.timeout.ms metadata.broker.list metadata.max.age.ms
    metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy offset.store.method
    offset.store.path offset.store.sync.interval.ms partition.assignment.strategy partitioner
    plugin.library.paths produce.offset.report queue.buffering.backpressure.threshold
    queue.buffering.max.kbytes queue.buffering.max.messages queue.buffering.max.ms
    queued.max.messages.kbytes queued.min.messages queuing.strategy receive.message.max.bytes
    reconnect.backoff.jitter.ms reconnect.backoff.max.ms reconnect.backoff.ms
    request.required.acks request.timeout.ms retries retry.backoff.max.ms retry.backoff.ms
    session.timeout.ms share.acknowledgement.mode socket.blocking.max.ms
    socket.connection.setup.timeout.ms socket.keepalive.enable socket.max.fails
    socket.nagle.disable socket.receive.buffer.bytes socket.send.buffer.bytes socket.timeout.ms
    statistics.interval.ms sticky.partitioning.linger.ms topic.blacklist
    topic.metadata.propagation.max.ms topic.metadata.refresh.fast.cnt
    topic.metadata.refresh.fast.interval.ms topic.metadata.refresh.interval.ms
    topic.metadata.refresh.sparse transaction.timeout.ms transactional.id
    """
)


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
    kafka: KafkaProperties, clients: Iterable[KafkaClient], unread: Collection[str] = ()
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


def _speaks_tls(kafka: KafkaProperties) -> bool:
    try:
        return protocol_of(kafka).endswith("SSL")
    except CaughtupError:  # reported by problems()
        return False


def _missing_packages(kafka: KafkaProperties, clients: Collection[KafkaClient]) -> Iterator[str]:
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


def _bad_paths(kafka: KafkaProperties) -> Iterator[str]:
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


def _not_taken(kafka: KafkaProperties) -> Iterator[str]:
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

"""The operations that the service's principal needs, and which of them the cluster refuses."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Literal, NamedTuple

from aiokafka.errors import UnsupportedVersionError
from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AclOperation, AdminClient

from caughtup.agents.errors import UserError
from caughtup.agents.kafka.clients import result_of
from caughtup.agents.kafka.config import aiokafka_config
from caughtup.agents.kafka.protocol.client import ClusterProtocol
from caughtup.agents.kafka.protocol.decoding import choose_version
from caughtup.agents.kafka.protocol.groups import group_operations, once_coordinated
from caughtup.agents.kafka.protocol.requests import LIST_OFFSETS_VERSIONS, Key, fetch_call
from caughtup.agents.settings import Settings
from caughtup.agents.topics.definitions import SERVICE_TOPICS, topic_name
from caughtup.agents.topics.fenced import transactional_id
from caughtup.models.sharing import MOST_INSTANCES
from caughtup.models.wire.record_keys import CONSUMER_OFFSETS

_TIMEOUT_SECONDS = 10.0
#: A busy cluster that was just started can take more than 10 s for the first answer.
_PATIENCE_SECONDS = 30.0
_RETRY_SECONDS = 0.1
#: How long after a first question about a group Kafka may take to create __consumer_offsets.
_CREATION_SECONDS = 3.0
_TOPIC_NOT_YET = (KafkaError.REQUEST_TIMED_OUT, KafkaError._TIMED_OUT)
#: Log ends are listed at the latest this many rounds of questions after the last listing.
_ROUNDS = 1.5


class Requirement(NamedTuple):
    """Operations that are needed on a topic, a group or a transactional id; each implies DESCRIBE."""

    kind: Literal["topic", "group", "transactional id"]
    name: str
    operations: tuple[AclOperation, ...]

    def __str__(self) -> str:
        operations = ", ".join(operation.name for operation in self.operations)
        return f"{operations} on the {self.kind} {self.name}"


READ_OFFSETS = Requirement("topic", CONSUMER_OFFSETS, (AclOperation.READ,))


def requirements(settings: Settings) -> Iterator[Requirement]:
    """Yield the operations that ``caughtup run`` needs once its topics exist."""
    if settings.source == "log":
        yield READ_OFFSETS
    if not settings.own_topics:
        return
    yield Requirement("group", settings.application_id, (AclOperation.READ,))
    for own in SERVICE_TOPICS:
        operations = (AclOperation.READ, *((AclOperation.WRITE,) if own.written else ()))
        yield Requirement("topic", topic_name(settings, own.name), operations)


def with_source(admin: AdminClient, settings: Settings) -> Settings:
    """Return the settings with ``log`` or ``ask`` for ``auto``: the log if it can and may be read.

    By asking, log ends are listed after each round of questions, and else seldom: a lag is as of one
    moment.
    Raises UserError if groups are to be shared without the log, and KafkaException or aiokafka's
    KafkaError when the cluster does not answer.
    """
    source = settings.source
    if source == "auto":
        is_readable = _is_there(admin, settings) and missing(admin, settings, READ_OFFSETS) is None
        source = "log" if is_readable and asyncio.run(_serves_log(settings)) else "ask"
    if source == "ask" and settings.workers == "shared":
        raise UserError(f"workers = shared needs {READ_OFFSETS}: without it, set workers to active")
    interval = settings.end_offsets_interval
    if source == "ask":
        interval = max(interval, _ROUNDS * settings.ask_interval)
    return replace(settings, source=source, end_offsets_interval=interval)


def _is_there(admin: AdminClient, settings: Settings) -> bool:
    """Return whether the cluster has ``__consumer_offsets``.

    Kafka creates it when it is first asked about a group; some other implementations have none.
    """
    deadline = None
    while True:
        described = admin.describe_topics(
            TopicCollection([CONSUMER_OFFSETS]), request_timeout=_TIMEOUT_SECONDS
        )[CONSUMER_OFFSETS]
        try:
            result_of(described)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                return True  # hidden or not, it exists
        else:
            return True
        if deadline is None:
            asyncio.run(_of_group(settings, settings.application_id))
            deadline = time.monotonic() + _CREATION_SECONDS
        if time.monotonic() > deadline:
            return False
        time.sleep(_RETRY_SECONDS)


async def _serves_log(settings: Settings) -> bool:
    """Return whether the brokers offer the requests by which we read the log."""
    async with ClusterProtocol(aiokafka_config(settings)) as protocol:
        offered = await protocol.connections.any_offered()
    fetch = fetch_call(CONSUMER_OFFSETS, {}, wait_ms=0, most_bytes=0, partition_bytes=0)
    try:
        choose_version(offered, fetch.key, (fetch.version,))
        choose_version(offered, Key.LIST_OFFSETS, LIST_OFFSETS_VERSIONS)
    except UnsupportedVersionError:
        return False
    return True


def fence_requirement(settings: Settings) -> Requirement:
    """Return what brokers need to see to refuse late records of an instance that was replaced."""
    # Of instances that share the groups, each has an id of its own: the last one is asked for.
    slot = MOST_INSTANCES - 1 if settings.workers == "shared" else 0
    name = transactional_id(settings, slot)
    return Requirement("transactional id", name, (AclOperation.WRITE,))


def missing(admin: AdminClient, settings: Settings, wanted: Requirement) -> Requirement | None:
    """Return the part of a requirement that the cluster refuses; None if it grants all of it.

    Raises KafkaException or aiokafka's KafkaError when the cluster does not answer.
    """
    if wanted.kind == "topic":
        granted = _of_topic(admin, wanted.name)
    elif wanted.kind == "group":
        granted = asyncio.run(_of_group(settings, wanted.name))
    else:
        granted = asyncio.run(_of_transactional_id(settings, wanted.name))
    if granted is None:
        return None
    refused = tuple(operation for operation in wanted.operations if operation not in granted)
    return wanted._replace(operations=refused) if refused else None


def _of_topic(admin: AdminClient, name: str) -> set[AclOperation] | None:
    """Return the operations that we are allowed on a topic.

    None if the broker does not report them, or if the topic does not exist (yet).
    """
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        described = admin.describe_topics(
            TopicCollection([name]),
            include_authorized_operations=True,
            request_timeout=_TIMEOUT_SECONDS,
        )[name]
        try:
            operations = result_of(described).authorized_operations
        except KafkaException as error:
            code = error.args[0].code()
            if code == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                return set()
            if code == KafkaError.UNKNOWN_TOPIC_OR_PART:
                return None
            if code not in _TOPIC_NOT_YET or time.monotonic() > deadline:
                raise
            time.sleep(_RETRY_SECONDS)
        else:
            return None if operations is None else set(operations)


async def _of_group(settings: Settings, name: str) -> set[AclOperation] | None:
    """Return the operations that we are allowed on a group, which need not exist.

    None if the broker does not report them.
    """
    async with ClusterProtocol(aiokafka_config(settings)) as protocol:
        numbers = await once_coordinated(lambda: group_operations(protocol.connections, name))
    if numbers is None:
        return None
    return {operation for operation in AclOperation if operation.value in numbers}


async def _of_transactional_id(settings: Settings, name: str) -> set[AclOperation]:
    async with ClusterProtocol(aiokafka_config(settings)) as protocol:
        return {AclOperation.WRITE} if await protocol.may_write_transactions(name) else set()

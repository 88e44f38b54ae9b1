"""What the service's principal must be allowed, and what of that the cluster refuses it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Literal, NamedTuple

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AclOperation, AdminClient

from caughtup.agents.kafka.admin_results import result_of
from caughtup.agents.kafka.config import aiokafka_config
from caughtup.agents.kafka.protocol.client import ClusterProtocol
from caughtup.agents.kafka.protocol.groups import group_operations, once_coordinated
from caughtup.agents.settings import Settings
from caughtup.agents.topics.definitions import SERVICE_TOPICS, topic_name
from caughtup.models.wire.record_keys import CONSUMER_OFFSETS

_TIMEOUT_SECONDS = 10.0
#: A cluster that was just started, and is busy, takes longer than that for the first answer.
_PATIENCE_SECONDS = 30.0
_RETRY_SECONDS = 0.1
_TOPIC_NOT_YET = (KafkaError.REQUEST_TIMED_OUT, KafkaError._TIMED_OUT)


class Requirement(NamedTuple):
    """Operations that are needed on a topic or a group; each implies DESCRIBE."""

    kind: Literal["topic", "group"]
    name: str
    operations: tuple[AclOperation, ...]

    def __str__(self) -> str:
        operations = ", ".join(operation.name for operation in self.operations)
        return f"{operations} on the {self.kind} {self.name}"


READ_OFFSETS = Requirement("topic", CONSUMER_OFFSETS, (AclOperation.READ,))


def requirements(settings: Settings) -> Iterator[Requirement]:
    """Yield what ``caughtup run`` cannot do without, once its topics are there."""
    yield READ_OFFSETS
    yield Requirement("group", settings.application_id, (AclOperation.READ,))
    for own in SERVICE_TOPICS:
        operations = (AclOperation.READ, *((AclOperation.WRITE,) if own.written else ()))
        yield Requirement("topic", topic_name(settings, own.name), operations)


def missing(admin: AdminClient, settings: Settings, wanted: Requirement) -> Requirement | None:
    """Return the part of a requirement that the cluster refuses, None if it grants all of it.

    Raises KafkaException or aiokafka's KafkaError when the cluster can't tell.
    """
    if wanted.kind == "topic":
        granted = _of_topic(admin, wanted.name)
    else:
        granted = asyncio.run(_of_group(settings, wanted.name))
    if granted is None:
        return None
    refused = tuple(operation for operation in wanted.operations if operation not in granted)
    return wanted._replace(operations=refused) if refused else None


def _of_topic(admin: AdminClient, name: str) -> set[AclOperation] | None:
    """Ask what we may do with a topic; None where the broker doesn't say, or there is no such.

    A topic isn't there until it is first used.
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
    """Ask what we may do with a group, which needn't be there; None where the broker doesn't say."""
    async with ClusterProtocol(aiokafka_config(settings)) as protocol:
        numbers = await once_coordinated(lambda: group_operations(protocol.connections, name))
    if numbers is None:
        return None
    return {operation for operation in AclOperation if operation.value in numbers}

"""What the service's principal must be allowed, and what of that the cluster refuses it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any, Literal, NamedTuple

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AclOperation, AdminClient

from caughtup.agents.settings import Settings
from caughtup.agents.topics import CONSUMER_OFFSETS, OWN_TOPICS, topic_name

_TIMEOUT_SECONDS = 10.0
#: A cluster that was just started, and is busy, takes longer than that for the first answer.
_PATIENCE_SECONDS = 30.0
_RETRY_SECONDS = 0.1
_REFUSED = (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.GROUP_AUTHORIZATION_FAILED)
#: Neither is there until it is first used, and a cluster without an authorizer says the same.
_ABSENT = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.GROUP_ID_NOT_FOUND)
#: The first question about a group makes the brokers create __consumer_offsets.
_NOT_YET = (
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError._TIMED_OUT,
)


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
    """Give what ``caughtup run`` cannot do without, once its topics are there."""
    yield READ_OFFSETS
    yield Requirement("group", settings.application_id, (AclOperation.READ,))
    for own in OWN_TOPICS:
        operations = (AclOperation.READ, *((AclOperation.WRITE,) if own.written else ()))
        yield Requirement("topic", topic_name(settings, own.name), operations)


def missing(admin: AdminClient, wanted: Requirement) -> Requirement | None:
    """Give the part of a requirement that the cluster refuses, None if it grants all of it.

    Raises KafkaException when the cluster can't tell.
    """
    granted = _granted(admin, wanted)
    if granted is None:
        return None
    refused = tuple(operation for operation in wanted.operations if operation not in granted)
    return wanted._replace(operations=refused) if refused else None


def _granted(admin: AdminClient, wanted: Requirement) -> set[AclOperation] | None:
    """Ask what we may do; None where the broker doesn't say, as for what doesn't exist."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            operations = _describe(admin, wanted).result().authorized_operations
        except KafkaException as error:
            code = error.args[0].code()
            if code in _REFUSED:
                return set()
            if code in _ABSENT:
                return None
            if code not in _NOT_YET or time.monotonic() > deadline:
                raise
            time.sleep(_RETRY_SECONDS)
        else:
            return None if operations is None else set(operations)


def _describe(admin: AdminClient, wanted: Requirement) -> Future[Any]:
    if wanted.kind == "topic":
        topics = TopicCollection([wanted.name])
        return admin.describe_topics(
            topics, include_authorized_operations=True, request_timeout=_TIMEOUT_SECONDS
        )[wanted.name]
    return admin.describe_consumer_groups(
        [wanted.name], include_authorized_operations=True, request_timeout=_TIMEOUT_SECONDS
    )[wanted.name]

"""The service's own topics as it creates them. docs/topics.md has who writes and reads what."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from typing import NamedTuple

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from caughtup.agents.errors import UserError
from caughtup.agents.kafka.clients import result_of
from caughtup.agents.kafka.config import rdkafka_config
from caughtup.agents.settings import Settings
from caughtup.models.records.topics import (
    APPLICATION_STATES,
    CATCH_UP_RATES,
    END_OFFSETS,
    LAG,
    LEARNED_CONFIGS,
    MOVEMENTS,
    PIPELINE_PROGRESS,
    REASSIGNMENTS,
    RECOMMENDATIONS,
    TASK_POSITIONS,
    TRANSACTIONS,
    with_prefix,
)

_METADATA_SECONDS = 10.0
_POLL_SECONDS = 0.05
#: The errors of a topic that breaks the brokers' rules for names, replicas and configs.
_RULES = (
    KafkaError.POLICY_VIOLATION,
    KafkaError.INVALID_REPLICATION_FACTOR,
    KafkaError.INVALID_CONFIG,
    KafkaError.TOPIC_EXCEPTION,
)


class ServiceTopic(NamedTuple):
    """A topic that the service creates. One partition each keeps a probe's round in order."""

    name: str
    cleanup: str
    config: Mapping[str, str] = {}
    #: Whether the service writes it; others are written by applications and jobs only.
    written: bool = True
    #: The compression.type. If uncompressed, max.message.bytes also bounds what readers get.
    compression: str = "uncompressed"


#: How long compaction leaves records alone, so that a restarted service finds the recent past.
_HISTORY_MS = str(15 * 60_000)
#: A large group's scenario has a lag for each task on each client.
MAX_RECORD_BYTES = 64 << 20
#: Timestamps by the broker, since clocks of applications may be wrong.
_BROKERS_CLOCK = {"message.timestamp.type": "LogAppendTime"}
SERVICE_TOPICS = (
    ServiceTopic(
        END_OFFSETS,
        "compact",
        {"min.compaction.lag.ms": _HISTORY_MS, "segment.ms": _HISTORY_MS},
    ),
    ServiceTopic(REASSIGNMENTS, "compact", {"segment.ms": _HISTORY_MS}),
    ServiceTopic(RECOMMENDATIONS, "compact", {"max.message.bytes": str(MAX_RECORD_BYTES)}),
    ServiceTopic(LEARNED_CONFIGS, "compact"),
    ServiceTopic(MOVEMENTS, "delete"),
    # Compressed, since it is large; its readers need not hold much of it at once.
    ServiceTopic(LAG, "compact", compression="lz4"),
    ServiceTopic(TRANSACTIONS, "compact"),
    ServiceTopic(TASK_POSITIONS, "compact", _BROKERS_CLOCK, written=False),
    ServiceTopic(CATCH_UP_RATES, "compact", _BROKERS_CLOCK, written=False),
    ServiceTopic(
        APPLICATION_STATES,
        "compact",
        {**_BROKERS_CLOCK, "max.message.bytes": str(MAX_RECORD_BYTES)},
        written=False,
    ),
    ServiceTopic(PIPELINE_PROGRESS, "compact", _BROKERS_CLOCK, written=False),
)


def topic_name(settings: Settings, name: str) -> str:
    """Return the full name of one of the service's own topics."""
    return with_prefix(name, settings.topic_prefix)


def create_topics(settings: Settings, names: Collection[str], timeout: float = 15.0) -> list[str]:
    """Create those of the service's topics with these full names; return those that were missing.

    Raises UserError when a topic cannot be created. Without CREATE, brokers refuse it for existing
    topics too: pass only missing ones.
    """
    admin = AdminClient(rdkafka_config(settings))
    wanted = _new_topics(settings, names)
    if not wanted:
        return []
    created = []
    for name, future in admin.create_topics(wanted, request_timeout=timeout).items():
        try:
            result_of(future, 2 * timeout)
            created.append(name)
        except KafkaException as error:
            if error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
                continue
            raise UserError(
                f"cannot create the topic {name} ({error.args[0].str()}): "
                f"{_what_helps(settings, name, error.args[0].code())}; `caughtup check` names all "
                "that is missing"
            ) from None
    if created:
        _wait_for_leaders(admin, created, time.monotonic() + timeout)
    return created


def creation_problem(admin: AdminClient, settings: Settings, name: str) -> str | None:
    """Return why a topic of the service (full name) cannot be created; None if it can.

    Nothing is created.
    """
    requests = admin.create_topics(_new_topics(settings, [name]), validate_only=True)
    for future in requests.values():
        try:
            result_of(future)
        except KafkaException as error:
            found: KafkaError = error.args[0]
            if found.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                return f"missing: CREATE on the topic {name}"
            if found.code() != KafkaError.TOPIC_ALREADY_EXISTS:
                helps = _what_helps(settings, name, found.code())
                return f"cannot be created ({found.str()}): {helps}"
    return None


def _what_helps(settings: Settings, name: str, code: int) -> str:
    """Return what to do about a topic that brokers refuse with an error code."""
    if code in _RULES:
        (own,) = (one for one in SERVICE_TOPICS if topic_name(settings, one.name) == name)
        configs = ", ".join(f"{key}={value}" for key, value in sorted(_configs(own).items()))
        return (
            "the brokers have rules for topics: set topic_prefix (it is "
            f"{settings.topic_prefix!r}) and topic_replication_factor (it is "
            f"{settings.topic_replication_factor}) as they ask for, or create it yourself, with 1 "
            f"partition and as much as they allow of {configs}"
        )
    return "allow CREATE on it, or create it yourself"


def _configs(topic: ServiceTopic) -> dict[str, str]:
    return {
        "cleanup.policy": topic.cleanup,
        "compression.type": topic.compression,
        **topic.config,
    }


def _new_topics(settings: Settings, names: Collection[str]) -> list[NewTopic]:
    return [
        NewTopic(
            topic_name(settings, topic.name),
            num_partitions=1,
            replication_factor=settings.topic_replication_factor,
            config=_configs(topic),
        )
        for topic in SERVICE_TOPICS
        if topic_name(settings, topic.name) in names
    ]


def _wait_for_leaders(admin: AdminClient, names: list[str], deadline: float) -> None:
    """Wait until brokers know the new topics: a client that asks too early waits longer."""
    while time.monotonic() < deadline:
        known = admin.list_topics(timeout=_METADATA_SECONDS).topics
        partitions = [p for name in names if name in known for p in known[name].partitions.values()]
        if len(partitions) == len(names) and all(p.leader >= 0 for p in partitions):
            return
        time.sleep(_POLL_SECONDS)

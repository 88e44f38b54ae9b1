"""Whether the service's own topics are there, and as they have to be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from caughtup.agents.kafka.admin_results import result_of
from caughtup.agents.settings import Settings
from caughtup.agents.topics.definitions import SERVICE_TOPICS, ServiceTopic, topic_name

_TIMEOUT_SECONDS = 10.0
#: What a broker allows unless it is configured.
_DEFAULT_LARGEST = "1048588"
#: After a restart movements are restored: what is older than a day is over by then.
_LEAST_RETENTION_MS = "86400000"


class DescribedTopic(NamedTuple):
    """A topic as brokers describe it: its id, another one where it is made anew, and its width."""

    topic_id: str
    partitions: int


class DescribedTopics(NamedTuple):
    """Own topics by full name: those that exist, those that don't, and why some can't be described."""

    existing: Mapping[str, DescribedTopic]
    missing: tuple[str, ...]
    hidden: Mapping[str, str]


def describe_topics(admin: AdminClient, settings: Settings) -> DescribedTopics:
    """Describe all own topics at once. Blocks. Raises KafkaException when nobody answers."""
    names = [topic_name(settings, own.name) for own in SERVICE_TOPICS]
    asked = admin.describe_topics(TopicCollection(names), request_timeout=_TIMEOUT_SECONDS)
    existing, missing, hidden = {}, [], {}
    for name, future in asked.items():
        try:
            described = result_of(future)
        except KafkaException as error:
            reason = error.args[0]
            if reason.code() < 0:  # librdkafka's own: no broker said so
                raise
            if reason.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                missing.append(name)
            else:
                hidden[name] = reason.str()
        else:
            existing[name] = DescribedTopic(str(described.topic_id), len(described.partitions))
    return DescribedTopics(existing, tuple(missing), hidden)


def check_topics(
    admin: AdminClient, settings: Settings, described: DescribedTopics
) -> dict[str, dict[str, str] | None]:
    """Return the problems of every topic that exists, None where we may not see its configs.

    Blocks. Raises KafkaException when nobody answers.
    """
    own = {topic_name(settings, one.name): one for one in SERVICE_TOPICS}
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in sorted(described.existing)]
    if not resources:
        return {}
    found: dict[str, dict[str, str] | None] = {}
    for resource, future in admin.describe_configs(
        resources, request_timeout=_TIMEOUT_SECONDS
    ).items():
        name = resource.name
        try:
            configs = {key: str(entry.value) for key, entry in result_of(future).items()}
        except KafkaException as error:
            if error.args[0].code() < 0:
                raise
            found[name] = None
        else:
            found[name] = problems_of(own[name], described.existing[name].partitions, configs)
    return found


def problems_of(own: ServiceTopic, partitions: int, configs: Mapping[str, str]) -> dict[str, str]:
    """Describe what is wrong with a topic: a sentence by the config's name, or by ``partitions``."""
    found = {}
    if partitions != 1:
        found["partitions"] = f"{partitions} partitions, not 1: records overtake each other"
    for name, expected, follows in _exactly(own):
        if (value := configs.get(name, expected)) != expected:
            found[name] = f"{name} is {value}, not {expected}: {follows}"
    for name, least, follows in _at_least(own):
        number = _number(configs.get(name, least))
        if number is not None and number < int(least):
            found[name] = f"{name} is {number}, less than {least}: {follows}"
    return found


def _exactly(own: ServiceTopic) -> Iterator[tuple[str, str, str]]:
    """Yield configs by name, what they have to be, and what follows where they aren't."""
    lost = (
        "what isn't written again is deleted after a while"
        if own.cleanup == "compact"
        else "of each key only the last event stays"
    )
    yield "cleanup.policy", own.cleanup, lost
    if own.compression == "uncompressed":
        large = "a small batch may become a large one for who reads it"
        yield "compression.type", own.compression, large
    clock = "message.timestamp.type"
    if clock in own.config:
        yield clock, own.config[clock], "whoever writes may have a wrong clock"


def _at_least(own: ServiceTopic) -> Iterator[tuple[str, str, str]]:
    """Yield configs by name, their least value, and what follows where it is less."""
    largest, young = "max.message.bytes", "min.compaction.lag.ms"
    yield largest, own.config.get(largest, _DEFAULT_LARGEST), "larger records are refused"
    if young in own.config:
        yield young, own.config[young], "a restart finds gaps"
    if own.cleanup == "delete":
        yield "retention.ms", _LEAST_RETENTION_MS, "after a restart events are published again"


def _number(value: str) -> int | None:
    """Read a config's number; None for none, and for -1, which stands for no limit."""
    try:
        number = int(value)
    except ValueError:
        return None
    return None if number < 0 else number

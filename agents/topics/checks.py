"""Check whether the service's own topics exist, and whether their configs are right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from caughtup.agents.kafka.clients import result_of
from caughtup.agents.settings import Settings
from caughtup.agents.topics.definitions import SERVICE_TOPICS, ServiceTopic, topic_name

_TIMEOUT_SECONDS = 10.0
#: Kafka's default of max.message.bytes.
_DEFAULT_LARGEST = "1048588"
#: The events of a day are enough to restore movements after a restart: older ones have ended.
_LEAST_RETENTION_MS = "86400000"


class DescribedTopic(NamedTuple):
    """A topic as brokers describe it. A topic that is recreated has another id."""

    topic_id: str
    partitions: int


class DescribedTopics(NamedTuple):
    """Own topics by full name: existing ones, missing ones, and why others cannot be described."""

    existing: Mapping[str, DescribedTopic]
    missing: tuple[str, ...]
    hidden: Mapping[str, str]


def describe_topics(admin: AdminClient, settings: Settings) -> DescribedTopics:
    """Describe all own topics. Blocks. Raises KafkaException when no broker answers."""
    names = [topic_name(settings, own.name) for own in SERVICE_TOPICS]
    requests = admin.describe_topics(TopicCollection(names), request_timeout=_TIMEOUT_SECONDS)
    existing, missing, hidden = {}, [], {}
    for name, future in requests.items():
        try:
            described = result_of(future)
        except KafkaException as error:
            reason = error.args[0]
            if reason.code() < 0:  # an error of librdkafka, not of a broker
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
    """Return the problems of each existing topic; None if we may not read its configs.

    Blocks. Raises KafkaException when no broker answers.
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
    """Return a sentence for each problem of a topic, by the config's name or ``partitions``."""
    found = {}
    if partitions != 1:
        found["partitions"] = (
            f"{partitions} partitions, not 1: records may be read in another order than they were written"
        )
    for name, expected, follows in _required_configs(own):
        if (value := configs.get(name, expected)) != expected:
            found[name] = f"{name} is {value}, not {expected}: {follows}"
    for name, least, follows in _least_configs(own):
        number = _number(configs.get(name, least))
        if number is not None and number < int(least):
            found[name] = f"{name} is {number}, less than {least}: {follows}"
    return found


def _required_configs(own: ServiceTopic) -> Iterator[tuple[str, str, str]]:
    """Yield config names, their required values, and the consequence of another value."""
    lost = (
        "records that are not written again are deleted after a while"
        if own.cleanup == "compact"
        else "only the last event of each key is kept"
    )
    yield "cleanup.policy", own.cleanup, lost
    if own.compression == "uncompressed":
        large = "a small compressed batch may become very large in its readers"
        yield "compression.type", own.compression, large
    clock = "message.timestamp.type"
    if clock in own.config:
        yield clock, own.config[clock], "the writer's clock may be wrong"


def _least_configs(own: ServiceTopic) -> Iterator[tuple[str, str, str]]:
    """Yield config names, their least values, and the consequence of a smaller value."""
    largest, young = "max.message.bytes", "min.compaction.lag.ms"
    yield largest, own.config.get(largest, _DEFAULT_LARGEST), "larger records are refused"
    if young in own.config:
        yield young, own.config[young], "a restart finds records missing"
    if own.cleanup == "delete":
        yield "retention.ms", _LEAST_RETENTION_MS, "after a restart events are published again"


def _number(value: str) -> int | None:
    """Return a config's number; None if it is no number, or -1, which means no limit."""
    try:
        number = int(value)
    except ValueError:
        return None
    return None if number < 0 else number

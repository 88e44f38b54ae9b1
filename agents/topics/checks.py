"""Whether the service's own topics are there, and as they have to be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from caughtup.agents.settings import Settings
from caughtup.agents.topics.definitions import OWN_TOPICS, OwnTopic, topic_name

_TIMEOUT_SECONDS = 10.0
#: What a broker allows unless it is told otherwise.
_DEFAULT_LARGEST = "1048588"
#: After a restart what was told is read back: what is older than a day is over by then.
_LEAST_RETENTION_MS = "86400000"


class SeenTopic(NamedTuple):
    """A topic as brokers describe it: its id, which a topic that is made anew has not, and its width."""

    topic_id: str
    partitions: int


class Look(NamedTuple):
    """Own topics by full name: those that are there, those that are gone, and why not to be seen."""

    there: Mapping[str, SeenTopic]
    gone: tuple[str, ...]
    hidden: Mapping[str, str]


def look_at_topics(admin: AdminClient, settings: Settings) -> Look:
    """Ask for all own topics at once. Blocks. Raises KafkaException when nobody answers."""
    names = [topic_name(settings, own.name) for own in OWN_TOPICS]
    asked = admin.describe_topics(TopicCollection(names), request_timeout=_TIMEOUT_SECONDS)
    there, gone, hidden = {}, [], {}
    for name, future in asked.items():
        try:
            described = future.result()
        except KafkaException as error:
            reason = error.args[0]
            if reason.code() < 0:  # librdkafka's own: no broker said so
                raise
            if reason.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                gone.append(name)
            else:
                hidden[name] = reason.str()
        else:
            there[name] = SeenTopic(str(described.topic_id), len(described.partitions))
    return Look(there, tuple(gone), hidden)


def check_topics(
    admin: AdminClient, settings: Settings, look: Look
) -> dict[str, dict[str, str] | None]:
    """Check every topic that is there: its problems, None where configs are not for us to see.

    Blocks. Raises KafkaException when nobody answers.
    """
    own = {topic_name(settings, one.name): one for one in OWN_TOPICS}
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in sorted(look.there)]
    if not resources:
        return {}
    found: dict[str, dict[str, str] | None] = {}
    for resource, future in admin.describe_configs(
        resources, request_timeout=_TIMEOUT_SECONDS
    ).items():
        name = resource.name
        try:
            configs = {key: str(entry.value) for key, entry in future.result().items()}
        except KafkaException as error:
            if error.args[0].code() < 0:
                raise
            found[name] = None
        else:
            found[name] = problems_of(own[name], look.there[name].partitions, configs)
    return found


def problems_of(own: OwnTopic, partitions: int, configs: Mapping[str, str]) -> dict[str, str]:
    """Say what is wrong with a topic: a sentence by the config's name, or by ``partitions``."""
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


def _exactly(own: OwnTopic) -> Iterator[tuple[str, str, str]]:
    """Give configs by name, what they have to be, and what follows where they aren't."""
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


def _at_least(own: OwnTopic) -> Iterator[tuple[str, str, str]]:
    """Give configs by name, how much they have to be, and what follows where they are less."""
    largest, young = "max.message.bytes", "min.compaction.lag.ms"
    yield largest, own.config.get(largest, _DEFAULT_LARGEST), "larger records are refused"
    if young in own.config:
        yield young, own.config[young], "a restart finds gaps"
    if own.cleanup == "delete":
        yield "retention.ms", _LEAST_RETENTION_MS, "after a restart events are told again"


def _number(value: str) -> int | None:
    """Read a config's number; None for none, and for -1, which stands for no limit."""
    try:
        number = int(value)
    except ValueError:
        return None
    return None if number < 0 else number

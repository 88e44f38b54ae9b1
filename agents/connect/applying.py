"""A record of a Connect worker cluster's topics, applied to the state: what fails costs itself."""

from __future__ import annotations

from collections.abc import Iterable

from caughtup.agents.clock import now_ms
from caughtup.agents.settings import Settings
from caughtup.agents.topics.applied import isolated_record
from caughtup.agents.topics.standalone_consumer import ConsumerRecord
from caughtup.models.connect_clusters.configuration import Configuration
from caughtup.models.connect_clusters.matching import ClusterTopics
from caughtup.models.connect_clusters.topic_sets import TopicSet
from caughtup.models.records.connect.config import decode_config
from caughtup.models.records.connect.source_offsets import decode_source_offset
from caughtup.models.records.connect.status import decode_status
from caughtup.models.state.cluster import ClusterState

#: What the topics are called where records of them are refused, or fail.
_NAMES = TopicSet("connect config topic", "connect status topic", "connect offset topic")


def told_topics(settings: Settings) -> dict[str, TopicSet]:
    """Return the topics of worker clusters that the settings name, by group."""
    told = {}
    for line in settings.connect_topics:
        group, config, status, offset = line.rsplit(":", 3)
        told[group] = TopicSet(config, status, offset)
    return told


def apply_records(state: ClusterState, topic: str, records: Iterable[ConsumerRecord]) -> None:
    """Apply records of a topic to every set that has it."""
    for topics, known in state.connect.topics.items():
        if topic in topics.topics:
            for record in records:
                _apply(state, topics, known, topic, record)


def _apply(
    state: ClusterState,
    topics: TopicSet,
    known: ClusterTopics,
    topic: str,
    record: ConsumerRecord,
) -> None:
    name = _NAMES[topics.index(topic)]
    with isolated_record(state, name, record.key):
        # Workers stamp their records themselves: what is yet to come counts as now.
        at_ms = max(0, min(record.at_ms, now_ms()))
        if topic == topics.config:
            if record.offset < known.configuration.next_offset:
                known.configuration = Configuration()  # the topic was made anew
            known.configuration.note(record.offset)
            event = decode_config(record.key, record.value)
            known.configuration.apply(event, record.offset, at_ms)
        elif topic == topics.status:
            known.statuses.apply(decode_status(record.key, record.value), at_ms)
        else:
            known.offsets.apply(decode_source_offset(record.key, record.value), at_ms)

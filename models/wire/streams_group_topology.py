"""A streams group's topology (KIP-1071, type 23): source topics and changelogs."""

from __future__ import annotations

from dataclasses import dataclass

from caughtup.models.wire.bounds import bounded, epoch
from caughtup.models.wire.reader import FlexibleReader, open_value

_SUBTOPOLOGY_BYTES = 8  # a name's length, six counts and tagged fields
_TOPIC_BYTES = 9  # a name's length, two numbers, a count and tagged fields
_COPARTITION_GROUP_BYTES = 4  # three counts and tagged fields


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """An internal topic as the application requested it.

    ``partitions`` is 0 if the source topics determine it, as for every changelog;
    ``replication_factor`` is 0 or -1 for the broker's default.
    """

    name: str
    partitions: int
    replication_factor: int
    topic_configs: dict[str, str]


@dataclass(frozen=True, slots=True)
class CopartitionGroup:
    """Source topics that must have equally many partitions, by index in the subtopology's lists."""

    source_topics: tuple[int, ...]
    source_topic_regex: tuple[int, ...]
    repartition_source_topics: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Subtopology:
    """A subtopology: its source topics, its repartition sinks, and its changelogs."""

    subtopology_id: str
    source_topics: tuple[str, ...]
    source_topic_regex: tuple[str, ...]
    state_changelog_topics: tuple[TopicInfo, ...]
    repartition_sink_topics: tuple[str, ...]
    repartition_source_topics: tuple[TopicInfo, ...]
    copartition_groups: tuple[CopartitionGroup, ...]


@dataclass(frozen=True, slots=True)
class StreamsGroupTopology:
    """The topology of a streams group's current epoch."""

    epoch: int
    subtopologies: tuple[Subtopology, ...]


def decode_streams_group_topology(data: bytes) -> StreamsGroupTopology:
    """Read a value of type 23. Raises DecodeError.

    Source: Kafka's ``StreamsGroupTopologyValue``.
    """
    reader = open_value(data, "streams group topology")
    topology_epoch = epoch(reader.int32())
    subtopologies = reader.array(_subtopology, _SUBTOPOLOGY_BYTES)
    reader.tagged_fields()
    return StreamsGroupTopology(topology_epoch, subtopologies)


def _subtopology(reader: FlexibleReader) -> Subtopology:
    # Keyword arguments are evaluated as written, and that is the order on the wire.
    subtopology = Subtopology(
        subtopology_id=reader.string(),
        source_topics=reader.strings(),
        source_topic_regex=reader.strings(),
        state_changelog_topics=reader.array(read_topic_info, _TOPIC_BYTES),
        repartition_sink_topics=reader.strings(),
        repartition_source_topics=reader.array(read_topic_info, _TOPIC_BYTES),
        copartition_groups=reader.array(_copartition_group, _COPARTITION_GROUP_BYTES),
    )
    reader.tagged_fields()
    return subtopology


def read_topic_info(reader: FlexibleReader) -> TopicInfo:
    """Read an internal topic, which records and answers have in the same form. Raises DecodeError."""
    topic = TopicInfo(
        name=reader.string(),
        partitions=bounded("number of partitions", reader.int32(), 0),
        replication_factor=bounded("replication factor", reader.int16(), -1),
        topic_configs=reader.entries(),
    )
    reader.tagged_fields()
    return topic


def _copartition_group(reader: FlexibleReader) -> CopartitionGroup:
    group = CopartitionGroup(reader.int16s(), reader.int16s(), reader.int16s())
    reader.tagged_fields()
    return group

"""Records that a real run published on own topics, validated by their schemas."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.models.records.topics import DEFAULT_PREFIX, with_prefix
from tests.support.kafka.topics import whole_topic
from tests.support.topics.validation import kinds_of, problems

Record = tuple[bytes | None, bytes | None]


def require_valid(
    cluster: EmbeddedCluster, topics: Iterable[str], prefix: str = DEFAULT_PREFIX
) -> set[str]:
    """Require that all present records of topics are valid; return their structs' names."""
    kinds: set[str] = set()
    for topic in topics:
        records = list(read_records(cluster, with_prefix(topic, prefix)))
        found = [problem for record in records for problem in problems(topic, *record)]
        assert not found, f"{len(found)} of {len(records)} records: {found[:5]}"
        for key, value in records:
            if value is not None:
                kinds |= kinds_of(topic, [key], json.loads(value))
    return kinds


def read_records(cluster: EmbeddedCluster, topic: str) -> Iterator[Record]:
    """Read the present keys and values of a topic with one partition."""
    for message in whole_topic(cluster, topic):
        yield message.key(), message.value()

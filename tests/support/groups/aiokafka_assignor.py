"""aiokafka's sticky assignor behind a pipe: a group as a line of JSON in, the assignment out.

It is a process of its own, since what it decides may hang on PYTHONHASHSEED.
"""

from __future__ import annotations

import json
import logging
import sys
from typing import Any, cast

from aiokafka.cluster import ClusterMetadata
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.coordinator.protocol import ConsumerProtocolMemberMetadata
from aiokafka.structs import TopicPartition


class _Cluster:
    def __init__(self, topics: dict[str, int]) -> None:
        self._topics = topics

    def topics(self) -> set[str]:
        return set(self._topics)

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        return set(range(self._topics[topic])) if topic in self._topics else None


def decided(line: dict[str, Any]) -> dict[str, list[tuple[str, int]]]:
    """Return each member's partitions; the members' metadata goes through aiokafka's own bytes."""
    read = {topic for member in line["members"].values() for topic in member["topics"]}
    cluster = _Cluster({topic: count for topic, count in line["topics"].items() if topic in read})
    members = {}
    for name, member in line["members"].items():
        owned = [TopicPartition(*one) for one in member["owned"]]
        generation = member["generation"]
        metadata = StickyPartitionAssignor._metadata(
            member["topics"],
            owned if owned or generation is not None else None,
            -1 if generation is None else generation,
        )
        members[name] = ConsumerProtocolMemberMetadata.decode(metadata.encode())
    assigned = StickyPartitionAssignor.assign(cast(ClusterMetadata, cluster), members)
    return {
        name: [(topic, number) for topic, own in one.assignment for number in own]
        for name, one in assigned.items()
    }


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    for question in sys.stdin:
        print(json.dumps(decided(json.loads(question))), flush=True)

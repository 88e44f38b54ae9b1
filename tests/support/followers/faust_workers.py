"""Faust workers without a broker: their applications, subscriptions and assignments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import faust
from aiokafka.cluster import ClusterMetadata
from aiokafka.coordinator.protocol import (
    ConsumerProtocol,
    ConsumerProtocolMemberAssignment,
    ConsumerProtocolMemberMetadata,
)
from aiokafka.protocol.metadata import MetadataResponse_v1
from faust.assignor.client_assignment import ClientMetadata

from caughtup.followers.faust import FollowingAssignor
from caughtup.followers.python.faust.worker import join_user_data, split_user_data
from caughtup.models.ids import ProcessId, TaskId, TopicPartition
from caughtup.models.wire.group_metadata import decode_assignment
from caughtup.models.wire.user_data import decode_assignment_info, encode_subscription_info

COUNTS = {
    "placed": 4,
    "paid": 4,
    "clicks": 2,
    "orders-latest-changelog": 4,
    "orders-sums-changelog": 4,
    "orders-rates-changelog": 3,
    "orders-seen-changelog": 8,
    "orders-__assignor-__leader": 1,
}
GLOBAL, ALONE = "orders-rates-changelog", "orders-seen-changelog"
TABLES = ("orders-latest-changelog", "orders-sums-changelog")
#: The sources: each partition is read by one worker. One table has no matching topic.
SOURCES = {
    TopicPartition(topic, number)
    for topic, count in COUNTS.items()
    if topic not in (*TABLES, GLOBAL)
    for number in range(count)
}
URL = "http://worker-{}:6066"
TASKS = [TaskId(count, number) for count in (1, 2, 4, 8) for number in range(count)]


def make_app(**options: Any) -> faust.App:
    app = faust.App(
        "orders",
        broker="kafka://127.0.0.1:1",
        store="memory://",
        **{"PartitionAssignor": FollowingAssignor, "table_standby_replicas": 0, **options},
    )
    app.Table("latest", partitions=4)
    app.Table("sums", partitions=4)
    app.GlobalTable("rates", partitions=3)
    app.Table("seen", partitions=8)
    return app


def make_assignor(**options: Any) -> FollowingAssignor:
    app = make_app(**options)
    # Faust does the same when its workers start.
    for table in app.tables.values():
        app.tables._changelogs[table.changelog_topic_name] = table
    assignor = app.assignor
    assert isinstance(assignor, FollowingAssignor)
    assignor._learn_tables()
    return assignor


def cluster(counts: Mapping[str, int] = COUNTS) -> ClusterMetadata:
    described = [
        (0, topic, False, [(0, number, 1, [1], [1]) for number in range(count)])
        for topic, count in counts.items()
    ]
    metadata = ClusterMetadata()
    metadata.update_metadata(MetadataResponse_v1([(1, "127.0.0.1", 9, None)], 1, described))
    return metadata


def joined(
    number: int, sums: Mapping[TaskId, int], topics: Any = COUNTS, url: str = URL
) -> ConsumerProtocolMemberMetadata:
    """Return a worker's subscription as the leader reads it."""
    said = encode_subscription_info(ProcessId(0, number), sums, number)
    fausts = ClientMetadata.from_data(
        {
            "assignment": {"actives": {}, "standbys": {}},
            "url": url.format(number),
            "changelog_distribution": {},
            "external_topic_distribution": {},
            "topic_groups": {},
        }
    )
    return through_the_wire(
        ConsumerProtocolMemberMetadata(0, sorted(topics), join_user_data(said, fausts.dumps()))
    )


def through_the_wire(metadata: ConsumerProtocolMemberMetadata) -> ConsumerProtocolMemberMetadata:
    return ConsumerProtocol.METADATA.decode(metadata.encode())


def read(
    given: ConsumerProtocolMemberAssignment,
) -> tuple[tuple[TopicPartition, ...], Any, ClientMetadata]:
    """Decode a worker's assignment: the group's, the follower's and Faust's parts."""
    wire = decode_assignment(given.encode())
    followers, fausts = split_user_data(wire.user_data)
    return wire.partitions, decode_assignment_info(followers), ClientMetadata.loads(fausts)

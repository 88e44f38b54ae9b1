"""Rebalances of real groups on every protocol, in the history's table as the service's models say."""

from __future__ import annotations

import shutil
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, Producer, TopicCollection
from confluent_kafka import TopicPartition as Position
from confluent_kafka.admin import AdminClient
from deltalake import DeltaTable

from caughtup.models.assignors.java.strings import coordinator_partition
from caughtup.models.ids import TopicPartition
from caughtup.models.offsets import EndOffsets
from caughtup.models.polls.batch import decode_records
from caughtup.models.polls.generations import split_generations
from caughtup.models.polls.records import ListedRecords
from caughtup.models.rebalances.rebalance import GroupRebalance
from caughtup.models.records.end_offsets import FORMAT, EndOffsetsRecord
from caughtup.models.records.fields import or_none
from caughtup.models.state.cluster import ClusterState
from caughtup.models.wire.consumer_offsets import decode_key
from caughtup.models.wire.record_keys import CONSUMER_OFFSETS
from caughtup.pipelines.delta.files import partition_of
from caughtup.pipelines.events import KafkaRecord
from caughtup.pipelines.history.buckets.lag import STATE
from caughtup.pipelines.history.buckets.tables import LAST_ENDS, bucket_parts
from caughtup.pipelines.history.decoding.batches import pack, pack_records, with_names
from caughtup.pipelines.tables import REBALANCES
from tests.models.state.test_streams_group_stories import PlayedStreamsGroup
from tests.oracle.generated.coordinated_groups import generate_group
from tests.support.pipelines.commit_batches import batch_of
from tests.support.pipelines.watched import Watched

pytestmark = pytest.mark.xdist_group("spark")

SECONDS, BUCKETS = 120, 4
#: Of a small streams group.
SEED = 8
#: The name that the played coordinator gives its group.
STREAMS_GROUP = "g"
FIELDS = ("kind", "sure", "client", "member", "host", "topic", "why")
Facts = dict[str, Any]


class Member:
    """A consumer in this process."""

    def __init__(self, watched: Watched, group: str, name: str, **config: object) -> None:
        given = {**watched.client, "group.id": group, "client.id": name, **config}
        self.consumer = Consumer({**given, "enable.auto.commit": False})
        self.consumer.subscribe([watched.topic])


def settle(members: Sequence[Member], partitions: int = 2) -> None:
    """Poll until each member has its part of the partitions, and commit on each."""
    deadline = time.monotonic() + SECONDS
    while True:
        assert time.monotonic() < deadline, "the group hasn't settled"
        for member in members:
            member.consumer.poll(0.05)
        held = [member.consumer.assignment() for member in members]
        if all(held) and sum(map(len, held)) == partitions:
            break
    for member, own in zip(members, held, strict=True):
        offsets = [Position(one.topic, one.partition, 0) for one in own]
        member.consumer.commit(offsets=offsets, asynchronous=False)


def rebalance_a_group(watched: Watched, group: str, **config: object) -> None:
    """Let one join, then another, and both leave."""
    one = Member(watched, group, "one", **config)
    settle([one])
    other = Member(watched, group, "other", **config)
    settle([one, other])
    other.consumer.close()
    settle([one])
    one.consumer.close()


def look(topic: str, count: int, topic_id: bytes | None) -> Iterator[EndOffsetsRecord]:
    ends = EndOffsets(0, 9, 9, time.time_ns() // 1_000_000)
    for number in range(count):
        yield EndOffsetsRecord.from_ends(TopicPartition(topic, number), ends, topic_id)


def id_of(watched: Watched) -> bytes:
    """Return the id of the topic."""
    admin = AdminClient(watched.client)
    described = admin.describe_topics(TopicCollection([watched.topic]))
    found = described[watched.topic].result(SECONDS).topic_id
    halves = found.get_most_significant_bits(), found.get_least_significant_bits()
    return b"".join((half % (1 << 64)).to_bytes(8) for half in halves)


def log_of(watched: Watched, groups: Sequence[str], partitions: int) -> list[KafkaRecord]:
    """Read the records of some groups, each partition in its order."""
    config = {"group.id": "reader", "enable.partition.eof": True, "enable.auto.commit": False}
    consumer = Consumer({**watched.client, **config, "isolation.level": "read_uncommitted"})
    wanted = sorted({coordinator_partition(group, partitions) for group in groups})
    consumer.assign([Position(CONSUMER_OFFSETS, number, 0) for number in wanted])
    reading, found = set(wanted), []
    while reading:
        for message in consumer.consume(1000, timeout=1):
            if message.error() is not None:
                reading.discard(message.partition())
            elif getattr(decode_key(message.key()), "group", None) in groups:
                place = message.partition(), message.offset(), message.timestamp()[1]
                found.append(KafkaRecord(CONSUMER_OFFSETS, *place, message.key(), message.value()))
    consumer.close()
    return sorted(found, key=lambda one: (one.partition, one.offset))


def served(log: Iterable[KafkaRecord], ends: Iterable[EndOffsetsRecord]) -> list[Facts]:
    """Return what the service's models say of a group's records."""
    state = ClusterState("c", {})
    for one in ends:
        topic_id = bytes.fromhex(one.topic_id) if one.topic_id else None
        state.apply_ends(one.topic_partition, one.to_ends(), topic_id, one.as_of_ms)
    records = list(log)
    (group,) = {str(getattr(decode_key(one.key or b""), "group", "")) for one in records}
    begin = 0
    pairs = ListedRecords([one.key for one in records], [one.value for one in records])
    for part in split_generations(pairs):
        begin += len(part)
        state.apply_batch(decode_records(part), records[begin - 1].timestamp_ms)
    assert not state.faults.newest()
    return [facts(group, one) for one in reversed(state.rebalances.of(group))]


def facts(group: str, rebalance: GroupRebalance) -> Facts:
    causes = [{name: or_none(getattr(one, name)) for name in FIELDS} for one in rebalance.causes]
    return {
        "group": group,
        "causes": causes,
        "unfinished": rebalance.unfinished,
        "members": rebalance.members,
        "generation": rebalance.generation,
        "after": or_none(rebalance.after),
        "partitions": or_none(rebalance.partitions),
        "moved": or_none(rebalance.moved),
    }


def in_order(rows: Iterable[Facts]) -> list[Facts]:
    names = (
        "group",
        "causes",
        "unfinished",
        "members",
        "generation",
        "after",
        "partitions",
        "moved",
    )
    ordered = sorted(rows, key=lambda row: (row["group"], row["log_offset"]))
    return [{name: row[name] for name in names} for row in ordered]


def one_by_one(records: Iterable[KafkaRecord], kinds: dict[str, str]) -> list[Facts]:
    """Write each record as a batch of its own, without Spark, with the state of the one before."""
    state: dict[tuple[str, int], bytes] = {}
    found: list[Facts] = []
    for number, record in enumerate(records):
        own: dict[int, dict[str, list[bytes]]] = {one: {} for one in range(BUCKETS)}
        for few in pack_records(kinds, BUCKETS, [batch_of([record])]):
            for row in few.to_pylist():
                own[row["bucket"]].setdefault(row["kind"], []).append(row["data"])
        left: dict[tuple[str, int], bytes] = {}
        for bucket, packs in own.items():
            for (kind, of), data in state.items():
                if of == bucket or kind == LAST_ENDS:
                    packs.setdefault(f"known-{kind}", []).append(data)
            for part in bucket_parts(bucket, packs, BUCKETS, begins=number == 0):
                if part.table == REBALANCES.name:
                    found += part.rows.to_pylist()
                elif part.table == STATE:
                    kind = partition_of(f"{part.folder}/-")["kind"] or ""
                    empty = pa.RecordBatch.from_pylist([], schema=part.rows.schema)
                    left[kind, bucket] = pack(
                        [with_names(one) for one in part.rows.to_batches() or [empty]]
                    )
        state |= left
    return found


@pytest.mark.thorough
def test_causes_are_the_services_on_every_protocol_wherever_batches_are_cut(
    watched: Watched,
) -> None:
    suffix = uuid.uuid4().hex[:8]
    classic, consumer = f"classic-{suffix}", f"consumer-{suffix}"
    configs = {classic: {"heartbeat.interval.ms": 200}, consumer: {"group.protocol": "consumer"}}
    with ThreadPoolExecutor(2) as threads:
        for one in [
            threads.submit(rebalance_a_group, watched, group, **config)
            for group, config in configs.items()
        ]:
            one.result(3 * SECONDS)
    offsets = AdminClient(watched.client).list_topics(CONSUMER_OFFSETS, SECONDS)
    partitions = len(offsets.topics[CONSUMER_OFFSETS].partitions)
    story = generate_group(SEED)
    producer = Producer({**watched.client, "client.id": "__admin_client"})
    for of_round in PlayedStreamsGroup(story, "4.3").rounds():
        for key, value in of_round:
            number = coordinator_partition(STREAMS_GROUP, partitions)
            producer.produce(CONSUMER_OFFSETS, value, key, number)
    looks = [*look(watched.topic, 2, id_of(watched))]
    for name, (width, _) in story.subtopologies.items():
        looks += look(f"in-{name}", width, None)
    for one in looks:
        producer.produce(watched.end_offsets, FORMAT.encode(one), one.key, 0)
    assert producer.flush(SECONDS) == 0

    groups = sorted((classic, consumer, STREAMS_GROUP))
    log = log_of(watched, groups, partitions)
    of = {
        group: [one for one in log if getattr(decode_key(one.key or b""), "group", "") == group]
        for group in groups
    }
    expected = [row for group in groups for row in served(of[group], looks)]
    watched.run()
    rows = [row for row in watched.rows(REBALANCES) if row["group"] in groups]
    assert in_order(rows) == expected
    kinds = {watched.end_offsets: "end_offsets"}
    ends = [
        KafkaRecord(watched.end_offsets, 0, number, one.as_of_ms, one.key, FORMAT.encode(one))
        for number, one in enumerate(looks)
    ]
    assert in_order(one_by_one([*ends, *log], kinds)) == expected

    protocols = {row["group"]: (row["protocol"], row["group_type"]) for row in rows}
    assert protocols == {
        classic: ("classic", "classic"),
        consumer: ("consumer", "consumer"),
        STREAMS_GROUP: ("streams", "streams"),
    }
    for group in (classic, consumer):
        causes = [
            (one["causes"][0]["client"], one["causes"][0]["kind"], one["members"])
            for one in expected
            if one["group"] == group
        ]
        for cause in (("one", "joined", 1), ("other", "joined", 2), ("other", "left", 1)):
            assert cause in causes, (group, causes)
        assert causes[-1] == ("one", "left", 0)
    continue_as_after_an_earlier_release(watched, consumer)


def continue_as_after_an_earlier_release(watched: Watched, group: str) -> None:
    """Remove what earlier releases don't have; the next batch knows what the group was all the same."""
    last = max(row["generation"] for row in watched.rows(REBALANCES) if row["group"] == group)
    shutil.rmtree(f"{watched.options.output}/{REBALANCES.name}")
    DeltaTable(f"{watched.options.output}/{STATE}").delete("kind IN ('rebalances', 'topics')")
    member = Member(watched, group, "third", **{"group.protocol": "consumer"})
    settle([member])
    member.consumer.close()
    watched.run()
    joined, left = sorted(
        (row for row in watched.rows(REBALANCES) if row["group"] == group),
        key=lambda row: row["log_offset"],
    )
    assert (joined["generation"], joined["after"], joined["members"]) == (last + 1, last, 1)
    for row, kind in ((joined, "joined"), (left, "left")):
        (cause,) = row["causes"]
        assert (cause["client"], cause["kind"]) == ("third", kind)

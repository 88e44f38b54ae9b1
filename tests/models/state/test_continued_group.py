"""A group's generations from its records: the causes are the service's, wherever batches are cut."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence

import pytest

from caughtup.models.commits.table import LastCommits
from caughtup.models.groups.membership import Membership
from caughtup.models.ids import TopicPartition
from caughtup.models.offsets import EndOffsets
from caughtup.models.polls.batch import Record, decode_records
from caughtup.models.polls.generations import split_generations
from caughtup.models.polls.records import ListedRecords
from caughtup.models.rebalances.rebalance import GroupRebalance
from caughtup.models.state.cluster import ClusterState
from caughtup.models.state.continued_group import (
    LOST,
    ClusterNow,
    ContinuedGroup,
    GroupGeneration,
    GroupMemory,
    GroupRecord,
    deciding_offsets,
)
from caughtup.models.wire.consumer_offsets import OffsetKey, decode_key, decode_offset_commit
from tests.models.state.test_coordinator_stories import Story
from tests.models.state.test_streams_group_stories import PlayedStreamsGroup
from tests.oracle.generated.coordinated_groups import generate_group
from tests.support.groups.coordinator import AT_MS, PlayedGroup
from tests.support.groups.records import START_MS, commit, consumer_generation, group_tombstone
from tests.support.sizes import daily

SOURCE = "orders-in"
ENDS = EndOffsets(0, 9, 9, AT_MS)
SECOND_MS = 1_000
Cut = Callable[[Sequence[GroupRecord]], Iterable[Sequence[GroupRecord]]]


def at_once(records: Sequence[GroupRecord]) -> Iterable[Sequence[GroupRecord]]:
    return [records]


def one_by_one(records: Sequence[GroupRecord]) -> Iterable[Sequence[GroupRecord]]:
    return [[one] for one in records]


def at_random(records: Sequence[GroupRecord]) -> Iterable[Sequence[GroupRecord]]:
    rng, begin = random.Random(len(records)), 0
    while begin < len(records):
        end = begin + rng.randint(1, 7)
        yield records[begin:end]
        begin = end


def placed(records: Iterable[Record], at_ms: int = AT_MS) -> list[GroupRecord]:
    """Place records in a log, a second apart."""
    return [
        GroupRecord(offset, at_ms + offset * SECOND_MS, key or b"", value)
        for offset, (key, value) in enumerate(records)
    ]


def is_commit(record: GroupRecord) -> bool:
    return isinstance(decode_key(record.key), OffsetKey)


def commits_before(log: Sequence[GroupRecord], offset: int) -> LastCommits:
    """Return the last commit on each partition before a place in the log."""
    last: dict[TopicPartition, tuple[int, int]] = {}
    for one in log:
        key = decode_key(one.key)
        if one.log_offset < offset and isinstance(key, OffsetKey) and one.value is not None:
            value = decode_offset_commit(one.value)
            partition = TopicPartition(key.topic, key.partition)
            last[partition] = value.offset, value.commit_timestamp_ms
    offsets, times = ([one[at] for one in last.values()] for at in (0, 1))
    return LastCommits(list(last), offsets, times)


def recorded(
    group: str, log: Sequence[GroupRecord], cluster: ClusterNow, cut: Cut = at_once
) -> list[GroupGeneration]:
    """Read a group's records, batch by batch, each with the memory of the one before."""
    memory: GroupMemory | None = None
    found = []
    for batch in cut(log):
        own = [one for one in batch if not is_commit(one)]
        one = ContinuedGroup(group, memory, cluster)
        found += one.read(own, {at: commits_before(log, at) for at in deciding_offsets(own)})
        memory = one.memory()
    return found


def served(group: str, log: Sequence[GroupRecord], cluster: ClusterNow) -> list[GroupRebalance]:
    """Return a group's rebalances as the service finds them in one poll."""
    state = ClusterState("c", {})
    ids = {name: topic_id for topic_id, name in cluster.names.items()}
    for topic, count in cluster.partition_counts.items():
        for number in range(count):
            state.apply_ends(TopicPartition(topic, number), ENDS, ids.get(topic), AT_MS)
    begin = 0
    for part in split_generations(
        ListedRecords([one.key for one in log], [one.value for one in log])
    ):
        begin += len(part)
        state.apply_batch(decode_records(part), log[begin - 1].timestamp_ms)
    assert not state.faults.newest()
    return state.rebalances.of(group)


def facts(rebalance: GroupRebalance) -> tuple[object, ...]:
    return (
        *(rebalance.generation, rebalance.causes, rebalance.members, rebalance.partitions),
        *(rebalance.moved, rebalance.at_ms, rebalance.unfinished, rebalance.after),
    )


def compared(found: Iterable[GroupGeneration]) -> list[tuple[object, ...]]:
    generations = list(found)
    assert not [one.error for one in generations if one.error]
    return [facts(one.rebalance) for one in generations if one.rebalance is not None]


def owners(*clients: str, of: int = 6) -> dict[str, tuple[TopicPartition, ...]]:
    """Deal the partitions of the source to clients."""
    return {
        client: tuple(TopicPartition(SOURCE, number) for number in range(of)[place :: len(clients)])
        for place, client in enumerate(clients)
    }


def classic_log() -> list[GroupRecord]:
    """A group that one joins, of which one stops committing, and whose assignor changes."""
    steps = [("a",), ("a", "b"), ("a", "b", "c"), ("a", "b"), ("a", "b"), ("b",), ()]
    records: list[Record] = []
    for number, clients in enumerate(steps):
        protocol = "range" if number < 4 else "sticky"
        records.append(consumer_generation(number + 1, owners(*clients), protocol=protocol))
        for partition in range(6 if clients else 0):
            at_ms = START_MS - (3 - partition % 3) * 20_000
            records.append(commit(partition, number, at_ms=at_ms))
    records += [group_tombstone(), consumer_generation(1, owners("d"))]
    return placed(records, START_MS)


def test_a_classic_groups_rebalances_are_the_services() -> None:
    log = classic_log()
    cluster = ClusterNow(partition_counts={SOURCE: 6})
    expected = list(reversed(served("orders", log, cluster)))
    found = recorded("orders", log, cluster)
    generations = [one.rebalance.generation for one in found if one.rebalance is not None]
    assert generations == [1, 2, 3, 4, 5, 6, 7, 1]
    assert compared(found)[-1:] == [facts(one) for one in expected]  # the group was deleted
    for cut in (one_by_one, at_random):
        assert recorded("orders", log, cluster, cut) == found
    kinds = [one.rebalance.cause.kind for one in found if one.rebalance is not None]
    assert kinds[:5] == ["joined", "joined", "joined", "left", "assignor_changed"] or kinds[3] in (
        "session_timed_out",
        "poll_interval_exceeded",
    )
    assert {(one.group_type, one.protocol) for one in found} == {("classic", "classic")}


def test_a_classic_groups_rebalances_are_the_services_while_it_exists() -> None:
    log = classic_log()[:-2]
    cluster = ClusterNow(partition_counts={SOURCE: 6})
    expected = [facts(one) for one in reversed(served("orders", log, cluster))]
    assert len(expected) == 7
    for cut in (at_once, one_by_one, at_random):
        assert compared(recorded("orders", log, cluster, cut)) == expected


@pytest.mark.parametrize("seed", range(daily(4, 12)))
def test_epochs_of_consumer_groups_are_the_services(seed: int) -> None:
    story = Story(seed)
    records: list[Record] = []
    for _ in story.steps():
        records += story.group.take()
    names = {topic_id: name for name, (topic_id, _) in story.group.topics.items()}
    counts = {name: count for name, (_, count) in story.group.topics.items()}
    hold_equal("g", placed(records), ClusterNow(names, counts), "consumer")


@pytest.mark.parametrize("seed", range(daily(2, 8)))
def test_epochs_of_streams_groups_are_the_services(seed: int) -> None:
    story = generate_group(seed)
    played = PlayedStreamsGroup(story, "4.3")
    records = [record for of_round in played.rounds() for record in of_round]
    counts = {f"in-{name}": width for name, (width, _) in story.subtopologies.items()}
    hold_equal("g", placed(records), ClusterNow(partition_counts=counts), "streams")


def hold_equal(group: str, log: Sequence[GroupRecord], cluster: ClusterNow, protocol: str) -> None:
    expected = [facts(one) for one in reversed(served(group, log, cluster))]
    assert expected
    for cut in (at_once, one_by_one, at_random):
        found = recorded(group, log, cluster, cut)
        assert {(one.group_type, one.protocol) for one in found} == {(protocol, protocol)}
        assert compared(found)[-len(expected) :] == expected


def test_what_was_before_the_first_known_generation_is_unknown() -> None:
    log = placed([consumer_generation(7, owners("a")), consumer_generation(8, owners("a", "b"))])
    first, second = (one.rebalance for one in recorded("orders", log, ClusterNow()))
    assert first is not None
    assert second is not None
    assert facts(first)[:3] == (7, [], 1)
    assert (second.cause.text, second.after, second.moved) == ("b joined", 7, 3)


def test_records_from_before_make_no_generation_and_are_compared_with() -> None:
    played = PlayedGroup("g", topics={"t": (b"t" * 16, 4)})
    for name in ("a", "b"):
        played.join(name, ["t"])
    before = placed(played.take())
    played.leave("a")
    played.assign("b")
    after = placed(played.take())
    cluster = ClusterNow({b"t" * 16: "t"}, {"t": 4})
    one = ContinuedGroup("g", None, cluster)
    one.begin(before)
    other = ContinuedGroup("g", one.memory(), cluster)
    (found,) = other.read(after, {})
    assert found.rebalance is not None
    assert (found.rebalance.cause.kind, found.rebalance.members) == ("left", 1)
    assert found.rebalance.moved == 2


def test_of_a_group_that_could_not_be_kept_nothing_is_said_until_it_is_known_again() -> None:
    played = PlayedGroup("g", topics={"t": (b"t" * 16, 4)})
    played.join("a", ["t"])
    one = ContinuedGroup("g", LOST, ClusterNow())
    assert list(one.read(placed(played.take()), {})) == []
    assert one.memory() == LOST
    classic = ContinuedGroup("orders", LOST, ClusterNow())
    (found,) = classic.read(placed([consumer_generation(7, owners("a"))]), {})
    assert found.rebalance is not None
    assert (found.rebalance.generation, found.rebalance.causes) == (7, [])


def test_a_record_that_cannot_be_read_costs_itself() -> None:
    good, (key, _) = consumer_generation(1, owners("a")), consumer_generation(2, owners("a"))
    log = placed([good, (key, b"\x00"), consumer_generation(3, owners("a", "b"))])
    first, broken, last = recorded("orders", log, ClusterNow(), one_by_one)
    assert (broken.error is not None, broken.rebalance, broken.log_offset) == (True, None, 1)
    assert [one.rebalance.unfinished for one in (first, last) if one.rebalance] == [0, 1]


def test_a_group_is_converted_as_its_coordinator_writes_it() -> None:
    played = PlayedGroup("orders", topics={SOURCE: (b"t" * 16, 6)})
    played.join("a", [SOURCE])
    log = placed([consumer_generation(1, owners("a")), group_tombstone(), *played.take()])
    cluster = ClusterNow({b"t" * 16: SOURCE}, {SOURCE: 6})
    found = recorded("orders", log, cluster)
    assert [(one.protocol, one.rebalance and one.rebalance.cause.kind) for one in found] == [
        ("classic", "joined"),
        ("consumer", "protocol_converted"),
    ]


def test_a_group_without_anything_left_has_no_memory() -> None:
    one = ContinuedGroup("orders", None, ClusterNow())
    list(one.read(placed([consumer_generation(1, owners("a"))]), {}))
    memory = one.memory()
    assert memory is not None
    other = ContinuedGroup("orders", memory, ClusterNow())
    assert list(other.read(placed([group_tombstone()]), {})) == []
    assert other.memory() is None
    assert isinstance(memory.decided, tuple)
    assert not isinstance(memory.decided, Membership)

"""Groups' decisions from hostile and incomplete records: a reason, and right with the next epoch."""

from __future__ import annotations

from dataclasses import replace

import pytest

from caughtup.models.ids import TopicPartition
from caughtup.models.offsets import EndOffsets
from caughtup.models.polls.batch import Batch, Record, decode_batch
from caughtup.models.records.fields import ABSENT
from caughtup.models.records.recommendations import Result
from caughtup.models.state import group_decisions
from caughtup.models.state.cluster import ClusterState
from caughtup.models.wire.record_keys import ConsumerGroupKey, RecordType
from tests.support.groups.coordinator import AT_MS, PlayedGroup, know, read
from tests.support.groups.new_group_encoders import new_group_key
from tests.support.groups.records import consumer_generation, group_tombstone

T, OTHER = b"t" * 16, b"o" * 16


@pytest.fixture
def state() -> ClusterState:
    return ClusterState("c", {})


@pytest.fixture
def group(state: ClusterState) -> PlayedGroup:
    """A group of two members that the state knows, as it knows the topics."""
    played = PlayedGroup("g", topics={"t": (T, 5), "other": (OTHER, 2)})
    know(state, played)
    for name in ("a", "b"):
        played.join(name, ["t"])
    read(state, played.take())
    assert results(state) == {"match": 2}
    return played


def results(state: ClusterState) -> dict[Result, int]:
    found: dict[Result, int] = {}
    for kind, count in state.group_decisions.counts("g").items():
        found[kind.result] = found.get(kind.result, 0) + count
    return found


def last(state: ClusterState) -> tuple[str, str]:
    decision = state.group_decisions.last("g")
    assert decision is not None
    return decision.result, decision.why


def delete(state: ClusterState, group: PlayedGroup) -> None:
    """Let members a and b leave, and delete the group."""
    for name in ("a", "b"):
        group.leave(name)
    complete = ConsumerGroupKey(COMPLETE, "g")
    read(state, [*group.take(), *((new_group_key(key), None) for key in (GONE, complete))])


def of_type(record: Record, *types: RecordType) -> bool:
    return int.from_bytes((record[0] or b"")[:2]) in types


MEMBER = RecordType.CONSUMER_GROUP_MEMBER_METADATA
TARGET = RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER
GONE = ConsumerGroupKey(RecordType.CONSUMER_GROUP_METADATA, "g")
COMPLETE = RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA


def test_a_new_group_is_decided_from_its_first_epoch_on(
    state: ClusterState, group: PlayedGroup
) -> None:
    decision = state.group_decisions.last("g")
    assert decision is not None
    assert (decision.assignor, decision.client) == ("uniform", "group-coordinator")
    assert decision.leader is ABSENT
    group.leave("a")
    group.assign("b")
    read(state, group.take())
    assert results(state) == {"match": 3}


def test_an_epoch_whose_records_come_one_by_one_is_decided_once(
    state: ClusterState, group: PlayedGroup
) -> None:
    group.join("c", ["t"])
    for record in group.take():
        read(state, [record])
    assert results(state) == {"match": 3}


def test_a_group_from_before_the_start_is_compared_with_its_next_epoch() -> None:
    played, state = PlayedGroup("g", topics={"t": (T, 5)}), ClusterState("c", {})
    know(state, played)
    played.join("a", ["t"])
    past = played.take()
    state.apply_batch(_batch(past), AT_MS, past=True)
    assert state.group_decisions.last("g") is None
    played.join("b", ["t"])
    read(state, played.take())
    assert results(state) == {"match": 1}


def test_a_look_at_the_log_decides_from_the_first_epoch_that_is_left(state: ClusterState) -> None:
    played = PlayedGroup("g", topics={"t": (T, 5)})
    know(state, played)
    played.join("a", ["t"])
    first = played.take()
    played.join("b", ["t"])
    second = played.take()
    only = frozenset({"g"})
    for records in (first, second):
        state.apply_batch(_batch(records), AT_MS, compared=only)
        assert last(state) == ("match", "")
    compacted = ClusterState("c", {})
    know(compacted, played)
    compacted.apply_batch(_batch([*first[:1], *second]), AT_MS, compared=only)
    assert last(compacted) == ("undetermined", "the target assignment before is not known")
    played.join("c", ["t"])
    compacted.apply_batch(_batch(played.take()), AT_MS, compared=only)
    assert last(compacted) == ("match", "")


def test_a_start_amid_an_epoch_leaves_that_one_open() -> None:
    played, state = PlayedGroup("g", topics={"t": (T, 5)}), ClusterState("c", {})
    know(state, played)
    played.join("a", ["t"])
    state.apply_batch(_batch(played.take()), AT_MS, past=True)
    played.join("b", ["t"])
    records = played.take()
    cut = next(n for n, one in enumerate(records) if of_type(one, TARGET)) + 1
    state.apply_batch(_batch(records[:cut]), AT_MS, past=True)
    read(state, records[cut:])
    assert last(state) == ("undetermined", "the target assignment before is not known")
    played.join("c", ["t"])
    read(state, played.take())
    assert last(state) == ("match", "")


@pytest.mark.parametrize(
    ("lost", "why"),
    [
        (MEMBER, "the record of c is not known"),
        (TARGET, "the target assignment of c is not known"),
    ],
)
def test_records_of_a_member_that_are_missing(
    state: ClusterState, group: PlayedGroup, lost: RecordType, why: str
) -> None:
    group.join("c", ["t"])
    read(state, [one for one in group.take() if not (of_type(one, lost) and one[0][-1:] == b"c")])  # type: ignore[index]
    assert last(state) == ("undetermined", why)
    group.join("c", ["t", "other"])
    read(state, group.take())
    if lost is TARGET:  # what it had before is not in the log
        assert last(state) == ("undetermined", "the target assignment before is not known")
        group.join("c", ["t"])
        read(state, group.take())
    assert last(state) == ("match", "")


def test_a_member_that_vanishes_between_the_records_of_an_epoch(
    state: ClusterState, group: PlayedGroup
) -> None:
    group.join("c", ["t"])
    records = group.take()
    group.leave("a")
    gone = group.take()
    cut = next(n for n, one in enumerate(records) if of_type(one, COMPLETE))
    read(state, [*records[:cut], *gone, *records[cut:]])
    result, why = last(state)
    assert result == "undetermined"
    assert "epoch" in why
    group.assign("b")
    read(state, group.take())
    assert last(state)[0] == "match"


def test_a_target_assignment_of_another_assignor_is_a_mismatch(
    state: ClusterState, group: PlayedGroup
) -> None:
    group.assignor, group.decides = "uniform", "range"
    group.join("c", ["t"])
    read(state, group.take())
    result, why = last(state)
    assert result == "mismatch"
    assert why.startswith(("a has t-", "b has t-"))
    group.decides = None
    group.join("d", ["t"])  # the next epoch is decided from what was written
    read(state, group.take())
    assert last(state) == ("match", "")


def test_a_topic_that_grew_is_known_to_the_coordinator_first(
    state: ClusterState, group: PlayedGroup
) -> None:
    group.topics["t"] = T, 7
    group.assign("a")
    read(state, group.take())
    assert last(state) == (
        "consistent",
        "the coordinator knew 7 partitions of t, which has 5",
    )
    assert results(state) == {"match": 2}, "it waits for the topic's partitions"
    know(state, group)
    assert last(state) == ("match", "")
    assert results(state) == {"match": 3}


def test_what_waits_for_a_topic_is_counted_with_the_next_epoch(
    state: ClusterState, group: PlayedGroup
) -> None:
    group.topics["t"] = T, 7
    group.assign("a")
    read(state, group.take())
    group.leave("a")
    group.assign("b")
    read(state, group.take())
    know(state, group)
    assert results(state) == {"match": 3, "consistent": 1}


def test_a_topic_without_a_known_name_is_waited_for(
    state: ClusterState, group: PlayedGroup
) -> None:
    group.topics["new"] = b"n" * 16, 3
    group.join("a", ["t", "new"])
    read(state, group.take())
    assert last(state) == ("undetermined", "the name of an assigned topic is not known")
    know(state, group)
    assert last(state) == ("match", "")
    assert results(state) == {"match": 3}


def test_a_topic_that_is_deleted_while_it_is_assigned(
    state: ClusterState, group: PlayedGroup
) -> None:
    group.join("a", ["t", "other"])
    read(state, group.take())
    del group.topics["other"]
    group.assign("a")
    read(state, group.take())
    assert last(state) == (
        "consistent",
        "the coordinator knew 0 partitions of other, which has 2",
    )
    for number in range(2):
        state.apply_ends(TopicPartition("other", number), None)
    assert last(state) == ("match", "")


def test_a_topic_that_is_made_again_has_another_id(state: ClusterState, group: PlayedGroup) -> None:
    group.topics["t"] = b"T" * 16, 5
    group.assign("a")
    read(state, group.take())
    assert last(state)[0] == "undetermined"
    know(state, group)
    assert last(state) == ("match", "")


def test_an_assignor_that_is_none_of_kafkas(state: ClusterState, group: PlayedGroup) -> None:
    for name in ("a", "b"):
        group.assignor = "mine"
        group.default = "range"
        group.members[name] = replace(group.members[name], server_assignor="mine")
    group.join("a", ["t"])
    group.join("b", ["t"])
    read(state, group.take())
    assert last(state) == ("undetermined", "the assignor 'mine' is not reproduced")
    group.assignor = "uniform"
    group.join("a", ["t"])
    group.join("b", ["t"])
    group.join("c", ["t"])
    read(state, group.take())
    assert last(state) == ("match", "")


@pytest.mark.parametrize("topics", [(), ("absent",)])
def test_a_regular_expression_that_resolves_to_nothing(
    state: ClusterState, group: PlayedGroup, topics: tuple[str, ...]
) -> None:
    group.join("c", (), "x.*")
    group.resolve("x.*", topics, "c")
    read(state, group.take())
    assert last(state) == ("match", "")
    group.resolve("x.*", ["other"], "c")
    read(state, group.take())
    assert last(state) == ("match", "")


def test_a_regular_expression_whose_topics_are_not_known(
    state: ClusterState, group: PlayedGroup
) -> None:
    group.expressions["o.*"] = ("other",)
    group.join("c", (), "o.*")
    read(state, group.take())
    assert last(state) == ("undetermined", "the topics of a regular expression are not known")
    group.resolve("o.*", ["other"], "c")
    read(state, group.take())
    assert last(state) == ("match", "")


def test_racks_that_are_not_known(state: ClusterState, group: PlayedGroup) -> None:
    group.join("c", ["t"], rack="r1")
    read(state, group.take())
    assert last(state) == ("match", ""), "Kafka's assignors of today don't look at racks"


def test_racks_leave_it_open_whether_an_older_coordinator_decided(
    state: ClusterState, group: PlayedGroup
) -> None:
    group.assignor, group.decides = "uniform", "range"
    group.join("c", ["t"], rack="r1")
    read(state, group.take())
    assert last(state) == ("undetermined", "members have racks, and the replicas' are not known")


def test_a_group_that_is_converted_from_the_classic_protocol(state: ClusterState) -> None:
    played = PlayedGroup("g", topics={"t": (T, 5)})
    know(state, played)
    read(state, [consumer_generation(1, {"m": (TopicPartition("t", 0),)}, group="g")])
    played.join("a", ["t"])
    read(state, [group_tombstone("g"), *played.take()])
    assert last(state) == ("undetermined", "the group was on another protocol before")
    played.join("b", ["t"])
    read(state, played.take())
    assert last(state) == ("match", "")


def test_a_group_that_is_deleted_and_comes_again(state: ClusterState, group: PlayedGroup) -> None:
    for name in ("a", "b"):
        group.leave(name)
    read(state, group.take())
    group.join("a", ["t"])
    read(state, group.take())
    assert results(state) == {"match": 3}


def test_a_group_that_is_too_large(state: ClusterState, group: PlayedGroup) -> None:
    group.topics["t"] = T, 100_001
    group.assign("a")
    read(state, group.take())
    assert last(state) == ("undetermined", "the group is too large")


def test_a_large_group_is_decided_apart_from_the_records_and_in_any_order(
    state: ClusterState, group: PlayedGroup
) -> None:
    group.topics["t"] = T, 1_500
    know(state, group)
    group.assign("a")
    first, before = group.take(), last(state)
    group.join("c", ["t"])
    for records in (first, group.take()):
        state.apply_batch(_batch(records), AT_MS)
    assert last(state) == before
    one, two = state.group_decisions.take_large()
    for large in (two, one):
        state.group_decisions.apply_large(large, large.decide(), AT_MS)
    assert results(state) == {"match": 4}
    group.leave("c")
    group.assign("b")
    state.apply_batch(_batch(group.take()), AT_MS)
    (late,) = state.group_decisions.take_large()
    delete(state, group)
    state.group_decisions.apply_large(late, late.decide(), AT_MS)
    state.forget_gone()
    assert results(state) == {}


def test_of_very_many_large_groups_some_are_undetermined(
    state: ClusterState, group: PlayedGroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_decisions, "MOST_LATER", 1)
    group.topics["t"] = T, 1_500
    know(state, group)
    for name in ("c", "d"):
        group.join(name, ["t"])
        state.apply_batch(_batch(group.take()), AT_MS)
    assert last(state)[0] == "undetermined"
    for large in state.group_decisions.take_large():
        state.group_decisions.apply_large(large, large.decide(), AT_MS)
    assert results(state) == {"match": 3, "undetermined": 1}


def test_groups_that_are_gone_are_forgotten(state: ClusterState, group: PlayedGroup) -> None:
    group.topics["t"] = T, 7
    group.assign("a")
    read(state, group.take())
    state.forget_gone()
    assert state.group_decisions.last("g") is not None
    delete(state, group)
    state.forget_gone()
    assert state.group_decisions.last("g") is None
    assert results(state) == {}
    state.apply_ends(TopicPartition("t", 6), EndOffsets(0, 1, 1, AT_MS), T, AT_MS)
    assert state.group_decisions.last("g") is None


def test_a_classic_generation_is_decided_again_once(state: ClusterState) -> None:
    for number in range(2):
        state.apply_ends(TopicPartition("t", number), EndOffsets(0, 1, 1, AT_MS), T, AT_MS)
    members = {"m": (TopicPartition("t", 0), TopicPartition("t", 1))}
    state.apply_batch(_batch([consumer_generation(1, members, group="g")]), AT_MS, past=True)
    assert state.group_decisions.last("g") is None
    for _ in range(2):  # a static member's return writes the generation again
        read(state, [consumer_generation(2, members, group="g")])
    assert sum(results(state).values()) == 1
    decision = state.group_decisions.last("g")
    assert decision is not None
    assert (decision.assignor, decision.client) == ("range", "kafka-clients")
    read(state, [group_tombstone("g")])
    state.forget_gone()
    assert state.group_decisions.last("g") is None


def test_a_generation_that_the_coordinator_wrote_for_a_group_of_the_new_protocol(
    state: ClusterState, group: PlayedGroup
) -> None:
    members = {"m": (TopicPartition("t", 0),)}
    left, ended = _ended(group)
    read(state, left)
    read(state, [*ended, consumer_generation(9, members, group="g")])
    assert last(state) == ("undetermined", "the group was on another protocol before")
    read(state, [consumer_generation(10, members, group="g")])
    assert last(state)[1] != "the group was on another protocol before"


def _ended(group: PlayedGroup) -> tuple[list[Record], list[Record]]:
    """Return the records of members that leave, and those of a group that is deleted then."""
    for name in ("a", "b"):
        group.leave(name)
    left = group.take()
    keys = {key for key, _ in left if key} | {new_group_key(ConsumerGroupKey(COMPLETE, "g"))}
    return left, [(key, None) for key in sorted(keys, reverse=True)]  # as Kafka does


def _batch(records: list[Record]) -> Batch:

    return decode_batch(records)

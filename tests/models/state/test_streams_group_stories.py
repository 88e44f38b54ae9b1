"""Stories of KIP-1071 groups, written as records: each epoch is decided again as its coordinator did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import pytest

from caughtup.models.assignors.java.strings import in_hash_map_order
from caughtup.models.assignors.kafka.streams_group import BrokerRelease, MemberTasks, assign_sticky
from caughtup.models.decisions import streams_group_decision
from caughtup.models.ids import TaskId, TopicPartition
from caughtup.models.offsets import EndOffsets
from caughtup.models.polls.batch import Record
from caughtup.models.state.cluster import ClusterState
from caughtup.models.wire.record_keys import (
    NewGroupKey,
    RecordType,
    StreamsGroupKey,
    StreamsGroupMemberKey,
)
from caughtup.models.wire.streams_group_assignments import (
    StreamsGroupCurrentMemberAssignment,
    StreamsGroupTargetAssignmentMember,
    StreamsGroupTargetAssignmentMetadata,
    TaskIds,
)
from caughtup.models.wire.streams_group_records import (
    StreamsGroupMemberMetadata,
    StreamsGroupMetadata,
    StreamsGroupRecord,
)
from caughtup.models.wire.streams_group_topology import StreamsGroupTopology, Subtopology, TopicInfo
from tests.oracle.generated.coordinated_groups import CoordinatedGroup, generate_group
from tests.support.groups.coordinator import AT_MS, MemberTable, read
from tests.support.groups.new_group_encoders import new_group_key, new_group_record
from tests.support.sizes import daily

SEEDS = range(daily(6, 15))


class PlayedStreamsGroup:
    """A coordinator of a release that writes a generated group's rounds as records."""

    def __init__(self, story: CoordinatedGroup, release: BrokerRelease) -> None:
        self.story, self.release = story, release
        self.tasks = [
            TaskId(int(name), number)
            for name, (width, _) in story.subtopologies.items()
            for number in range(width)
        ]
        self.epoch, self.had = 0, dict[str, MemberTasks]()
        self.table, self.records = MemberTable(), list[Record]()

    def rounds(self) -> Iterator[list[Record]]:
        """Yield the records of each round; one member joins or leaves after the other before."""
        self._write(StreamsGroupKey(RecordType.STREAMS_GROUP_TOPOLOGY, "g"), self._topology())
        for members in self.story.rounds:
            for name in sorted(self.had.keys() - members.keys()):
                self._leave(name)
            for name in members:
                if name not in self.had:
                    self.table.add(name)
                    self._write(
                        self._member(name, RecordType.STREAMS_GROUP_MEMBER_METADATA),
                        StreamsGroupMemberMetadata(
                            None, None, "c", "/h", 1, 1, members[name], None, {}
                        ),
                    )
            self._assign(members)
            yield self.records
            self.records = []

    def _assign(self, members: Mapping[str, str]) -> None:
        self.epoch += 1
        configs = {"num.standby.replicas": str(self.story.standbys)}
        self._write(
            StreamsGroupKey(RecordType.STREAMS_GROUP_METADATA, "g"),
            StreamsGroupMetadata(self.epoch, 0, 1, configs, -1, -1),
        )
        before = {
            name: self.had.get(name, MemberTasks(members[name]))
            for name in in_hash_map_order(self.table)
        }
        stateful = {
            task for task in self.tasks if self.story.subtopologies[str(task.subtopology)][1]
        }
        decided = assign_sticky(before, self.tasks, stateful, self.story.standbys, self.release)
        for name, own in decided.items():
            if name not in self.had or own != self.had[name]:
                key = self._member(name, RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER)
                self._write(key, StreamsGroupTargetAssignmentMember(*_written(own), ()))
        self._write(
            StreamsGroupKey(RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA, "g"),
            StreamsGroupTargetAssignmentMetadata(self.epoch, AT_MS),
        )
        for name, own in decided.items():
            key = self._member(name, RecordType.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT)
            held = StreamsGroupCurrentMemberAssignment(
                self.epoch, self.epoch, 1, *_written(own), (), (), (), ()
            )
            self._write(key, held)
        self.had = decided

    def _leave(self, name: str) -> None:
        del self.had[name]
        self.table.remove(name)
        for record_type in (
            RecordType.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT,
            RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER,
            RecordType.STREAMS_GROUP_MEMBER_METADATA,
        ):
            self._write(self._member(name, record_type), None)

    def _topology(self) -> StreamsGroupTopology:
        return StreamsGroupTopology(
            1,
            tuple(
                Subtopology(
                    name,
                    (f"in-{name}",),
                    (),
                    (TopicInfo(f"store-{name}", 0, 0, {}),) if has_state else (),
                    (),
                    (),
                    (),
                )
                for name, (_, has_state) in self.story.subtopologies.items()
            ),
        )

    def _member(self, name: str, record_type: RecordType) -> StreamsGroupMemberKey:
        return StreamsGroupMemberKey(record_type, "g", name)

    def _write(self, key: NewGroupKey, value: StreamsGroupRecord | None) -> None:
        written = None if value is None else new_group_record(value)
        self.records.append((new_group_key(key), written))


def _written(own: MemberTasks) -> tuple[tuple[TaskIds, ...], tuple[TaskIds, ...]]:
    return _by_subtopology(own.active), _by_subtopology(own.standby)


def _by_subtopology(tasks: frozenset[TaskId] | object) -> tuple[TaskIds, ...]:
    numbers: dict[str, list[int]] = {}
    for task in sorted(tasks):  # type: ignore[call-overload]
        numbers.setdefault(str(task.subtopology), []).append(task.partition)
    return tuple(TaskIds(name, tuple(own)) for name, own in numbers.items())


def state_with_topics(story: CoordinatedGroup) -> ClusterState:
    state = ClusterState("c", {})
    for name, (width, _) in story.subtopologies.items():
        for number in range(width):
            state.apply_ends(TopicPartition(f"in-{name}", number), EndOffsets(0, 1, 1, AT_MS))
    return state


@pytest.mark.parametrize("most", [1 << 31, 3])
@pytest.mark.parametrize("release", list(BrokerRelease))
def test_every_epoch_of_a_story_matches(release: BrokerRelease, most: int) -> None:
    found: Counter[tuple[str, str]] = Counter()
    for seed in SEEDS:
        story = generate_group(seed)
        state = state_with_topics(story)
        for records in PlayedStreamsGroup(story, release).rounds():
            read(state, records, most)
        assert not state.faults.newest(), seed
        for kind, count in state.group_decisions.counts("g").items():
            found[kind.result, kind.client] += count
            if kind.result != "match":
                print(f"seed {seed}: {kind}, {state.group_decisions.last('g')}")
    print(f"{release}, {len(SEEDS)} stories: {dict(found)}")
    assert {result for result, _ in found} == {"match"}
    others = {f"group-coordinator {one.value}" for one in BrokerRelease if one is not release}
    assert not others & {client for _, client in found}


def test_a_group_whose_topics_are_not_there_yet_has_no_tasks() -> None:
    story = CoordinatedGroup(1, {"0": (4, True)}, 0, ({"a": "p"}, {"a": "p", "b": "q"}))
    played, state = PlayedStreamsGroup(story, BrokerRelease.V4_3), state_with_topics(story)
    tasks, played.tasks = played.tasks, []
    rounds = played.rounds()
    read(state, next(rounds))
    decision = state.group_decisions.last("g")
    assert decision is not None
    assert decision.result == "consistent"
    assert decision.why == "the coordinator knew 0 tasks of subtopology 0, which has 4"
    played.tasks = tasks
    read(state, next(rounds))
    decision = state.group_decisions.last("g")
    assert decision is not None
    assert decision.result == "match"


def test_a_group_that_is_too_large_is_undetermined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams_group_decision, "MOST_COPIES", 4_000)
    story = CoordinatedGroup(1, {"0": (2_001, True)}, 1, ({"a": "p", "b": "q"},))
    state = state_with_topics(story)
    for records in PlayedStreamsGroup(story, BrokerRelease.V4_3).rounds():
        read(state, records)
    decision = state.group_decisions.last("g")
    assert decision is not None
    assert (decision.result, decision.why) == ("undetermined", "the group is too large")


def test_tasks_that_neither_release_assigns_are_a_mismatch_without_state_alone() -> None:
    for has_state, result in ((False, "mismatch"), (True, "undetermined")):
        rounds = ({"a": "p"}, {"a": "p", "b": "q"})
        story = CoordinatedGroup(1, {"0": (4, has_state)}, 0, rounds)
        played, state = PlayedStreamsGroup(story, BrokerRelease.V4_3), state_with_topics(story)
        target = int(RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER).to_bytes(2)
        for number, records in enumerate(played.rounds()):
            if number:
                keys = [key for key, _ in records if key is not None and key[:2] == target]
                values = dict(records)
                swapped = dict(zip(keys, [values[key] for key in reversed(keys)], strict=True))
                read(state, [(key, swapped.get(key or b"", value)) for key, value in records])
            else:
                read(state, records)
        decision = state.group_decisions.last("g")
        assert decision is not None
        assert (decision.result, bool(decision.why)) == (result, True)


def test_standbys_that_cannot_be_read_leave_it_open() -> None:
    story = CoordinatedGroup(1, {"0": (4, True)}, 0, ({"a": "p"}, {"a": "p", "b": "q"}))
    played, state = PlayedStreamsGroup(story, BrokerRelease.V4_3), state_with_topics(story)
    rounds = played.rounds()
    metadata = StreamsGroupMetadata(1, 0, 1, {"num.standby.replicas": "-1"}, -1, -1)
    key = new_group_key(StreamsGroupKey(RecordType.STREAMS_GROUP_METADATA, "g"))
    read(
        state,
        [(one, new_group_record(metadata) if one == key else value) for one, value in next(rounds)],
    )
    decision = state.group_decisions.last("g")
    assert decision is not None
    assert (decision.result, decision.why) == (
        "undetermined",
        "num.standby.replicas can't be read",
    )
    read(state, next(rounds))
    decision = state.group_decisions.last("g")
    assert decision is not None
    assert decision.result == "match"

"""The last decision of each group's assignor, compared with what it decides again.

A group on the new protocols is compared when the record that completes a target assignment was
applied, a classic one when a generation was.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import NamedTuple, TypeVar

from caughtup.models.decisions.consumer_decision import (
    ComparedGeneration,
    ConsumerDecision,
    compare_generation,
)
from caughtup.models.decisions.coordinator_decision import (
    NO_NAME,
    ComparedEpoch,
    ConsumerEpoch,
    coordinator_decision,
)
from caughtup.models.decisions.streams_group_decision import StreamsEpoch, streams_group_decision
from caughtup.models.decisions.targets_before import (
    Coordinated,
    TargetsBefore,
    apply_targets,
)
from caughtup.models.faults import Faults
from caughtup.models.groups.generation import group_type
from caughtup.models.groups.table import GroupTable, TopicNames
from caughtup.models.histories.end_offset_table import EndOffsetTable
from caughtup.models.polls.batch import Batch
from caughtup.models.records.fields import changed, or_none
from caughtup.models.records.recommendations import Result
from caughtup.models.wire.consumer_group_records import ConsumerGroupTargetAssignmentMember
from caughtup.models.wire.group_metadata import GroupMetadata
from caughtup.models.wire.record_keys import ConsumerGroupKey, RecordType, StreamsGroupKey
from caughtup.models.wire.streams_group_assignments import StreamsGroupTargetAssignmentMember

T = TypeVar("T")

#: A generation that was compared, or the error while that was done.
ReadDecision = ComparedGeneration | Exception
#: The records of which a coordinator's assignment doesn't depend.
_NO_INPUTS = frozenset(
    {
        RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT,
        RecordType.CONSUMER_GROUP_PARTITION_METADATA,
        RecordType.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT,
        RecordType.STREAMS_GROUP_PARTITION_METADATA,
    }
)
_CONSUMER_EPOCH = RecordType.CONSUMER_GROUP_METADATA
_STREAMS_EPOCH = RecordType.STREAMS_GROUP_METADATA
_CONSUMER_COMPLETE = RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA
_STREAMS_COMPLETE = RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA
_CONVERTED = "the group was on another protocol before"
#: How long (ms) a decision waits for a topic's name or its partitions.
_PATIENCE_MS = 60_000
#: Generations of more partitions are not compared by the thread that reads the log.
_MOST_PARTITIONS = 10_000
#: Epochs of more partitions or copies of tasks are decided again later, and the most that wait.
AT_ONCE, MOST_LATER = 1_000, 200
#: The most kinds of decisions of one group that are counted apart.
_MOST_KINDS = 32


class DecisionKind(NamedTuple):
    """What decisions are counted by."""

    assignor: str
    client: str
    result: Result


class _Waiting(NamedTuple):
    epoch: ConsumerEpoch | StreamsEpoch
    decided: ComparedEpoch
    since_ms: int


class LargeEpoch(NamedTuple):
    """An epoch of a large group. ``decide`` decides it again, for which any thread may call it."""

    group: str
    epoch: ConsumerEpoch | StreamsEpoch
    decide: Callable[[], ComparedEpoch]


class _Last(NamedTuple):
    generation: int
    decision: ConsumerDecision


def compare_classic_groups(groups: Mapping[str, GroupMetadata | None]) -> dict[str, ReadDecision]:
    """Compare the generations of consumers in a batch, which takes long for large groups."""
    return {
        group: _compared(metadata)
        for group, metadata in sorted(groups.items())
        if metadata is not None
        and metadata.members
        and metadata.protocol
        and metadata.protocol_type == "consumer"
        and group_type(metadata) == "classic"
    }


def _compared(metadata: GroupMetadata) -> ReadDecision:
    try:
        return compare_generation(metadata, most=_MOST_PARTITIONS)
    except Exception as error:  # noqa: BLE001 - it is reported where the group is applied
        return error


class GroupDecisions:
    """The last decision of each group that was decided while it was watched, and how many there were."""

    def __init__(
        self, groups: GroupTable, topics: TopicNames, ends: EndOffsetTable, faults: Faults
    ) -> None:
        self._groups, self._topics, self._ends, self._faults = groups, topics, ends, faults
        self._consumer: dict[str, TargetsBefore[ConsumerGroupTargetAssignmentMember]] = {}
        self._streams: dict[str, TargetsBefore[StreamsGroupTargetAssignmentMember]] = {}
        self._last: dict[str, _Last] = {}
        self._kinds: dict[str, Counter[DecisionKind]] = {}
        self._waiting: dict[str, _Waiting] = {}
        self._large: deque[LargeEpoch] = deque()
        self._next_assignors: dict[str, str] = {}

    def before(self, batch: Batch, only: frozenset[str] | None) -> frozenset[str]:
        """Note what has to be known of groups before a batch is applied.

        Return the classic groups of the batch that are on another protocol. ``only``: of no other
        groups; of these it isn't known whether they existed. None for all.
        """
        converted = {
            group
            for group in batch.groups
            if group in self._groups.consumer or group in self._groups.streams
        }
        for group in _touched(batch, only, new=False):
            self._begin(self._consumer, group, self._groups.consumer.get(group), batch, only)
        for group in _touched(batch, only, new=True):
            self._begin(self._streams, group, self._groups.streams.get(group), batch, only)
        return frozenset(converted)

    def _begin(
        self,
        table: dict[str, TargetsBefore[T]],
        group: str,
        found: Coordinated[T] | None,
        batch: Batch,
        only: frozenset[str] | None,
    ) -> None:
        """Note the target assignment of a group that is touched for the first time."""
        if group in table:
            return
        if found is not None:
            table[group] = TargetsBefore.of(found)
        elif group in self._groups.classic or group in batch.groups:
            table[group] = TargetsBefore(known=False, why=_CONVERTED)
        else:  # it has certainly not been there if all groups are known
            table[group] = TargetsBefore(known=only is None)

    def compare(
        self,
        batch: Batch,
        only: frozenset[str] | None,
        classic: Mapping[str, ReadDecision],
        converted: Collection[str],
        now_ms: int,
    ) -> None:
        """Compare what was decided in a batch that was applied. ``converted`` is from ``before``.

        With ``only``, large groups are compared at once, too, otherwise by ``take_large``.
        """
        at_once = only is not None
        for group in sorted(_touched(batch, only, new=False)):
            with self._faults.isolated("decisions", group, now_ms, partial(self._doubted, group)):
                self._compare_consumer(group, batch, now_ms, at_once=at_once)
        for group in sorted(_touched(batch, only, new=True)):
            with self._faults.isolated("decisions", group, now_ms, partial(self._doubted, group)):
                self._compare_streams(group, batch, now_ms, at_once=at_once)
        for group, found in classic.items():
            if group in self._groups.classic and (only is None or group in only):
                with self._faults.isolated("decisions", group, now_ms):
                    self._compare_classic(group, found, is_converted=group in converted)
        for group, waiting in list(self._waiting.items()):
            if now_ms - waiting.since_ms > _PATIENCE_MS:
                self._settle(group)

    def _doubted(self, group: str, _: Exception) -> None:
        self.doubt(group)

    def doubt(self, group: str) -> None:
        """Take a group's target assignment before for unknown, since a record was not applied."""
        for table in (self._consumer, self._streams):
            if group in table:
                table[group] = TargetsBefore(known=False)

    def _compare_consumer(self, group: str, batch: Batch, now_ms: int, *, at_once: bool) -> None:
        found, records = self._groups.consumer.get(group), batch.consumer_group_records
        is_deleted = records.get(ConsumerGroupKey(_CONSUMER_EPOCH, group), True) is None
        complete = records.get(ConsumerGroupKey(_CONSUMER_COMPLETE, group))
        targets = apply_targets(self._consumer, group, found, is_deleted, complete is not None)
        if found is not None and targets is not None:
            before = targets.of_members(found)
            if before is None and not targets.why and len(found.members) == 1:
                before = {}  # it gets everything, whatever it had
            epoch = ConsumerEpoch.of(found, before, targets.why)
            targets.complete(found)
            self._decide(group, epoch, now_ms, at_once=at_once)

    def _compare_streams(self, group: str, batch: Batch, now_ms: int, *, at_once: bool) -> None:
        found, records = self._groups.streams.get(group), batch.streams_group_records
        is_deleted = records.get(StreamsGroupKey(_STREAMS_EPOCH, group), True) is None
        complete = records.get(StreamsGroupKey(_STREAMS_COMPLETE, group))
        targets = apply_targets(self._streams, group, found, is_deleted, complete is not None)
        if found is not None and targets is not None:
            epoch = StreamsEpoch.of(found, targets.of_members(found), targets.why)
            targets.complete(found)
            self._decide(group, epoch, now_ms, at_once=at_once)

    def _compare_classic(self, group: str, found: ReadDecision, *, is_converted: bool) -> None:
        if isinstance(found, Exception):
            raise found
        last = self._last.get(group)
        if last is not None and last.generation == found.generation and not is_converted:
            return
        decision = found.for_partitions(self._ends.partition_count)
        if is_converted:
            decision = changed(decision, result="undetermined", why=_CONVERTED)
        self._settle(group)
        self._last[group] = _Last(found.generation, decision)
        self._count(group, decision)

    def _decide(
        self,
        group: str,
        epoch: ConsumerEpoch | StreamsEpoch | None,
        now_ms: int,
        *,
        at_once: bool,
    ) -> None:
        if epoch is None or not epoch.members:
            return
        self._settle(group)
        if at_once or epoch.size <= AT_ONCE:
            self._note(group, epoch, self._decide_with(epoch)(), now_ms)
        elif len(self._large) < MOST_LATER:
            names, counts = self._topics.copy(), self._ends.partition_counts()
            self._large.append(LargeEpoch(group, epoch, self._decide_with(epoch, names, counts)))
        else:
            why = "too many large groups were assigned at the same time"
            self._note(group, epoch, epoch.undetermined(why), now_ms)

    def _decide_with(
        self,
        epoch: ConsumerEpoch | StreamsEpoch,
        names: TopicNames | None = None,
        counts: Mapping[str, int] | None = None,
    ) -> Callable[[], ComparedEpoch]:
        """Return what decides an epoch, with what is known of topics then, or with these copies."""
        count = self._ends.partition_count if counts is None else lambda topic: counts.get(topic, 0)
        if isinstance(epoch, StreamsEpoch):
            return partial(streams_group_decision, epoch, count)
        return partial(coordinator_decision, epoch, names or self._topics, count)

    def take_large(self) -> Iterator[LargeEpoch]:
        """Yield the epochs of large groups that wait, each to be decided and passed to ``apply_large``."""
        while self._large:
            yield self._large.popleft()

    def apply_large(self, one: LargeEpoch, decided: ComparedEpoch, now_ms: int) -> None:
        """Apply the decision of an epoch from ``take_large``, which may not be the group's last any more."""
        group, last = one.group, self._last.get(one.group)
        if last is not None and last.generation > one.epoch.epoch:
            self._count(group, decided.decision)
        elif group in self._groups.consumer or group in self._groups.streams:
            self._note(group, one.epoch, decided, now_ms)

    def _note(
        self, group: str, epoch: ConsumerEpoch | StreamsEpoch, decided: ComparedEpoch, now_ms: int
    ) -> None:
        self._last[group] = _Last(epoch.epoch, decided.decision)
        self._waiting[group] = _Waiting(epoch, decided, now_ms)
        if not decided.awaits:
            self._settle(group)

    def topic_changed(self, topic: str, now_ms: int) -> None:
        """Decide again what waits for a topic's name or partitions, once they are there."""
        for group in sorted(self._waiting):
            wanted = self._waiting[group].decided.awaits.get(topic)
            if wanted is not None and wanted in (NO_NAME, self._ends.partition_count(topic)):
                self._decide_again(group, now_ms)

    def names_changed(self, now_ms: int) -> None:
        """Decide again what waits for names of topics, some of which are new."""
        for group in sorted(self._waiting):
            if NO_NAME in self._waiting[group].decided.awaits.values():
                self._decide_again(group, now_ms)

    def _decide_again(self, group: str, now_ms: int) -> None:
        waiting = self._waiting[group]
        with self._faults.isolated("decisions", group, now_ms):
            decided = self._decide_with(waiting.epoch)()
            self._last[group] = _Last(waiting.epoch.epoch, decided.decision)
            self._waiting[group] = waiting._replace(decided=decided)
            if not decided.awaits:
                self._settle(group)

    def _settle(self, group: str) -> None:
        """Count a group's decision, which waits no longer."""
        waiting = self._waiting.pop(group, None)
        if waiting is not None:
            self._count(group, waiting.decided.decision)

    def _count(self, group: str, decision: ConsumerDecision) -> None:
        kinds = self._kinds.setdefault(group, Counter())
        kind = DecisionKind(
            decision.assignor[:80], or_none(decision.client) or "unknown", decision.result
        )
        if kind not in kinds and len(kinds) >= _MOST_KINDS:
            kind = DecisionKind("other", "unknown", decision.result)
        kinds[kind] += 1

    def last(self, group: str) -> ConsumerDecision | None:
        """Return the comparison of a group's last assignment; None if none was decided meanwhile."""
        known = self._last.get(group)
        return None if known is None else known.decision

    def counts(self, group: str) -> Mapping[DecisionKind, int]:
        """Return how many decisions of a group there were of each kind."""
        return self._kinds.get(group, {})

    def apply_next_assignor(self, group: str, name: str | None) -> None:
        """Apply what a group's coordinator says it assigns by next; None if it doesn't say."""
        if name is None:
            self._next_assignors.pop(group, None)
        else:
            self._next_assignors[group] = name

    def next_assignor(self, group: str) -> str | None:
        """Return the assignor by which a group's coordinator says it assigns next.

        Empty if it names none, None if the group's leader assigns.
        """
        if group in self._groups.consumer or group in self._groups.streams:
            return self._next_assignors.get(group, "")
        return None

    def keep_only(self, groups: Collection[str]) -> None:
        """Remove groups that are gone."""
        tables = (self._consumer, self._streams, self._last, self._kinds, self._waiting)
        for table in (*tables, self._next_assignors):
            for group in table.keys() - groups:
                del table[group]


def _touched(batch: Batch, only: frozenset[str] | None, *, new: bool) -> Iterator[str]:
    keys = batch.streams_group_records if new else batch.consumer_group_records
    groups = {key.group for key in keys if key.record_type not in _NO_INPUTS}
    return iter(sorted(groups if only is None else groups & only))

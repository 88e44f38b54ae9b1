"""Whether a consumer group's target assignment (KIP-848) is what the coordinator's assignor decides.

The assignor sees the target assignment before, the members' subscriptions, and the partitions of
their topics. All of that is in the group's records, except for the topics' names and the order of
members in the coordinator's hash tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from caughtup.models.assignors.consumer.group import Assign, ConsumerGroupSpec, ConsumerMember
from caughtup.models.assignors.consumer.ranges import assign_coordinator_range
from caughtup.models.assignors.consumer.uniform import assign_uniform, in_hash_set_order_of
from caughtup.models.assignors.java.hash_map import copied_table
from caughtup.models.assignors.java.strings import in_hash_set_order
from caughtup.models.assignors.java.timeline_map import is_order_certain, orders_of_members
from caughtup.models.assignors.java.uuids import uuid_order, uuids_in_hash_order
from caughtup.models.decisions.consumer_decision import ConsumerDecision, differences
from caughtup.models.errors import CaughtupError
from caughtup.models.groups.consumer import ConsumerGroup
from caughtup.models.groups.table import TopicNames
from caughtup.models.ids import TopicPartition, partition_counts
from caughtup.models.records.recommendations import Result
from caughtup.models.wire.consumer_group_records import (
    ConsumerGroupMemberMetadata,
    ConsumerGroupTargetAssignmentMember,
)

COORDINATOR = "group-coordinator"
UNIFORM, RANGE = "uniform", "range"
#: A larger group isn't decided again; of a large one fewer orders are tried.
MOST_PARTITIONS = 100_000
_MOST_TRIED, _MOST_ORDERS = 10_000, 12
#: Instead of a number of partitions: a topic's name is awaited.
NO_NAME = -1
Target = ConsumerGroupTargetAssignmentMember


@dataclass(frozen=True, slots=True)
class ConsumerEpoch:
    """A target assignment, and what the coordinator computed it by.

    ``before`` has the previous target assignment, of each member or of the member whose static
    successor it is; None if that isn't known, because of ``unknown``. ``topics`` are those of the
    members' subscriptions and of their regular expressions, of which one is ``unresolved`` if its
    topics are not known. ``asked`` is the assignor that members ask for. ``at_ms`` is 0 before 4.3.
    ``group_epoch`` is the group's when the target assignment was complete.
    """

    epoch: int
    group_epoch: int | None
    at_ms: int
    asked: str | None
    members: Mapping[str, ConsumerGroupMemberMetadata]
    topics: Mapping[str, tuple[str, ...]]
    target: Mapping[str, Target]
    before: Mapping[str, Target] | None
    unknown: str = ""
    unresolved: bool = False

    def undetermined(self, why: str) -> ComparedEpoch:
        """Return that it isn't known whether the coordinator's assignor decides so, and why."""
        return ComparedEpoch(_told(self.asked or UNIFORM, "undetermined", why))

    @property
    def size(self) -> int:
        """The number of assigned partitions."""
        return sum(
            len(held.partitions) for own in self.target.values() for held in own.topic_partitions
        )

    @classmethod
    def of(
        cls, group: ConsumerGroup, before: Mapping[str, Target] | None, unknown: str = ""
    ) -> ConsumerEpoch | None:
        """Return the group's last target assignment, None if it has none."""
        if group.target_of is None:
            return None
        asks = any(one.server_assignor for one in group.members.values())
        return cls(
            group.target_of.assignment_epoch,
            group.epoch,
            group.target_of.assignment_timestamp_ms,
            group.assignor() if asks else None,
            dict(group.members),
            group.topics_of(),
            dict(group.target),
            before,
            unknown,
            any(
                one.subscribed_topic_regex
                and one.subscribed_topic_regex not in group.regular_expressions
                for one in group.members.values()
            ),
        )


@dataclass(frozen=True, slots=True)
class ComparedEpoch:
    """A target assignment that was compared: again once a topic of ``awaits`` has its name or size."""

    decision: ConsumerDecision
    awaits: Mapping[str, int] = field(default_factory=dict)


def coordinator_decision(
    one: ConsumerEpoch, topics: TopicNames, partitions: Callable[[str], int]
) -> ComparedEpoch:
    """Compare a target assignment with what the coordinator's assignor decides.

    ``partitions`` returns how many a topic has, 0 if that is not known.
    """
    topic_names, ids = topics.names, topics.ids
    asked = one.asked or UNIFORM
    if (why := missing_records(one)) is not None:
        return one.undetermined(why)
    read = {topic for own in one.topics.values() for topic in own}
    assigned = {held.topic_id for own in one.target.values() for held in own.topic_partitions}
    if unnamed := len(assigned - topic_names.keys()):
        why = f"the names of {unnamed} assigned topics are not known"
        if unnamed == 1:
            why = "the name of an assigned topic is not known"
        return ComparedEpoch(
            _told(asked, "undetermined", why),
            {name: NO_NAME for name in sorted(read) if ids.get(name) not in assigned},
        )
    actual = {name: set(_named(own, topic_names)) for name, own in one.target.items()}
    counts = _counts(actual, read)
    size = sum(counts.values())
    if size > MOST_PARTITIONS:
        return one.undetermined("the group is too large")
    tried = [asked] if one.asked else [UNIFORM, RANGE]
    differs, complete = "", True
    for assignor in tried:
        if assignor not in (UNIFORM, RANGE):
            why = f"the assignor {assignor!r:.80} is not reproduced"
            return ComparedEpoch(_told(assignor, "undetermined", why))
        for number, group in enumerate(_groups(one, counts, ids, topic_names)):
            if number and (
                assignor == RANGE or number >= min(_MOST_ORDERS, _MOST_TRIED // max(size, 1))
            ):
                complete = complete and assignor == RANGE
                break
            try:
                decided = {name: set(own) for name, own in _assign(one, assignor)(group).items()}
            except CaughtupError as error:
                differs = differs or error.message
                continue
            if decided == actual:
                return _matched(assignor, counts, partitions)
            differs = differs or differences(decided, actual)
    return ComparedEpoch(_told(asked, *_mismatch(one, tried, differs, complete=complete)))


class _Epoch(Protocol):
    """What both kinds of epochs have: see ConsumerEpoch."""

    @property
    def epoch(self) -> int: ...
    @property
    def group_epoch(self) -> int | None: ...
    @property
    def members(self) -> Mapping[str, object]: ...
    @property
    def target(self) -> Mapping[str, object]: ...
    @property
    def before(self) -> Mapping[str, object] | None: ...
    @property
    def unknown(self) -> str: ...


def missing_records(one: _Epoch) -> str | None:
    """Return which records are missing to decide again, None if none are."""
    if one.before is None:
        return one.unknown or "the target assignment before is not known"
    if one.group_epoch != one.epoch:
        return f"the group's epoch is {one.group_epoch}, that of its target assignment {one.epoch}"
    if not one.members:
        return "the records of its members are not known"
    if one.target.keys() != one.members.keys():
        lacks = sorted(one.members.keys() - one.target.keys())
        if lacks:
            return f"the target assignment of {lacks[0]} is not known"
        return f"the record of {min(one.target.keys() - one.members.keys())} is not known"
    return None


def _matched(
    assignor: str, counts: Mapping[str, int], partitions: Callable[[str], int]
) -> ComparedEpoch:
    """Return a match, or what the coordinator knew otherwise of the topics' partitions."""
    other = {topic: count for topic, count in sorted(counts.items()) if partitions(topic) != count}
    if not other:
        return ComparedEpoch(_told(assignor, "match"))
    first, count = next(iter(other.items()))
    has = partitions(first) or "none that is known"
    why = f"the coordinator knew {count} partitions of {first}, which has {has}"
    return ComparedEpoch(_told(assignor, "consistent", why), other)


def _mismatch(
    one: ConsumerEpoch, tried: list[str], differs: str, *, complete: bool
) -> tuple[Result, str]:
    """Return whether it is certain that the assignors which were tried decide otherwise."""
    if one.unresolved:
        return "undetermined", "the topics of a regular expression are not known"
    if any(member.rack_id for member in one.members.values()):
        return "undetermined", "members have racks, and the replicas' are not known"
    if UNIFORM in tried and not one.at_ms:
        return "undetermined", "brokers before 4.3 may decide otherwise"
    if UNIFORM in tried and not (complete and is_order_certain(list(one.members))):
        return "undetermined", "the order in which the coordinator has the members is not known"
    return "mismatch", differs


def _assign(one: ConsumerEpoch, assignor: str) -> Assign:
    if assignor == RANGE:
        return assign_coordinator_range
    return partial(assign_uniform, homogeneous=_is_homogeneous(one))


def _is_homogeneous(one: ConsumerEpoch) -> bool:
    """Return whether the coordinator takes the subscriptions for equal.

    Source: ConsumerGroup.subscriptionType of the group coordinator 4.3.1.
    """
    patterns = {member.subscribed_topic_regex or "" for member in one.members.values()}
    names = Counter(
        name for member in one.members.values() for name in set(member.subscribed_topic_names)
    )
    if patterns == {""}:
        return all(count == len(one.members) for count in names.values())
    return len(patterns) == 1 and not names


def _counts(actual: Mapping[str, set[TopicPartition]], read: set[str]) -> dict[str, int]:
    """Return how many partitions of each topic the coordinator knew: all are assigned."""
    known = partition_counts(partition for own in actual.values() for partition in own)
    return dict.fromkeys(sorted(read), 0) | known


def _groups(
    one: ConsumerEpoch,
    counts: Mapping[str, int],
    ids: Mapping[str, bytes],
    topic_names: Mapping[bytes, str],
) -> Iterator[ConsumerGroupSpec]:
    """Yield the group with its members in each order in which the assignor may get them."""
    before = one.before or {}
    topics = {
        topic_names[topic_id]: counts[topic_names[topic_id]]
        for topic_id in _in_order(
            one, [ids[topic] for topic, n in counts.items() if n], topic_names
        )
    }
    members = {
        name: ConsumerMember(
            one.topics[name],
            member.instance_id,
            owned=_owned(before[name], topic_names) if name in before else (),
        )
        for name, member in one.members.items()
    }
    for order in orders_of_members(list(members), members.keys() - before.keys()):
        yield ConsumerGroupSpec({name: members[name] for name in order}, topics)


def _in_order(
    one: ConsumerEpoch, topics: list[bytes], topic_names: Mapping[bytes, str]
) -> list[bytes]:
    """Return topics in the order of the assignor's table of them.

    Source: UniformHomogeneousAssignmentBuilder and UniformHeterogeneousAssignmentBuilder.
    """
    if not _is_homogeneous(one):
        return sorted(topics, key=uuid_order)
    by_name = {topic_names[topic]: topic for topic in topics}
    names = in_hash_set_order(list(next(iter(one.topics.values()))))
    found = [by_name[name] for name in names if name in by_name]
    return uuids_in_hash_order(found, copied_table(len(names)))


def _owned(target: Target, topic_names: Mapping[bytes, str]) -> list[TopicPartition]:
    """Return a member's partitions in the order in which the assignor reads them."""
    numbers = {held.topic_id: held.partitions for held in target.topic_partitions}
    return [
        TopicPartition(topic_names[topic_id], number)
        for topic_id in uuids_in_hash_order(numbers)
        if topic_id in topic_names
        for number in in_hash_set_order_of(numbers[topic_id])
    ]


def _named(target: Target, topic_names: Mapping[bytes, str]) -> Iterator[TopicPartition]:
    for held in target.topic_partitions:
        for number in held.partitions:
            yield TopicPartition(topic_names[held.topic_id], number)


def _told(assignor: str, result: Result, why: str = "") -> ConsumerDecision:
    return ConsumerDecision(assignor, result, COORDINATOR, why=why)

"""Who decided the assignment of a classic consumer group, and whether as that client's assignor does.

The record of a generation has every member's subscription and assignment, which tell the client of
the leader apart: each library writes them in its own way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from caughtup.models.assignors.consumer.aiokafka_sticky import assign_aiokafka_sticky
from caughtup.models.assignors.consumer.choices import Choices, EveryChoice
from caughtup.models.assignors.consumer.group import (
    Assign,
    Assignment,
    ConsumerGroupSpec,
    ConsumerMember,
)
from caughtup.models.assignors.consumer.librdkafka_sticky import assign_librdkafka_sticky
from caughtup.models.assignors.consumer.ranges import assign_librdkafka_range, assign_range
from caughtup.models.assignors.consumer.round_robin import (
    assign_librdkafka_round_robin,
    assign_round_robin,
)
from caughtup.models.assignors.consumer.sticky import assign_cooperative_sticky, assign_sticky
from caughtup.models.assignors.java.strings import in_hash_map_order
from caughtup.models.errors import CaughtupError, DecodeError
from caughtup.models.ids import TaskId, TopicPartition, partition_counts
from caughtup.models.records.fields import ABSENT, Absent, Part, changed, or_absent
from caughtup.models.records.recommendations import Result
from caughtup.models.wire.bounds import partition
from caughtup.models.wire.group_metadata import (
    ConsumerAssignment,
    ConsumerSubscription,
    GroupMetadata,
    decode_assignment,
    decode_subscription,
)
from caughtup.models.wire.reader import Reader

JAVA, LIBRDKAFKA, AIOKAFKA = "kafka-clients", "librdkafka", "aiokafka"
_Choosing = Callable[[ConsumerGroupSpec, Choices], Assignment]


def _without_choice(assign: Assign) -> _Choosing:
    return lambda group, _: assign(group)


#: The assignors that are reproduced, by client and by the protocol's name in the group's record.
#: aiokafka's range and round-robin are Java's, but know no static members.
_ASSIGNORS: Mapping[str, Mapping[str, _Choosing]] = {
    JAVA: {
        "range": _without_choice(assign_range),
        "roundrobin": _without_choice(assign_round_robin),
        "sticky": _without_choice(assign_sticky),
        "cooperative-sticky": _without_choice(assign_cooperative_sticky),
    },
    LIBRDKAFKA: {
        "range": _without_choice(assign_librdkafka_range),
        "roundrobin": _without_choice(assign_librdkafka_round_robin),
        "cooperative-sticky": assign_librdkafka_sticky,
    },
    AIOKAFKA: {
        "range": _without_choice(assign_range),
        "roundrobin": _without_choice(assign_round_robin),
        "sticky": assign_aiokafka_sticky,
    },
}
#: What the choices of an assignor are, in words.
_CHOICES = {
    LIBRDKAFKA: "the order of topics in a broker's metadata",
    AIOKAFKA: "the order of sets in the leader's process",
}
#: Decisions by other choices are made until this many partitions were assigned.
_MOST_TRIED, _MOST_CHOICES = 200_000, 200
#: In a larger group a decision could take too long.
_MOST_PARTITIONS = 100_000
_MOST_NAMED = 3
_TOPIC_BYTES, _PARTITION_BYTES = 6, 4


class ConsumerDecision(Part, omit_defaults=True):
    """A comparison of an assignment with what the assignor of the leader's client decides.

    ``client`` is the library of the leader, absent if it is none of those that are known; ``leader``
    its ``client.id``. ``why`` explains every result but a match.
    """

    assignor: str
    result: Result
    client: str | Absent = ABSENT
    leader: str | Absent = ABSENT
    why: str = ""


@dataclass(frozen=True, slots=True)
class ComparedGeneration:
    """A generation and its comparison; ``counts`` are the partitions of each topic that its leader knew."""

    generation: int
    decision: ConsumerDecision
    counts: Mapping[str, int] = field(default_factory=dict)

    def for_partitions(self, partitions: Callable[[str], int]) -> ConsumerDecision:
        """Return the decision, given how many partitions a topic has now, 0 if that is not known.

        A match is only consistent if the leader knew another number.
        """
        if self.decision.result != "match":
            return self.decision
        for topic, count in self.counts.items():
            if (has := partitions(topic)) not in (0, count):
                why = f"the leader knew {count} partitions of {topic}, which has {has}"
                return changed(self.decision, result="consistent", why=why)
        return self.decision


@dataclass(frozen=True, slots=True)
class _Member:
    """A member as the record has it."""

    instance_id: str | None
    subscription: ConsumerSubscription
    assignment: ConsumerAssignment


def consumer_decision(
    metadata: GroupMetadata,
    partitions: Mapping[str, int],
    racks: Mapping[str, Sequence[AbstractSet[str]]] | None = None,
) -> ConsumerDecision:
    """Return who decided a classic consumer group's generation, compared with what it decides.

    ``partitions``: how many each topic has now; ``racks``: those of each partition's replicas, None
    if they are unknown. The group's protocol type is ``consumer``.
    """
    return compare_generation(metadata, racks).for_partitions(
        lambda topic: partitions.get(topic, 0)
    )


def compare_generation(
    metadata: GroupMetadata,
    racks: Mapping[str, Sequence[AbstractSet[str]]] | None = None,
    most: int = _MOST_PARTITIONS,
) -> ComparedGeneration:
    """Compare a generation as ``consumer_decision`` does, but for the topics' partitions now.

    That takes the longest, and may be done on any thread. ``most``: of a group with more assigned
    partitions the result is undetermined.
    """
    assignor, leader = metadata.protocol or "", metadata.by_id().get(metadata.leader or "")
    name = None if leader is None else leader.client_id
    try:
        members = {
            one.member_id: _Member(
                one.group_instance_id,
                decode_subscription(one.subscription),
                decode_assignment(one.assignment),
            )
            for one in metadata.by_id().values()
        }
    except DecodeError as error:
        why = f"a member's record can't be read: {error.message}"
        return ComparedGeneration(
            metadata.generation,
            ConsumerDecision(assignor, "undetermined", leader=or_absent(name), why=why),
        )
    client = _client(members.get(metadata.leader or ""))

    counts = _counts(members)

    def found(result: Result, why: str = "") -> ComparedGeneration:
        decision = ConsumerDecision(assignor, result, or_absent(client), or_absent(name), why)
        return ComparedGeneration(metadata.generation, decision, counts)

    if client is None:
        return found("undetermined", "the leader's client is none that is known")
    assign = _ASSIGNORS[client].get(assignor)
    if assign is None:
        return found("undetermined", f"{client}'s assignor {assignor!r:.80} is not reproduced")
    actual = {name: set(one.assignment.partitions) for name, one in members.items()}
    if sum(counts.values()) > most:
        return found("undetermined", "the group is too large")
    consumers = {name: _consumer(one, assignor, client) for name, one in members.items()}
    order = in_hash_map_order(consumers) if client == JAVA else list(consumers)
    group = ConsumerGroupSpec({name: consumers[name] for name in order}, counts, racks or {})
    by_rack = any(one.rack for one in consumers.values())
    decided: list[Mapping[str, AbstractSet[TopicPartition]]] = []
    tried = EveryChoice(min(_MOST_CHOICES, 1 + _MOST_TRIED // (1 + sum(counts.values()))))
    try:
        for choices in tried:
            decided.append({name: set(own) for name, own in assign(group, choices).items()})
            if decided[-1] == actual:
                if choices.expected:
                    return found("match")
                return found(
                    "consistent", f"it depends on {_CHOICES[client]}, one of which explains it"
                )
    except CaughtupError as error:
        return found("undetermined", error.message)
    if by_rack and racks is None:
        return found("undetermined", "members have racks, and the replicas' are not known")
    if not tried.complete:
        return found("undetermined", f"it depends on {_CHOICES[client]}, and too many are possible")
    return found("mismatch", differences(decided[0], actual))


def _client(leader: _Member | None) -> str | None:
    """Return the leader's library, by how it writes its subscription and everybody's assignment.

    Java's client writes no user data into assignments, as null. librdkafka writes it empty, or as the
    member sent it, in version 0 of assignments, and has an empty rack where it has none; aiokafka
    has version 0 of everything.
    """
    if leader is None:
        return None
    subscription, assignment = leader.subscription, leader.assignment
    if assignment.user_data is None:
        return JAVA if subscription.version >= 1 else None
    if assignment.version == 0 and subscription.user_data is not None:
        if subscription.version == 0:
            return AIOKAFKA if assignment.user_data == b"" else None
        return None if subscription.rack is None else LIBRDKAFKA
    return None


def _counts(members: Mapping[str, _Member]) -> dict[str, int]:
    """Return how many partitions of each topic the leader knew: they are all assigned, or owned."""
    read = {topic for one in members.values() for topic in one.subscription.topics}
    counts = partition_counts(
        one
        for member in members.values()
        for one in (*member.assignment.partitions, *member.subscription.owned)
        if one.topic in read
    )
    return dict(sorted(counts.items()))


def _consumer(member: _Member, assignor: str, client: str) -> ConsumerMember:
    """Return a member as the leader's client sees it: librdkafka takes an empty rack for one."""
    subscription = member.subscription
    said = None if subscription.generation < 0 else subscription.generation
    owned, generation = subscription.owned, said
    if assignor == "sticky":
        owned, generation = _sticky_user_data(subscription.user_data)
        if client == AIOKAFKA and generation is None:
            owned = ()  # it reads no data without a generation
    elif (
        client == JAVA
        and assignor == "cooperative-sticky"
        and said is None
        and subscription.user_data is not None
    ):
        generation = _cooperative_user_data(subscription.user_data)
    rack = subscription.rack if client == LIBRDKAFKA else subscription.rack or None
    static = client != AIOKAFKA
    return ConsumerMember(
        subscription.topics,
        member.instance_id if static else None,
        rack if static else None,
        owned,
        generation,
        said,
    )


def _sticky_user_data(data: bytes | None) -> tuple[tuple[TopicPartition, ...], int | None]:
    """Return the partitions and the generation that a member of the sticky assignor had.

    Version 0 has no generation. Source: StickyAssignor.deserializeTopicPartitionAssignment.
    """
    if not data:
        return (), None
    try:
        reader = Reader(data)
        owned: list[TopicPartition] = []
        for _ in range(reader.array_length(_TOPIC_BYTES)):
            topic = reader.string()
            numbers = reader.array_length(_PARTITION_BYTES)
            owned += [TopicPartition(topic, partition(reader.int32())) for _ in range(numbers)]
    except DecodeError:
        return (), -1
    try:
        return tuple(owned), reader.int32()
    except DecodeError:
        return tuple(owned), None


def _cooperative_user_data(data: bytes) -> int:
    try:
        return Reader(data).int32()
    except DecodeError:
        return -1


def differences(
    decided: Mapping[str, AbstractSet[TopicPartition]],
    actual: Mapping[str, AbstractSet[TopicPartition]],
) -> str:
    """Return which members have other partitions than those decided, in words; the first few."""
    texts = [
        f"{name} has {some_of(actual[name] - own)}, not {some_of(own - actual[name])}"
        for name, own in sorted(decided.items())
        if own != actual[name]
    ]
    more = f"; and {len(texts) - _MOST_NAMED:,} members more" * (len(texts) > _MOST_NAMED)
    return "; ".join(texts[:_MOST_NAMED]) + more


def some_of(held: AbstractSet[TopicPartition] | AbstractSet[TaskId]) -> str:
    """Return the first few partitions or tasks, and the number of the others, in words."""
    named = sorted(held)[:_MOST_NAMED]
    more = len(held) - len(named)
    return ", ".join(map(str, named)) + f" and {more:,} more" * (more > 0) or "nothing"

"""A classic group's generation: its members, and for Kafka Streams, tasks and their copies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from caughtup.models.errors import CaughtupError, DecodeError
from caughtup.models.ids import ProcessId, TaskId, TopicPartition
from caughtup.models.offsets import LATEST_OFFSET
from caughtup.models.wire.connect_protocol import PROTOCOL_TYPE
from caughtup.models.wire.group_metadata import (
    ConsumerAssignment,
    GroupMember,
    GroupMetadata,
    decode_assignment,
    decode_subscription,
)
from caughtup.models.wire.user_data import (
    VERSIONS,
    AssignmentInfo,
    decode_assignment_info,
    decode_subscription_info,
)

#: The protocol name under which Kafka Streams joins a classic group.
STREAMS_PROTOCOL = "stream"
#: The protocol name of a follower in Python; its members' subscriptions have the same format.
FOLLOWERS_PROTOCOL = "caughtup"
STREAMS_PROTOCOLS = (STREAMS_PROTOCOL, FOLLOWERS_PROTOCOL)

#: Member id → the member's assignment, or the error in it.
Assignments = Mapping[str, ConsumerAssignment | DecodeError]


def decode_assignments(metadata: GroupMetadata) -> Assignments:
    """Return each member's decoded assignment; empty for groups without consumers."""
    if metadata.protocol_type != "consumer" and metadata.protocol not in STREAMS_PROTOCOLS:
        return {}
    return {
        member_id: _decode(member.assignment)
        for member_id, member in metadata.by_id().items()
        if member.assignment
    }


def _decode(assignment: bytes) -> ConsumerAssignment | DecodeError:
    try:
        return decode_assignment(assignment)
    except DecodeError as error:
        return error


def group_type(metadata: GroupMetadata) -> str:
    """Return the kind of a classic group: ``streams``, ``connect`` or ``classic``."""
    if metadata.protocol_type == PROTOCOL_TYPE:
        return "connect"
    return "streams" if metadata.protocol in STREAMS_PROTOCOLS else "classic"


def client_name(client_id: str) -> str:
    """Return an instance's ``client.id``, without the suffix of its stream thread."""
    return client_id.split("-StreamThread-")[0]


@dataclass(frozen=True, slots=True)
class StreamsMember:
    """One stream thread's consumer: its subscription and its assignment."""

    member_id: str
    client_id: str
    host: str
    process: ProcessId
    owned: tuple[TopicPartition, ...]
    offset_sums: dict[TaskId, int]
    client_tags: dict[str, str]
    rack: str | None
    assigned: tuple[TopicPartition, ...]
    assignment: AssignmentInfo | None
    #: From the group's record; the default is Kafka's.
    session_timeout_ms: int = 45_000
    latest_version: int = VERSIONS[-1]
    """The newest version of subscriptions that its release supports."""
    instance_id: str | None = None
    """Its ``group.instance.id``; None if it isn't static."""


@dataclass(frozen=True, slots=True)
class StreamsClient:
    """One Kafka Streams process: all its members."""

    process: ProcessId
    members: tuple[StreamsMember, ...]

    @property
    def capacity(self) -> int:
        """The number of stream threads, over which Kafka's assignors balance."""
        return len(self.members)

    @property
    def offset_sums(self) -> dict[TaskId, int]:
        """The process's reported offset sum of each task, in offsets or Kafka's sentinels."""
        return {task: s for member in self.members for task, s in member.offset_sums.items()}

    @property
    def name(self) -> str:
        """The instance's ``client.id``, without the thread's suffix."""
        return client_name(self.members[0].client_id)

    def active(self) -> set[TaskId]:
        """Return the actives that this generation assigned to the process."""
        return {t for m in self.members if m.assignment for t in m.assignment.active}

    def standby(self) -> set[TaskId]:
        """Return the standbys that this generation assigned to the process, warm-ups included."""
        return {t for m in self.members if m.assignment for t in m.assignment.standby}


@dataclass(frozen=True, slots=True)
class StreamsGeneration:
    """One completed generation of a classic Kafka Streams group."""

    group: str
    generation: int
    leader: str | None
    as_of_ms: int
    clients: dict[ProcessId, StreamsClient]
    source_topics: dict[str, int]
    """Source topic → subtopology, derived from the assignments."""
    skipped: tuple[str, ...] = field(default=())
    """Members with unreadable user data, with the reason."""
    arrival: tuple[str, ...] = field(default=())
    """Member ids in the order of the record, in which the coordinator sent them to the leader."""
    follows: bool = False
    """Whether its leader is certainly a follower, and no assignor of Kafka Streams."""

    @property
    def is_racked(self) -> bool:
        """Whether every member has a rack, without which Kafka doesn't assign by racks."""
        racks = [member.rack for member in self.members()]
        return bool(racks) and None not in racks

    def with_sources(self, known: dict[str, int]) -> StreamsGeneration:
        """Return the generation with source topics that are known from earlier ones."""
        return replace(self, source_topics=known | self.source_topics)

    def members(self) -> Iterable[StreamsMember]:
        """Yield every member, ordered by process and member id."""
        for process in sorted(self.clients):
            yield from self.clients[process].members

    def next_rebalance(self) -> tuple[int, StreamsMember] | None:
        """Return when the next rebalance is due (ms) and the member that will request it.

        Kafka writes 0 if it is due at once, that is, as soon as this generation begins.
        """
        due = [
            (member.assignment.next_rebalance_ms, member.member_id, member)
            for member in self.members()
            if member.assignment and member.assignment.next_rebalance_ms is not None
        ]
        if not due:
            return None
        earliest = min(due, key=lambda entry: entry[:2])
        return max(earliest[0], self.as_of_ms), earliest[2]

    def due_ms(self) -> int | None:
        """Return when the next rebalance is due (ms), None if no member has to request one."""
        due = self.next_rebalance()
        return None if due is None else due[0]

    def previous_active(self, client: StreamsClient) -> set[TaskId]:
        """Return the tasks that the process ran when it joined, by its partitions or its report."""
        owned = {task for member in client.members for task in self.tasks_of(member.owned)}
        return owned | {t for t, s in client.offset_sums.items() if s == LATEST_OFFSET}

    def tasks_of(self, partitions: Iterable[TopicPartition]) -> set[TaskId]:
        """Return the tasks that read these source partitions, if their topics are known."""
        return {
            TaskId(self.source_topics[p.topic], p.partition)
            for p in partitions
            if p.topic in self.source_topics
        }

    def sources(self, task: TaskId) -> list[TopicPartition]:
        """Return the source partitions that a task reads, sorted."""
        return [
            TopicPartition(topic, task.partition)
            for topic, subtopology in sorted(self.source_topics.items())
            if subtopology == task.subtopology
        ]

    def all_tasks(self) -> set[TaskId]:
        """Return every task of the application, also those held back from their next owner."""
        tasks: set[TaskId] = set()
        for member in self.members():
            tasks |= self.tasks_of(member.owned)
            if member.assignment is not None:
                tasks.update(member.assignment.active)
                tasks.update(member.assignment.standby)
        return tasks


def read_streams_generation(
    group: str,
    metadata: GroupMetadata,
    known_source_topics: dict[str, int],
    assignments: Assignments | None = None,
) -> StreamsGeneration | None:
    """Return a Streams group's generation from its metadata.

    ``known_source_topics`` (source topic → subtopology, from earlier generations) is needed if this
    generation holds back every partition of a topic. ``assignments`` are those of the metadata, if
    already decoded. Returns None for other groups and for records without members. An unreadable
    member is left out and listed in ``skipped``.
    """
    if metadata.protocol not in STREAMS_PROTOCOLS or not metadata.members:
        return None
    if assignments is None:
        assignments = decode_assignments(metadata)
    members: list[StreamsMember] = []
    skipped: list[str] = []
    for member in metadata.by_id().values():
        try:
            members.append(_read_member(member, assignments.get(member.member_id)))
        except CaughtupError as error:
            skipped.append(f"{member.member_id}: {error}")
    clients: dict[ProcessId, list[StreamsMember]] = {}
    for read in sorted(members, key=lambda m: m.member_id):
        clients.setdefault(read.process, []).append(read)
    return StreamsGeneration(
        group=group,
        generation=metadata.generation,
        leader=metadata.leader,
        as_of_ms=metadata.state_timestamp_ms,
        clients={p: StreamsClient(p, tuple(found)) for p, found in sorted(clients.items())},
        source_topics=known_source_topics | _source_topics(members),
        skipped=tuple(skipped),
        arrival=tuple(member.member_id for member in members),
        follows=metadata.protocol == FOLLOWERS_PROTOCOL,
    )


def _read_member(
    member: GroupMember, assignment: ConsumerAssignment | DecodeError | None
) -> StreamsMember:
    subscription = decode_subscription(member.subscription)
    if subscription.user_data is None:
        raise CaughtupError("no_user_data", "the subscription has no Kafka Streams user data")
    info = decode_subscription_info(subscription.user_data)
    assigned: tuple[TopicPartition, ...] = ()
    given: AssignmentInfo | None = None
    if isinstance(assignment, DecodeError):
        raise assignment
    if assignment is not None:
        assigned = assignment.partitions
        if assignment.user_data:
            given = decode_assignment_info(assignment.user_data)
    return StreamsMember(
        member_id=member.member_id,
        client_id=member.client_id,
        host=member.client_host,
        process=info.process_id,
        owned=subscription.owned,
        offset_sums=info.offset_sums,
        client_tags=info.client_tags,
        rack=subscription.rack,
        assigned=assigned,
        assignment=given,
        session_timeout_ms=member.session_timeout_ms,
        latest_version=max(info.version, info.latest_supported_version),
        instance_id=member.group_instance_id,
    )


def _source_topics(members: list[StreamsMember]) -> dict[str, int]:
    """Return source topic → subtopology: active tasks are in the order of their partitions."""
    found: dict[str, int] = {}
    for member in members:
        if member.assignment is None:
            continue
        for partition, task in zip(sorted(member.assigned), member.assignment.active, strict=False):
            found[partition.topic] = task.subtopology
        for task, partitions in member.assignment.standby.items():
            for partition in partitions:
                found[partition.topic] = task.subtopology
    return dict(sorted(found.items()))

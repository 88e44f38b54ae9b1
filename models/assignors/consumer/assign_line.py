"""A consumer group or a streams group on a line of ``caughtup assign``: parsed, decided, written."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from caughtup.models.assignment import fields
from caughtup.models.assignors.consumer.group import (
    Assign,
    Assignment,
    ConsumerGroupSpec,
    ConsumerMember,
)
from caughtup.models.assignors.consumer.ranges import assign_coordinator_range, assign_range
from caughtup.models.assignors.consumer.round_robin import assign_round_robin
from caughtup.models.assignors.consumer.sticky import assign_cooperative_sticky, assign_sticky
from caughtup.models.assignors.consumer.uniform import assign_uniform, in_target_order
from caughtup.models.assignors.java.strings import utf16
from caughtup.models.assignors.kafka.streams_group import MemberTasks
from caughtup.models.assignors.kafka.streams_group import assign_sticky as assign_streams_sticky
from caughtup.models.errors import ScenarioError
from caughtup.models.ids import NUMBER_MAX, TaskId, TopicPartition

#: The assignors of consumer groups, by the names on lines; the last two are the coordinator's.
CONSUMER_ASSIGNORS: Mapping[str, Assign] = {
    "range": assign_range,
    "roundrobin": assign_round_robin,
    "sticky": assign_sticky,
    "cooperative_sticky": assign_cooperative_sticky,
    "uniform": assign_uniform,
    "range_848": assign_coordinator_range,
}
STREAMS_STICKY = "streams_sticky"
#: More partitions, or tasks, than any group has: a line of a few bytes could ask for billions.
MOST_PARTITIONS = 1_000_000
_STANDBYS = "num.standby.replicas"
_INT_MAX = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class StreamsGroupSpec:
    """What the streams assignor is given: members, tasks, and the standbys of each stateful task."""

    members: Mapping[str, MemberTasks]
    tasks: tuple[TaskId, ...]
    stateful: frozenset[TaskId]
    standbys: int


def parse_consumer_group(line: object) -> tuple[Assign, ConsumerGroupSpec]:
    """Return the assignor and the consumer group of a line that was decoded from JSON.

    The members are in the order of their ids, topics and a member's partitions as written. Raises
    ScenarioError, whose message names the field: ``bad_field``, ``missing_field`` or ``no_members``.
    """
    data = fields.mapping(line, "the line")
    fields.optional_string(data.get("name"), "name")
    assignor = fields.required_string(data, "assignor", "")
    given = fields.required_mapping(data, "topics", "")
    topics: dict[str, int] = {}
    racks: dict[str, list[frozenset[str]]] = {}
    for name, value in given.items():
        place = f"topics.{name:.80}"
        topic = fields.mapping(value, place)
        count = fields.required(topic, "partitions", place)
        topics[name] = fields.integer(count, f"{place}.partitions", 0, MOST_PARTITIONS)
        if "racks" in topic:
            racks[name] = _racks(topic["racks"], topics[name], f"{place}.racks")
    _require_few(sum(topics.values()), "topics")
    members = _members(data)
    uniform = assignor == "uniform"
    read = {
        name: _member(value, topics, f"members.{name:.80}", in_order=uniform)
        for name, value in sorted(members.items(), key=lambda item: utf16(item[0]))
    }
    return CONSUMER_ASSIGNORS[assignor], ConsumerGroupSpec(read, topics, racks)


def consumer_group_json(assignment: Assignment) -> dict[str, object]:
    """Return a decision as ``caughtup assign`` prints it, without the line's name."""
    return {
        "members": {
            member: [[topic, number] for topic, number in sorted(own)]
            for member, own in sorted(assignment.items())
        }
    }


def parse_streams_group(line: object) -> StreamsGroupSpec:
    """Return the streams group of a line that was decoded from JSON, its members as written.

    Raises ScenarioError, whose message names the field: ``bad_field``, ``missing_field``,
    ``unknown_config``, ``unknown_task`` or ``no_members``.
    """
    data = fields.mapping(line, "the line")
    fields.optional_string(data.get("name"), "name")
    config = fields.mapping(data.get("config", {}), "config")
    for name in config:
        if name != _STANDBYS:
            raise ScenarioError("unknown_config", f"config: {name!r:.80} is not known")
    standbys = fields.integer(config.get(_STANDBYS, 0), f"config.{_STANDBYS}", 0, _INT_MAX)
    tasks: list[TaskId] = []
    stateful: set[TaskId] = set()
    for name, value in fields.required_mapping(data, "subtopologies", "").items():
        place = f"subtopologies.{name:.80}"
        number = name.isascii() and name.isdecimal() and len(name) <= len(str(NUMBER_MAX))
        if not number or str(int(name)) != name:
            raise ScenarioError("bad_field", f"{place}: is not a number such as 0")
        subtopology = fields.mapping(value, place)
        count = fields.required(subtopology, "tasks", place)
        width = fields.integer(count, f"{place}.tasks", 0, MOST_PARTITIONS)
        _require_few(len(tasks) + width, "subtopologies")
        own = [TaskId(int(name), number) for number in range(width)]
        tasks += own
        if _boolean(fields.required(subtopology, "stateful", place), f"{place}.stateful"):
            stateful.update(own)
    known = frozenset(tasks)
    members = {}
    for name, value in _members(data).items():
        place = f"members.{name:.80}"
        member = fields.mapping(value, place)
        members[name] = MemberTasks(
            fields.required_string(member, "process_id", place),
            _tasks(member.get("active", []), known, f"{place}.active"),
            _tasks(member.get("standby", []), known, f"{place}.standby"),
        )
    return StreamsGroupSpec(members, tuple(tasks), frozenset(stateful), standbys)


def decide_streams_group(group: StreamsGroupSpec) -> Mapping[str, MemberTasks]:
    """Return each member's tasks."""
    return assign_streams_sticky(group.members, group.tasks, group.stateful, group.standbys)


def streams_group_json(assignment: Mapping[str, MemberTasks]) -> dict[str, object]:
    """Return a decision as ``caughtup assign`` prints it, without the line's name."""
    return {
        "members": {
            member: {
                "active": list(map(str, sorted(own.active))),
                "standby": list(map(str, sorted(own.standby))),
                "warmup": [],  # neither 4.3.1's nor 4.4.0's coordinator warms up anything
            }
            for member, own in assignment.items()
        }
    }


def _members(data: Mapping[str, object]) -> Mapping[str, object]:
    members = fields.required_mapping(data, "members", "")
    if not members:
        raise ScenarioError("no_members", "members: there must be at least one")
    return members


def _member(
    value: object, topics: Mapping[str, int], place: str, *, in_order: bool
) -> ConsumerMember:
    member = fields.mapping(value, place)
    read = fields.array(fields.required(member, "topics", place), f"{place}.topics")
    owned = [
        _partition(one, f"{place}.owned")
        for one in fields.array(member.get("owned", []), f"{place}.owned")
    ]
    generation = member.get("generation")
    if generation is not None:
        generation = fields.integer(generation, f"{place}.generation", 0, _INT_MAX)
    return ConsumerMember(
        topics=tuple(fields.string(one, f"{place}.topics") for one in read),
        instance_id=fields.optional_string(member.get("instance_id"), f"{place}.instance_id"),
        rack=fields.optional_string(member.get("rack"), f"{place}.rack"),
        owned=in_target_order(topics, set(owned)) if in_order else owned,
        generation=generation,
        joined_generation=generation,
    )


def _partition(value: object, place: str) -> TopicPartition:
    pair = fields.array(value, place)
    if len(pair) != 2:
        raise ScenarioError("bad_field", f"{place}: a partition is a topic and a number")
    topic, number = pair
    return TopicPartition(fields.string(topic, place), fields.integer(number, place, 0, NUMBER_MAX))


def _racks(value: object, count: int, place: str) -> list[frozenset[str]]:
    of_each = fields.array(value, place)
    if len(of_each) != count:
        raise ScenarioError("bad_field", f"{place}: {len(of_each)} lists for {count} partitions")
    return [
        frozenset(fields.string(rack, place) for rack in fields.array(racks, place))
        for racks in of_each
    ]


def _tasks(value: object, known: AbstractSet[TaskId], place: str) -> frozenset[TaskId]:
    tasks = frozenset(fields.parse(TaskId.parse, one, place) for one in fields.array(value, place))
    for task in sorted(tasks - known):
        raise ScenarioError(
            "unknown_task", f"{place}: {task} is not among the subtopologies' tasks"
        )
    return tasks


def _boolean(value: object, place: str) -> bool:
    if not isinstance(value, bool):
        raise ScenarioError("bad_field", f"{place}: is neither true nor false")
    return value


def _require_few(count: int, place: str) -> None:
    if count > MOST_PARTITIONS:
        raise ScenarioError("bad_field", f"{place}: more than {MOST_PARTITIONS:,} partitions")

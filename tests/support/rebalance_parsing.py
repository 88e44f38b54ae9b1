"""Read a rebalance from JSON; errors name the field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from caughtup.models.assignment import fields
from caughtup.models.assignment.configs import read_configs
from caughtup.models.assignment.racks import read_replicas
from caughtup.models.assignors.registry import ASSIGNORS
from caughtup.models.errors import ScenarioError
from caughtup.models.ids import ProcessId, TaskId, TopicPartition
from caughtup.models.partition_assignor.member_assignment import parse_end_point
from caughtup.models.partition_assignor.rebalance import (
    LATEST_VERSION,
    MemberSubscription,
    Rebalance,
    TopicsInfo,
)

_INT_MAX = (1 << 31) - 1
_LONG_MIN, _LONG_MAX = -(1 << 63), (1 << 63) - 1
#: The first version of subscriptions with client tags.
_TAGS_FROM = 11
#: The first version of subscriptions with offset sums.
_SUMS_FROM = 7


def parse_rebalance(data: Mapping[str, Any]) -> Rebalance:
    """Read a rebalance as decoded from JSON.

    Raises ScenarioError, whose message names the field: ``bad_field``, ``missing_field``,
    ``unknown_config``, ``unsupported`` (another assignor) or ``no_members``.
    """
    root = fields.mapping(data, "the rebalance")
    assignor = fields.required_string(root, "assignor", "")
    if assignor not in ASSIGNORS:
        known = ", ".join(sorted(ASSIGNORS))
        raise ScenarioError("unsupported", f"assignor: {assignor!r:.80} is not among {known}")
    members = fields.required_mapping(root, "members", "")
    if not members:
        raise ScenarioError("no_members", "members: there must be at least one")
    return Rebalance(
        name=fields.optional_string(root.get("name"), "name"),
        assignor=assignor,
        configs=read_configs(fields.mapping(root.get("config", {}), "config")),
        now_ms=fields.integer(fields.required(root, "now_ms", ""), "now_ms", 0, _LONG_MAX),
        leader=fields.parse(ProcessId.parse, fields.required(root, "leader", ""), "leader"),
        subtopologies=_subtopologies(fields.required_mapping(root, "subtopologies", "")),
        partitions={
            topic: fields.integer(count, f"partitions.{topic}", 1, _INT_MAX)
            for topic, count in fields.required_mapping(root, "partitions", "").items()
        },
        new_topics=frozenset(_strings(root, "new_topics", "")),
        replicas=read_replicas(root),
        end_offsets=_offsets(root, "end_offsets"),
        committed=_offsets(root, "committed"),
        members=tuple(_member(member_id, value) for member_id, value in members.items()),
    )


def _subtopologies(given: Mapping[str, Any]) -> dict[int, TopicsInfo]:
    """Read the subtopologies; only one may read a topic, as in any Kafka topology."""
    subtopologies: dict[int, TopicsInfo] = {}
    readers: dict[str, str] = {}
    for text, value in given.items():
        place = f"subtopologies.{text:.80}"
        if (
            not (text.isascii() and text.isdigit())
            or int(text) > _INT_MAX
            or int(text) in (subtopologies)
        ):
            raise ScenarioError("bad_field", f"{place}: is not a number, or one given twice")
        topics = fields.mapping(value, place)
        from_sources = _strings(topics, "source_changelogs", place)
        sources = {
            *_strings(topics, "sources", place),
            *_strings(topics, "repartition_sources", place),
            *from_sources,
        }
        for topic in sorted(sources):
            if readers.setdefault(topic, text) != text:
                raise ScenarioError(
                    "bad_field", f"{place}: {topic:.80} is read by {readers[topic]}, too"
                )
        subtopologies[int(text)] = TopicsInfo(
            tuple(sorted(sources)), _strings(topics, "changelogs", place), from_sources
        )
    return subtopologies


def _member(member_id: str, value: object) -> MemberSubscription:
    place = f"members.{member_id:.80}"
    member = fields.mapping(value, place)
    version = fields.integer(
        member.get("version", LATEST_VERSION), f"{place}.version", _SUMS_FROM, LATEST_VERSION
    )
    end_point = fields.string(member.get("end_point", ""), f"{place}.end_point")
    try:
        host = parse_end_point(end_point)
    except ValueError as problem:
        raise ScenarioError("bad_field", f"{place}.end_point: {problem}") from problem
    tags = {
        key: fields.string(tag, f"{place}.tags.{key:.80}")
        for key, tag in fields.mapping(member.get("tags", {}), f"{place}.tags").items()
    }
    process = fields.required(member, "process", place)
    return MemberSubscription(
        member_id=member_id,
        process=fields.parse(ProcessId.parse, process, f"{place}.process"),
        owned=tuple(_owned(member, place)),
        offset_sums=_offset_sums(member, place),
        end_point=host,
        tags=tags if version >= _TAGS_FROM else {},
        rack=fields.optional_string(member.get("rack"), f"{place}.rack"),
        version=version,
    )


def _owned(member: Mapping[str, Any], place: str) -> list[TopicPartition]:
    place = f"{place}.owned"
    owned: list[TopicPartition] = []
    for pair in fields.array(member.get("owned", ()), place):
        if len(fields.array(pair, place)) != 2 or not isinstance(pair[0], str):
            raise ScenarioError("bad_field", f"{place}: {pair!r:.80} is not a topic and a number")
        owned.append(TopicPartition(pair[0], fields.integer(pair[1], place, 0, _INT_MAX)))
    return owned


def _offset_sums(member: Mapping[str, Any], place: str) -> dict[TaskId, int]:
    place = f"{place}.offset_sums"
    sums: dict[TaskId, int] = {}
    for text, value in fields.mapping(member.get("offset_sums", {}), place).items():
        task = fields.parse(TaskId.parse, text, place)
        if task in sums:
            raise ScenarioError("duplicate", f"{place}: {task} is given twice")
        sums[task] = fields.integer(value, f"{place}.{task}", _LONG_MIN, _LONG_MAX)
    return sums


def _offsets(root: Mapping[str, Any], field: str) -> dict[TopicPartition, int] | None:
    """Read offsets by partition; None if Kafka could not be asked."""
    given = fields.required(root, field, "")
    if given is None:
        return None
    offsets: dict[TopicPartition, int] = {}
    for text, value in fields.mapping(given, field).items():
        topic, _, number = text.rpartition("-")
        if not topic or not (number.isascii() and number.isdigit()):
            raise ScenarioError(
                "bad_field", f"{field}: {text!r:.80} is not a partition such as orders-3"
            )
        offset = fields.integer(value, f"{field}.{text:.80}", 0, _LONG_MAX)
        offsets[TopicPartition(topic, int(number))] = offset
    return offsets


def _strings(owner: Mapping[str, Any], field: str, place: str) -> tuple[str, ...]:
    place = f"{place}.{field}" if place else field
    return tuple(fields.string(one, place) for one in fields.array(owner.get(field, ()), place))

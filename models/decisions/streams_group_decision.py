"""Whether a streams group's target assignment (KIP-1071) is what the coordinator's assignor decides.

A coordinator of 4.3 assigns by the target assignment before, one of 4.4 by the members' current
assignments and by offsets that they report, which no record has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from caughtup.models.assignors.java.timeline_map import orders_of_members
from caughtup.models.assignors.kafka.streams_group import BrokerRelease, MemberTasks, assign_sticky
from caughtup.models.decisions.consumer_decision import ConsumerDecision, some_of
from caughtup.models.decisions.coordinator_decision import (
    COORDINATOR,
    ComparedEpoch,
    missing_records,
)
from caughtup.models.groups.streams import StreamsGroup, tasks_of
from caughtup.models.ids import TaskId
from caughtup.models.records.fields import or_absent
from caughtup.models.records.recommendations import Result
from caughtup.models.wire.streams_group_assignments import StreamsGroupTargetAssignmentMember

ASSIGNOR = "sticky"
_STANDBYS = "num.standby.replicas"
_MOST_STANDBYS, _MOST_ORDERS, _MOST_TRIED = 1_000, 6, 4_000
#: Copies of tasks: a larger group isn't decided again.
MOST_COPIES = 40_000
Target = StreamsGroupTargetAssignmentMember
#: A member's active tasks and its standbys.
Tasks = tuple[frozenset[TaskId], frozenset[TaskId]]
_NOTHING: Tasks = (frozenset(), frozenset())


@dataclass(frozen=True, slots=True)
class StreamsEpoch:
    """A target assignment, and what the coordinator computed it by.

    ``members`` are the members' processes, ``before`` the target assignment before and ``unknown``
    (as in ConsumerEpoch), ``current`` the members' current assignments. ``sources`` are the topics
    of each subtopology that has state or not (``stateful``). ``standbys`` is None if it can't be
    read.
    """

    epoch: int
    group_epoch: int | None
    at_ms: int
    members: Mapping[str, str]
    target: Mapping[str, Target]
    before: Mapping[str, Tasks] | None
    current: Mapping[str, Tasks]
    sources: Mapping[str, frozenset[str]]
    stateful: frozenset[str]
    standbys: int | None
    unknown: str = ""

    def undetermined(self, why: str) -> ComparedEpoch:
        """Return that it isn't known whether the coordinator's assignor decides so, and why."""
        return ComparedEpoch(_told("undetermined", why))

    @property
    def size(self) -> int:
        """The number of assigned copies of tasks."""
        return sum(
            len(held.partitions)
            for own in self.target.values()
            for tasks in (own.active_tasks, own.standby_tasks)
            for held in tasks
        )

    @classmethod
    def of(
        cls, group: StreamsGroup, before: Mapping[str, Target] | None, unknown: str = ""
    ) -> StreamsEpoch | None:
        """Return the group's last target assignment, None if it has none."""
        if group.target_of is None:
            return None
        topology = group.topology.subtopologies if group.topology else ()
        return cls(
            group.target_of.assignment_epoch,
            group.epoch,
            group.target_of.assignment_timestamp_ms,
            {name: member.process_id for name, member in group.members.items()},
            dict(group.target),
            None if before is None else {name: _tasks(one) for name, one in before.items()},
            {
                name: (
                    frozenset(tasks_of(one.active_tasks)),
                    frozenset(tasks_of(one.standby_tasks)),
                )
                for name, one in group.current.items()
            },
            group.source_topics(),
            frozenset(one.subtopology_id for one in topology if one.state_changelog_topics),
            _number(group.configs.get(_STANDBYS, "0")),
            unknown,
        )


def streams_group_decision(one: StreamsEpoch, partitions: Callable[[str], int]) -> ComparedEpoch:
    """Compare a target assignment with what the coordinator's assignor decides.

    ``partitions`` returns how many a topic has, 0 if that is not known.
    """
    if (why := _unknown(one)) is not None:
        return one.undetermined(why)
    actual = {name: _tasks(target) for name, target in one.target.items()}
    widths = dict.fromkeys(sorted(one.sources), 0)
    for active, _ in actual.values():
        for task in active:
            name = str(task.subtopology)
            widths[name] = max(widths.get(name, 0), task.partition + 1)
    if sum(widths.values()) * (1 + (one.standbys or 0)) > MOST_COPIES:
        return one.undetermined("the group is too large")
    tasks = [TaskId(int(name), n) for name, width in widths.items() for n in range(width)]
    matching = [release for release in BrokerRelease if _decides(one, tasks, release, actual)]
    if matching:
        return _matched(one, widths, partitions, matching)
    if not one.at_ms:
        why = "brokers before 4.3 may decide otherwise"
    elif one.stateful:
        why = "a coordinator of 4.4 assigns by offsets that members report, too, and no record has them"
    else:
        return ComparedEpoch(_told("mismatch", _differences(one, tasks, actual)))
    return one.undetermined(why)


def _unknown(one: StreamsEpoch) -> str | None:
    """Return what is missing to decide again, None if nothing is."""
    if (why := missing_records(one)) is not None:
        return why
    if not one.sources:
        return "the topology is not known"
    if not all(name.isascii() and name.isdecimal() for name in one.sources):
        return "a subtopology has a name that Kafka Streams doesn't write"
    if one.standbys is None:
        return f"{_STANDBYS} can't be read"
    if any(own.warmup_tasks for own in one.target.values()):
        return "there are warm-ups, which no assignor that is reproduced assigns"
    return None


def _decides(
    one: StreamsEpoch,
    tasks: list[TaskId],
    release: BrokerRelease,
    actual: Mapping[str, Tasks],
) -> bool:
    """Return whether the assignor of a release decides what the members were assigned."""
    size = max(len(tasks), 1)
    new = one.members.keys() - (one.before or {}).keys()
    for number, order in enumerate(orders_of_members(list(one.members), new)):
        if number and number >= min(_MOST_ORDERS, _MOST_TRIED // size):
            break
        if _decided(one, tasks, release, order) == actual:
            return True
    return False


def _decided(
    one: StreamsEpoch, tasks: list[TaskId], release: BrokerRelease, order: Iterable[str]
) -> dict[str, Tasks]:
    had = (one.before or {}) if release is BrokerRelease.V4_3 else one.current
    members = {name: MemberTasks(one.members[name], *had.get(name, _NOTHING)) for name in order}
    stateful = {task for task in tasks if str(task.subtopology) in one.stateful}
    decided = assign_sticky(members, tasks, stateful, one.standbys or 0, release)
    return {name: (frozenset(own.active), frozenset(own.standby)) for name, own in decided.items()}


def _matched(
    one: StreamsEpoch,
    widths: Mapping[str, int],
    partitions: Callable[[str], int],
    matching: list[BrokerRelease],
) -> ComparedEpoch:
    """Return a match, or what the coordinator knew otherwise of the topics' partitions."""
    client = COORDINATOR if len(matching) > 1 else f"{COORDINATOR} {matching[0].value}"
    for name, width in widths.items():
        known = {topic: partitions(topic) for topic in sorted(one.sources.get(name, ()))}
        most = max(known.values(), default=0)
        if most != width:
            why = f"the coordinator knew {width} tasks of subtopology {name}, which has {most}"
            awaits = {topic: width for topic, count in known.items() if count != width}
            return ComparedEpoch(_told("consistent", why, client), awaits)
    return ComparedEpoch(_told("match", client=client))


def _differences(one: StreamsEpoch, tasks: list[TaskId], actual: Mapping[str, Tasks]) -> str:
    new = one.members.keys() - (one.before or {}).keys()
    order = next(orders_of_members(list(one.members), new))
    decided = _decided(one, tasks, BrokerRelease.V4_3, order)
    texts = []
    for name, own in sorted(decided.items()):
        for role, expected, found in zip(
            ("active", "standby"), own, actual.get(name, _NOTHING), strict=True
        ):
            if expected != found:
                more, fewer = some_of(found - expected), some_of(expected - found)
                texts.append(f"{name} has {role} {more}, not {fewer}")
    return "; ".join(texts[:3])


def _tasks(target: Target) -> Tasks:
    return frozenset(tasks_of(target.active_tasks)), frozenset(tasks_of(target.standby_tasks))


def _number(text: str) -> int | None:
    known = text.isascii() and text.isdecimal() and len(text) <= len(str(_MOST_STANDBYS))
    return int(text) if known and int(text) <= _MOST_STANDBYS else None


def _told(result: Result, why: str = "", client: str | None = COORDINATOR) -> ConsumerDecision:
    return ConsumerDecision(ASSIGNOR, result, or_absent(client), why=why)

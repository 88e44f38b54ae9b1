"""Generate the events of a fleet of consumer groups over a span of time, in order.

All names show that it is generated. The same settings give the same events.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from typing import NamedTuple

from caughtup.demo.fleet.group import GroupStep, GroupStory, StoryMember, make_story

#: The default start of a fleet, in ms since 1970.
START_MS = 1_790_000_000_000
#: The number of groups that read the same topic.
_GROUPS_A_TOPIC = 100
#: The groups begin one after another within this time.
_STAGGER_MS = 997


@dataclass(frozen=True)
class FleetSettings:
    """The size of a fleet, and its events.

    ``groups`` with ``partitions`` each commit all of them every ``interval_ms`` for ``span_ms``;
    members come or go ``changes`` times. ``streams_percent`` of the groups are Kafka Streams
    groups, ``deleted_percent`` of all end and are deleted. There are ``makes`` different groups; the
    others repeat them under other names.
    """

    groups: int
    partitions: int
    interval_ms: int = 60_000
    span_ms: int = 3_600_000
    changes: int = 2
    streams_percent: int = 30
    deleted_percent: int = 5
    makes: int = 50
    seed: int = 0
    start_ms: int = START_MS

    @property
    def commits(self) -> int:
        """The approximate number of commits: deleted groups stop before the end."""
        return self.groups * self.partitions * (self.span_ms // self.interval_ms)


class FleetGroup(NamedTuple):
    """A group's name, and the topic that it reads."""

    name: str
    topic: str
    streams: bool

    def client_id(self, number: int) -> str:
        """Return a member's client id; that of a stream thread as in Kafka Streams."""
        own = f"{self.name}-client-{number}"
        return f"{own}-StreamThread-1-consumer" if self.streams else own


class Generation(NamedTuple):
    """The event of a new generation; without members the group has become empty."""

    at_ms: int
    group: FleetGroup
    number: int
    members: tuple[StoryMember, ...]
    next_rebalance_ms: int | None


class Committed(NamedTuple):
    """The event of commits by all members: offsets by partition."""

    at_ms: int
    group: FleetGroup
    offsets: dict[int, int]


class Deleted(NamedTuple):
    """The event of the group's deletion, with its commits on these partitions."""

    at_ms: int
    group: FleetGroup
    partitions: range


Event = Generation | Committed | Deleted


def fleet_topics(settings: FleetSettings) -> dict[str, int]:
    """Return the topics that the fleet reads, with their numbers of partitions."""
    count = -(-settings.groups // _GROUPS_A_TOPIC)
    return {_topic(number): settings.partitions for number in range(count)}


def fleet_events(settings: FleetSettings) -> Iterator[Event]:
    """Yield the fleet's events in the order of time, with at most one of each group in memory."""
    groups = (_group_events(settings, number) for number in range(settings.groups))
    return heapq.merge(*groups, key=attrgetter("at_ms"))


def log_end(settings: FleetSettings, topic: str, partition: int, after_ms: int) -> int:
    """Return the end offset of a partition ``after_ms`` after the fleet's start."""
    start, per_second = _paces(settings.seed, topic, settings.partitions)[partition]
    return start + per_second * after_ms // 1000


def _group_events(settings: FleetSettings, number: int) -> Iterator[Event]:
    story = _story(settings, number % settings.makes)
    kind = "streams" if story.streams else "consumers"
    topic = _topic(number // _GROUPS_A_TOPIC)
    group = FleetGroup(f"generated-{kind}-{number:06}", topic, story.streams)
    begin = settings.start_ms + number * _STAGGER_MS % settings.interval_ms
    steps = iter(enumerate(story.steps, 1))
    upcoming = next(steps, None)
    serving = False
    paces = _paces(settings.seed, topic, settings.partitions)
    behind = random.Random(f"{settings.seed} {group.name}").random
    for after_ms in range(settings.interval_ms, settings.span_ms + 1, settings.interval_ms):
        while upcoming is not None and upcoming[1].after_ms <= after_ms:
            yield _generation(begin, group, *upcoming)
            serving = bool(upcoming[1].members)
            upcoming = next(steps, None)
        if serving:
            # Up to a second's records behind the end, so that no commit goes back.
            offsets = {
                partition: start + per_second * after_ms // 1000 - int(per_second * behind())
                for partition, (start, per_second) in enumerate(paces)
            }
            yield Committed(begin + after_ms, group, offsets)
    if story.deleted_after_ms is not None:
        yield Deleted(begin + story.deleted_after_ms, group, range(settings.partitions))


def _generation(begin: int, group: FleetGroup, number: int, step: GroupStep) -> Generation:
    due = step.next_rebalance_ms
    return Generation(
        begin + step.after_ms, group, number, step.members, None if due is None else begin + due
    )


@cache
def _paces(seed: int, topic: str, partitions: int) -> tuple[tuple[int, int], ...]:
    """Return each partition's offset at the start, and its records a second."""
    rng = random.Random(f"{seed} {topic}")
    return tuple((rng.randrange(10_000, 10**9), rng.randint(5, 500)) for _ in range(partitions))


@cache
def _story(settings: FleetSettings, make: int) -> GroupStory:
    return make_story(
        settings.seed * 1_000_003 + make,
        partitions=settings.partitions,
        span_ms=settings.span_ms,
        changes=settings.changes,
        streams_percent=settings.streams_percent,
        deleted_percent=settings.deleted_percent,
    )


def _topic(number: int) -> str:
    return f"generated-topic-{number:04}"

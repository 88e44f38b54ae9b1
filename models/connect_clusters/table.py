"""Every Connect group, with the topics of its worker cluster as far as they are known."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from caughtup.models.connect.generation import (
    ConnectGeneration,
    config_offset,
    read_connect_generation,
)
from caughtup.models.connect.watching.movements import movements
from caughtup.models.connect.watching.watch import Watch, follow
from caughtup.models.connect_clusters.contradictions import Contradiction, contradictions
from caughtup.models.connect_clusters.topic_sets import ClusterTopics, Match, TopicSet, match
from caughtup.models.records.movements import ConnectMovementRecord
from caughtup.models.wire.connect_protocol import PROTOCOL_TYPE
from caughtup.models.wire.group_metadata import GroupMetadata

#: A Connect group's generation, or the exception that decoding it raised.
ReadGeneration = ConnectGeneration | Exception


def read_connect_groups(
    groups: Mapping[str, GroupMetadata | None],
) -> dict[str, ReadGeneration]:
    """Return the generations of the Connect groups that have workers, in order of their names.

    It may run on any thread: decoding is the costly part.
    """
    found: dict[str, ReadGeneration] = {}
    for group, metadata in groups.items():
        if metadata is None or metadata.protocol_type != PROTOCOL_TYPE:
            continue
        try:
            generation = read_connect_generation(group, metadata)
        except Exception as error:  # noqa: BLE001 - raised where the group is applied
            found[group] = error
        else:
            if generation is not None:
                found[group] = generation
    return dict(sorted(found.items()))


#: The most generations of a group that wait, the newest; a dropped one counts as not seen.
_WAITING = 100
#: How long a generation waits for its configuration to be read, in ms.
PATIENCE_MS = 5_000
#: The most groups whose last published movement is remembered.
_MOST_PUBLISHED = 20_000


class Undecided(NamedTuple):
    """A generation that is due, with all input of its decision, for use on any thread."""

    before: Watch | None
    generation: ConnectGeneration
    connectors: dict[str, int] | None

    def decide(self) -> Watch:
        """Return the group after the generation, which is decided again."""
        return follow(self.before, self.generation, self.connectors)


@dataclass(slots=True)
class ConnectGroup:
    """A group after its last decided generation, and the generations that wait.

    ``empty_since_ms`` is since when the group has no workers, None while it has some. ``asked``
    keeps the last contradictions, and what they were computed from.
    """

    waiting: deque[tuple[ConnectGeneration, int]]
    watch: Watch | None = None
    empty_since_ms: int | None = None
    asked: tuple[object, list[Contradiction]] | None = None


class ConnectClusters:
    """The Connect groups by name, and the topics of worker clusters.

    ``told`` has the topics of the groups whose settings name them. ``looked`` is whether all topics
    were searched for those of worker clusters, and these were read. ``unreadable`` has the reason
    for each topic that cannot be read. ``ceased`` counts groups that are no longer Connect's.
    """

    def __init__(self, told: Mapping[str, TopicSet] | None = None) -> None:
        self.told = dict(told or {})
        self.topics: dict[TopicSet, ClusterTopics] = {}
        self.groups: dict[str, ConnectGroup] = {}
        self.looked = False
        self.unreadable: dict[str, str] = {}
        self.ceased = 0
        self._published_ms: dict[str, int] = {}
        #: Each group's last match, after what it was computed from.
        self._matched: dict[str, tuple[object, Match]] = {}

    def apply_generation(
        self, group: str, generation: ConnectGeneration | None, seen_ms: int
    ) -> None:
        """Apply a group's newest generation; None if it is not of a Connect group."""
        if generation is None:
            if group in self.groups:
                self.forget(group)
                self.ceased += 1
            return
        known = self.groups.setdefault(group, ConnectGroup(deque(maxlen=_WAITING)))
        known.empty_since_ms = None
        last = known.waiting[-1][0] if known.waiting else known.watch and known.watch.generation
        if last and last.generation == generation.generation and last.leader == generation.leader:
            return  # the same record, written again after a heartbeat or read again
        known.waiting.append((generation, seen_ms))

    def apply_groups(
        self,
        groups: Mapping[str, GroupMetadata | None],
        read: Mapping[str, ReadGeneration],
        seen_ms: int,
    ) -> Iterator[tuple[str, Callable[[], None]]]:
        """Yield each group that is or was Connect's with a call that applies it, to be isolated."""
        for group, found in read.items():
            yield group, partial(self._apply_read, group, found, seen_ms)
        for group in sorted(groups.keys() & self.groups.keys() - read.keys()):
            metadata = groups[group]
            if metadata is None:
                yield group, partial(self.forget, group)
            elif metadata.members:
                yield group, partial(self.apply_generation, group, None, seen_ms)
            else:
                at_ms = metadata.state_timestamp_ms
                yield group, partial(self.apply_empty, group, at_ms if at_ms >= 0 else seen_ms)

    def _apply_read(self, group: str, found: ReadGeneration, seen_ms: int) -> None:
        if isinstance(found, Exception):
            raise found
        self.apply_generation(group, found, seen_ms)

    def apply_empty(self, group: str, at_ms: int) -> None:
        """Apply that a group has no members."""
        if (known := self.groups.get(group)) is not None and known.empty_since_ms is None:
            known.empty_since_ms = at_ms

    def forget(self, group: str) -> None:
        """Remove a group."""
        self.groups.pop(group, None)
        self._matched.pop(group, None)

    def read_topics(self, sets: Iterable[TopicSet]) -> None:
        """Keep these sets of topics with what is known of them, and drop the others."""
        self.topics = {one: self.topics.get(one) or ClusterTopics() for one in sets}

    def match(self, generation: ConnectGeneration) -> Match:
        """Return the topics of a group's worker cluster, or why they are unknown."""
        group = generation.group
        of = (
            generation.generation,
            generation.leader,
            self.told.get(group),
            *((topics, one.read_so_far) for topics, one in self.topics.items()),
        )
        if self._matched.get(group, (None, None))[0] != of:
            self._matched[group] = (of, match(generation, self.topics, self.told.get(group)))
        found = self._matched[group][1]
        if found.topics is None and self.unreadable:
            topic, why = min(self.unreadable.items())
            return Match(None, f"{found.why}; {topic} can't be read: {why}")
        return found

    def transactional_topics(self) -> set[str]:
        """Return the topics to which workers with exactly-once support write in transactions.

        Other workers read their committed records only. Source: KIP-618.
        """
        matched = (self.topics_of(group)[0].topics for group in self.groups)
        return {topic for one in matched if one for topic in (one.config, one.offset) if topic}

    def topics_of(self, group: str) -> tuple[Match, ClusterTopics | None]:
        """Return the topics of a group's worker cluster, and what is known from them."""
        known = self.groups.get(group)
        if known is None or known.watch is None:
            return Match(None, "caughtup has not read this group yet"), None
        found = self.match(known.watch.generation)
        return found, None if found.topics is None else self.topics.get(found.topics)

    def sharing(self, group: str) -> list[str]:
        """Return the other groups with the same topics, whose statuses contradict this one's."""
        found, _ = self.topics_of(group)
        if found.topics is None:
            return []
        return [
            other
            for other in sorted(self.groups)
            if other != group and self.topics_of(other)[0].topics == found.topics
        ]

    def due(self, now_ms: int) -> Iterator[tuple[str, Undecided]]:
        """Yield the oldest generation of each group that can be decided again, by group."""
        for group in sorted(self.groups):
            known = self.groups.get(group)
            if known is None or not known.waiting:
                continue
            generation, seen_ms = known.waiting[0]
            found = self.match(generation)
            topics = None if found.topics is None else self.topics.get(found.topics)
            at = config_offset(generation)
            connectors = None
            if topics is not None and at >= 0:
                connectors = topics.configuration.at(at)
            hopeless = self.looked and topics is None
            if connectors is None and not hopeless and now_ms - seen_ms < PATIENCE_MS:
                continue
            yield group, Undecided(known.watch, generation, connectors)

    def settle(self, group: str, watch: Watch) -> bool:
        """Apply a decided generation; return False if the group was removed or has moved on."""
        known = self.groups.get(group)
        if known is None or not known.waiting or known.waiting[0][0] is not watch.generation:
            return False
        known.waiting.popleft()
        known.watch = watch
        return True

    def published_until(self, group: str, at_ms: int) -> bool:
        """Note until when (ms) a group's movements are published; return False without room."""
        if group not in self._published_ms and len(self._published_ms) >= _MOST_PUBLISHED:
            return False
        self._published_ms[group] = max(at_ms, self._published_ms.get(group, 0))
        return True

    def unpublished_movements(
        self, before: Watch | None, after: Watch
    ) -> list[ConnectMovementRecord]:
        """Return a generation's movements, none if they were published already."""
        group, at_ms = after.generation.group, max(after.generation.as_of_ms, 0)
        if at_ms <= self._published_ms.get(group, -1):
            return []
        self.published_until(group, at_ms)
        return list(movements(before, after))

    def give_up(self, group: str) -> None:
        """Drop a generation whose decision raised, and what was known before it."""
        if (known := self.groups.get(group)) is not None:
            known.watch = None
            if known.waiting:
                known.waiting.popleft()

    def contradictions(self, group: str, now_ms: int) -> list[Contradiction]:
        """Return a group's contradictions at ``now_ms``."""
        known = self.groups.get(group)
        if known is None or known.watch is None or known.empty_since_ms is not None:
            return []
        _, topics = self.topics_of(group)
        configuration, statuses = None, None
        if topics is not None and not self.sharing(group):
            configuration, statuses = topics.configuration, topics.statuses
        # A scrape and the page request the same several times a second.
        of = (
            known.watch,
            now_ms // 1000,
            configuration and configuration.next_offset,
            statuses and statuses.records,
        )
        if known.asked is None or known.asked[0] != of:
            found = contradictions(known.watch, configuration, statuses, now_ms)
            known.asked = (of, found)
        return known.asked[1]

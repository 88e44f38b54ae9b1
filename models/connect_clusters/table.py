"""Every Connect group, with the topics of its worker cluster as far as they are known."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from caughtup.models.connect.generation import ConnectGeneration, config_offset
from caughtup.models.connect.watching.movements import movements
from caughtup.models.connect.watching.watch import Watch, follow
from caughtup.models.connect_clusters.contradictions import Contradiction, contradictions
from caughtup.models.connect_clusters.matching import ClusterTopics, Match, match
from caughtup.models.connect_clusters.reading import ReadGeneration
from caughtup.models.connect_clusters.topic_sets import TopicSet
from caughtup.models.records.movements import ConnectMovementRecord
from caughtup.models.wire.group_metadata import GroupMetadata

#: Generations of a group that wait, the newest; whoever misses one goes on as with one unseen.
_WAITING = 100
#: So long (ms) a generation waits for its configuration to be read.
PATIENCE_MS = 5_000
#: Groups of which it is known until when their movements were told.
_MOST_TOLD = 20_000


class Undecided(NamedTuple):
    """A generation that is due, with all that it is decided from: good on any thread."""

    before: Watch | None
    generation: ConnectGeneration
    connectors: dict[str, int] | None

    def decide(self) -> Watch:
        """Decide it again."""
        return follow(self.before, self.generation, self.connectors)


@dataclass(slots=True)
class ConnectGroup:
    """A group: what was seen of it last, and the generations that are yet to be decided again.

    ``empty_since_ms`` is since when it has no workers, None while it has. ``asked`` keeps the
    contradictions that were asked for last, and what they are of.
    """

    waiting: deque[tuple[ConnectGeneration, int]]
    watch: Watch | None = None
    empty_since_ms: int | None = None
    asked: tuple[object, list[Contradiction]] | None = None


class ConnectClusters:
    """Connect groups by name. ``told``: the topics of groups whose settings name them.

    ``looked``: all topics were looked through, and what looked like a worker cluster's was read.
    ``unreadable`` says why topics can't be read, by topic. ``ceased`` counts the groups that
    stopped being Connect's.
    """

    def __init__(self, told: Mapping[str, TopicSet] | None = None) -> None:
        self.told = dict(told or {})
        self.topics: dict[TopicSet, ClusterTopics] = {}
        self.groups: dict[str, ConnectGroup] = {}
        self.looked = False
        self.unreadable: dict[str, str] = {}
        self.ceased = 0
        self._told_ms: dict[str, int] = {}
        #: What was matched last of each group, and what that was of.
        self._matched: dict[str, tuple[object, Match]] = {}

    def apply_generation(
        self, group: str, generation: ConnectGeneration | None, seen_ms: int
    ) -> None:
        """Apply a group's newest generation; None for one that isn't Connect's."""
        if generation is None:
            if group in self.groups:
                self.forget(group)
                self.ceased += 1
            return
        known = self.groups.setdefault(group, ConnectGroup(deque(maxlen=_WAITING)))
        known.empty_since_ms = None
        last = known.waiting[-1][0] if known.waiting else known.watch and known.watch.generation
        if last and last.generation == generation.generation and last.leader == generation.leader:
            return  # the record was written again, for a heartbeat's sake or as it was read again
        known.waiting.append((generation, seen_ms))

    def apply_groups(
        self,
        groups: Mapping[str, GroupMetadata | None],
        read: Mapping[str, ReadGeneration],
        seen_ms: int,
    ) -> Iterator[tuple[str, Callable[[], None]]]:
        """Yield what is to be done for each group that is Connect's or was, to be isolated."""
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
        """Forget a group."""
        self.groups.pop(group, None)
        self._matched.pop(group, None)

    def read_topics(self, sets: Iterable[TopicSet]) -> None:
        """Keep what is known of these sets of topics, and nothing of others."""
        self.topics = {one: self.topics.get(one) or ClusterTopics() for one in sets}

    def match(self, generation: ConnectGeneration) -> Match:
        """Find the topics of a group's worker cluster."""
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

    def topics_of(self, group: str) -> tuple[Match, ClusterTopics | None]:
        """Return the topics of a group's worker cluster, and what is known from them."""
        known = self.groups.get(group)
        if known is None or known.watch is None:
            return Match(None, "nothing is known of it yet"), None
        found = self.match(known.watch.generation)
        return found, None if found.topics is None else self.topics.get(found.topics)

    def sharing(self, group: str) -> list[str]:
        """Name the other groups whose topics are the same: both write what contradicts the other."""
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
        """Apply what became of a group; False if it was forgotten, or has moved on, meanwhile."""
        known = self.groups.get(group)
        if known is None or not known.waiting or known.waiting[0][0] is not watch.generation:
            return False
        known.waiting.popleft()
        known.watch = watch
        return True

    def told_until(self, group: str, at_ms: int) -> bool:
        """Note that a group's movements were told up to a moment (ms); False if there is no room."""
        if group not in self._told_ms and len(self._told_ms) >= _MOST_TOLD:
            return False
        self._told_ms[group] = max(at_ms, self._told_ms.get(group, 0))
        return True

    def untold(self, before: Watch | None, after: Watch) -> list[ConnectMovementRecord]:
        """Return what a generation means for what moves, nothing if it was told already."""
        group, at_ms = after.generation.group, max(after.generation.as_of_ms, 0)
        if at_ms <= self._told_ms.get(group, -1):
            return []
        self.told_until(group, at_ms)
        return list(movements(before, after))

    def give_up(self, group: str) -> None:
        """Leave out a generation that can't be decided again, and what was known before it."""
        if (known := self.groups.get(group)) is not None:
            known.watch = None
            if known.waiting:
                known.waiting.popleft()

    def contradictions(self, group: str, now_ms: int) -> list[Contradiction]:
        """List what contradicts what in a group as of now (ms)."""
        known = self.groups.get(group)
        if known is None or known.watch is None or known.empty_since_ms is not None:
            return []
        _, topics = self.topics_of(group)
        configuration, statuses = None, None
        if topics is not None and not self.sharing(group):
            configuration, statuses = topics.configuration, topics.statuses
        # A scrape and the page ask for the same several times in a second.
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

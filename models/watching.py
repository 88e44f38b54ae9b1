"""The groups and topics that are watched, and the objectives of groups: by patterns for names.

Each name is matched once.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Literal, NamedTuple, Protocol

from caughtup.models.groups.membership import Membership, ReadGroup
from caughtup.models.polls.commit_columns import CommitColumns
from caughtup.models.wire.consumer_offsets import head_names
from caughtup.models.wire.record_keys import RecordType

#: Why a group isn't watched: by a setting, or because its name is of a kind that is folded.
Reason = Literal["ignored", "folded"]
REASONS: tuple[Reason, ...] = ("ignored", "folded")
#: The number of names whose match is cached.
_NAMES = 1 << 16
#: The most groups that are counted without being watched.
_COUNTED = 100_000
_UUID = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
#: The groups with which Spark's drivers look for new records, another one for each run: their
#: ``groupIdPrefix``, a UUID, for a stream the hash of its metadata's path, a number.
SPARK_DRIVERS = rf"(?s:.*)-{_UUID}(--?\d+)?-driver-\d+"


class _OfGroup(Protocol):
    """The key of a record about a group."""

    @property
    def record_type(self) -> RecordType:
        """The type of the record."""


#: The records whose tombstone means that the group is gone.
_OF_GROUPS = (RecordType.CONSUMER_GROUP_METADATA, RecordType.STREAMS_GROUP_METADATA)


class WatchPatterns(NamedTuple):
    """Regular expressions for whole names.

    Without any for groups or topics, all of them are watched. What is ignored is never watched, and
    ``folded`` groups only if a pattern of ``groups`` matches. ``reserved`` names are those of
    groups that aren't Kafka's: Kafka's groups with such names are folded.
    """

    groups: tuple[str, ...] = ()
    ignored_groups: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    ignored_topics: tuple[str, ...] = ()
    folded: tuple[str, ...] = ()
    reserved: tuple[str, ...] = ()


class Watching:
    """Decides which groups and topics are watched, and counts the groups that aren't.

    ``always`` are groups that are watched whatever the patterns.
    """

    def __init__(self, patterns: WatchPatterns | None = None, always: Collection[str] = ()) -> None:
        given = patterns or WatchPatterns()
        self.always = frozenset(always)
        compiled = ([re.compile(pattern) for pattern in of_kind] for of_kind in given)
        self._groups, self._ignored_groups, *others = compiled
        self._topics, self._ignored_topics, self._folded, self._reserved = others
        self._everything = not any(given)
        self._reason = lru_cache(_NAMES)(self._find_reason)
        self._topic = lru_cache(_NAMES)(self._find_topic)
        self._head = lru_cache(_NAMES)(self._find_head)
        self._seen: dict[str, Reason] = {}

    def counts(self) -> Mapping[str, int]:
        """Return the number of groups seen that aren't watched, by reason; at most 100,000."""
        found = Counter(self._seen.values())
        return {reason: found[reason] for reason in REASONS}

    def is_watched(self, group: str, *, gone: bool = False) -> bool:
        """Return whether the group of a record is watched.

        ``gone``: the record is its tombstone.
        """
        reason = self._reason(group)
        if reason is None:
            return True
        if gone:
            self._seen.pop(group, None)
        elif len(self._seen) < _COUNTED:
            self._seen[group] = reason
        return False

    def is_query_watched(self, group: str) -> bool:
        """Return whether a group is watched that isn't Kafka's and has a reserved name."""
        return self._named_reason(group) is None

    def topic(self, topic: str) -> bool:
        """Return whether a topic is watched."""
        return self._everything or self._topic(topic)

    def classic(self, read: Mapping[str, ReadGroup]) -> Mapping[str, ReadGroup]:
        """Return those of the decoded classic groups that are watched."""
        if self._everything:
            return read
        return {
            one: found for one, found in read.items() if self.is_watched(one, gone=found is None)
        }

    def commits(self, commits: CommitColumns) -> CommitColumns:
        """Return the commits whose group and topic are watched."""
        if self._everything:
            return commits
        left_out = {
            number: group
            for number, head in enumerate(commits.heads)
            if (group := self._head(head)) is not None
        }
        if not left_out:
            return commits
        for number in commits.committed_heads() & left_out.keys():
            self.is_watched(left_out[number])
        return commits.without(left_out)

    def membership(self, of: Membership) -> Membership:
        """Return a group's membership without the topics that aren't watched."""
        if self._everything or all(map(self._topic, of.topics)):
            return of
        owners = {one: member for one, member in of.owners.items() if self._topic(one.topic)}
        return replace(of, owners=owners, topics=frozenset(filter(self._topic, of.topics)))

    def _find_head(self, head: bytes) -> str | None:
        """Return a head's group if its commits aren't watched, None if they are."""
        names = head_names(head)
        if names is None:
            return None
        group, topic = names
        return None if self._reason(group) is None and self._topic(topic) else group

    def _find_reason(self, group: str) -> Reason | None:
        if _matches(self._reserved, group):
            return "folded"
        return self._named_reason(group)

    def _named_reason(self, group: str) -> Reason | None:
        if group in self.always:
            return None
        if _matches(self._ignored_groups, group):
            return "ignored"
        if self._groups:
            return None if _matches(self._groups, group) else "ignored"
        return "folded" if _matches(self._folded, group) else None

    def _find_topic(self, topic: str) -> bool:
        if _matches(self._ignored_topics, topic):
            return False
        return not self._topics or _matches(self._topics, topic)


def _matches(patterns: Iterable[re.Pattern[str]], name: str) -> bool:
    return any(pattern.fullmatch(name) for pattern in patterns)


def is_end(key: _OfGroup, record: object) -> bool:
    """Return whether a record about a group of the new protocols means that the group is gone."""
    return record is None and key.record_type in _OF_GROUPS


class Objectives:
    """Objectives for the age of a group's oldest unread record, in seconds, by group name.

    The first pattern that matches the whole name counts; results are cached by name.
    """

    def __init__(self, patterns: Sequence[tuple[str, float]] = ()) -> None:
        self._patterns = [(re.compile(pattern), seconds) for pattern, seconds in patterns]
        self.of = lru_cache(_NAMES)(self._find)

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def _find(self, group: str) -> float | None:
        """Return a group's objective; None where it has none."""
        matching = (seconds for pattern, seconds in self._patterns if pattern.fullmatch(group))
        return next(matching, None)

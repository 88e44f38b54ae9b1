"""The members of every group by name, on whichever protocol it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from caughtup.models.groups.consumer import ConsumerGroup, ConsumerGroupRecordKey
from caughtup.models.groups.membership import Membership
from caughtup.models.groups.streams import StreamsGroup, StreamsGroupRecordKey
from caughtup.models.wire.consumer_group_records import ConsumerGroupRecord
from caughtup.models.wire.streams_group_records import StreamsGroupRecord


class GroupTable:
    """The members of each group, by the records of groups.

    ``topic_names``: topic id → name, and ``partition_counts``: topic → number of partitions, as of
    the time a membership is requested; after a change of either, call ``forget_owners``.
    ``watched`` filters each membership.
    """

    def __init__(
        self,
        topic_names: Mapping[bytes, str],
        partition_counts: Callable[[], Mapping[str, int]],
        watched: Callable[[Membership], Membership] = lambda membership: membership,
    ) -> None:
        self.classic: set[str] = set()
        self.consumer: dict[str, ConsumerGroup] = {}
        self.streams: dict[str, StreamsGroup] = {}
        self._topic_names = topic_names
        self._partition_counts = partition_counts
        self._watched = watched
        self._memberships: dict[str, Membership] = {}

    def apply_classic(self, group: str, membership: Membership | None) -> None:
        """Apply the members of a classic group, or None if it is gone."""
        self._memberships.pop(group, None)
        if membership is None:
            self.classic.discard(group)
        else:
            self.classic.add(group)
            self._memberships[group] = self._watched(membership)

    def apply_consumer(
        self, key: ConsumerGroupRecordKey, record: ConsumerGroupRecord | None
    ) -> None:
        """Apply a record of a consumer group on the new protocol, or None for its tombstone."""
        self.consumer.setdefault(key.group, ConsumerGroup()).apply(key, record)
        self._changed(key.group, self.consumer)

    def apply_streams(self, key: StreamsGroupRecordKey, record: StreamsGroupRecord | None) -> None:
        """Apply a record of a streams group, or None for its tombstone."""
        self.streams.setdefault(key.group, StreamsGroup()).apply(key, record)
        self._changed(key.group, self.streams)

    def forget(self, group: str) -> None:
        """Remove a group, on whichever protocol it is."""
        self.classic.discard(group)
        for table in (self.consumer, self.streams, self._memberships):
            table.pop(group, None)

    def _changed(
        self, group: str, table: dict[str, ConsumerGroup] | dict[str, StreamsGroup]
    ) -> None:
        self._memberships.pop(group, None)
        if table[group].is_empty():
            del table[group]

    def forget_owners(self) -> None:
        """Compute the owners in groups of the new protocols again on their next use."""
        for group in (*self.consumer, *self.streams):
            self._memberships.pop(group, None)

    def membership(self, group: str) -> Membership | None:
        """Return a group's members; None if only commits of it are known."""
        known = self._memberships.get(group)
        if known is None:
            if (consumer := self.consumer.get(group)) is not None:
                known = consumer.membership(self._topic_names)
            elif (streams := self.streams.get(group)) is not None:
                known = streams.membership(self._partition_counts())
            else:
                return None
            known = self._memberships[group] = self._watched(known)
        return known

    def names(self) -> set[str]:
        """Return the names of all groups with metadata."""
        return self.classic | self.consumer.keys() | self.streams.keys()

"""Every group by name, on whichever protocol it is, and who is in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from caughtup.models.consumer_group import ConsumerGroup
from caughtup.models.errors import DecodeError
from caughtup.models.membership import Membership, classic_membership
from caughtup.models.streams_group import StreamsGroup
from caughtup.models.wire.batch import Batch
from caughtup.models.wire.group_metadata import GroupMetadata


class GroupTable:
    """Takes the records of groups, and tells who is in each.

    ``topic_names``: topic id → name, and ``partition_counts``: topic → number of partitions, as
    they are whenever a membership is asked for; after a change of either, ``forget_owners``.
    ``on_error`` is told of assignments that can't be read.
    """

    def __init__(
        self,
        topic_names: Mapping[bytes, str],
        partition_counts: Callable[[], Mapping[str, int]],
        on_error: Callable[[DecodeError], None],
    ) -> None:
        self.classic: dict[str, GroupMetadata] = {}
        self.consumer: dict[str, ConsumerGroup] = {}
        self.streams: dict[str, StreamsGroup] = {}
        self._topic_names = topic_names
        self._partition_counts = partition_counts
        self._on_error = on_error
        self._memberships: dict[str, Membership] = {}

    def apply(self, batch: Batch) -> None:
        """Take the last values of a batch's records; None is a tombstone."""
        for group, metadata in sorted(batch.groups.items()):
            self.apply_classic(group, metadata)
        for consumer_key, consumer_record in batch.consumer_group_records.items():
            consumer = self.consumer.setdefault(consumer_key.group, ConsumerGroup())
            consumer.apply(consumer_key, consumer_record)
            self._changed(consumer_key.group, self.consumer)
        for streams_key, streams_record in batch.streams_group_records.items():
            streams = self.streams.setdefault(streams_key.group, StreamsGroup())
            streams.apply(streams_key, streams_record)
            self._changed(streams_key.group, self.streams)

    def apply_classic(self, group: str, metadata: GroupMetadata | None) -> None:
        """Take a classic group's metadata, or None when it is gone."""
        self._memberships.pop(group, None)
        if metadata is None:
            self.classic.pop(group, None)
        else:
            self.classic[group] = metadata
            self._memberships[group] = classic_membership(metadata, self._on_error)

    def _changed(
        self, group: str, table: dict[str, ConsumerGroup] | dict[str, StreamsGroup]
    ) -> None:
        self._memberships.pop(group, None)
        if table[group].is_empty():
            del table[group]

    def forget_owners(self) -> None:
        """Have the owners in groups of the new protocols worked out again."""
        for group in (*self.consumer, *self.streams):
            self._memberships.pop(group, None)

    def membership(self, group: str) -> Membership | None:
        """Tell who is in a group; None if all that is known of it are commits."""
        known = self._memberships.get(group)
        if known is None:
            if (consumer := self.consumer.get(group)) is not None:
                known = consumer.membership(self._topic_names)
            elif (streams := self.streams.get(group)) is not None:
                known = streams.membership(self._partition_counts())
            else:
                return None
            self._memberships[group] = known
        return known

    def names(self) -> set[str]:
        """Name every group that there is metadata of."""
        return self.classic.keys() | self.consumer.keys() | self.streams.keys()

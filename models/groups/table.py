"""The members of every group by name, on whichever protocol it is, and topics by name and by id."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from caughtup.models.groups.consumer import ConsumerGroup, ConsumerGroupRecordKey
from caughtup.models.groups.membership import MemberReconciliation, Membership
from caughtup.models.groups.share import share_membership
from caughtup.models.groups.streams import StreamsGroup, StreamsGroupRecordKey
from caughtup.models.ids import TopicPartition
from caughtup.models.polls.commit_columns import CommitColumns
from caughtup.models.wire.consumer_group_records import ConsumerGroupRecord
from caughtup.models.wire.consumer_offsets import head_names
from caughtup.models.wire.share_groups import ShareGroup
from caughtup.models.wire.streams_group_records import StreamsGroupRecord


class TopicNames:
    """The present id of each topic: ``names`` maps ids (16 bytes) to names, one to one.

    ``ids`` maps names to ids. A topic that is deleted and created again has another id; the old one
    is removed. The brokers' last answer about a topic counts; an id from a commit is a guess until
    the brokers answer, and makes the service ask again if it differs from their answer.
    """

    def __init__(self) -> None:
        self.names: dict[bytes, str] = {}
        self.ids: dict[str, bytes] = {}
        self._confirmed: set[str] = set()
        self._doubted: set[str] = set()

    def copy(self) -> TopicNames:
        """Return a copy of the names and ids, which another thread may read."""
        copied = TopicNames()
        copied.names, copied.ids = dict(self.names), dict(self.ids)
        return copied

    def learn(self, topic: str, topic_id: bytes, *, confirmed: bool = False) -> bool:
        """Record a topic's id, ``confirmed`` by the brokers or guessed.

        Return whether it is new.
        """
        before, holder = self.ids.get(topic), self.names.get(topic_id)
        if (
            not confirmed
            and before != topic_id
            and (topic in self._confirmed or holder is not None)
        ):
            self._doubted.add(topic)
            return False
        if confirmed:
            self._confirmed.add(topic)
            self._doubted.discard(topic)
        if before == topic_id:
            return False
        if holder is not None:
            self.forget(holder)  # the brokers' next answer has its id, if it still exists
        if before is not None:
            del self.names[before]
        self.ids[topic] = topic_id
        self.names[topic_id] = topic
        return True

    def learn_from_commits(self, commits: CommitColumns, topics: Collection[str]) -> bool:
        """Record the ids that commits have, of these topics; return whether any is new."""
        news = False
        for topic_id, head in commits.heads_by_topic_id():
            known = self.names.get(topic_id)
            if known is not None and head.endswith(known.encode()):
                continue  # nearly always; other cases are decided by decoding the names
            names = head_names(head)
            if names is not None and names[1] in topics:
                news |= self.learn(names[1], topic_id)
        return news

    def forget(self, topic: str) -> None:
        """Remove a deleted topic."""
        self._confirmed.discard(topic)
        self._doubted.discard(topic)
        topic_id = self.ids.pop(topic, None)
        if topic_id is not None:
            del self.names[topic_id]

    def unknown(self, topics: Iterable[str]) -> set[str]:
        """Return those of these topics whose ids the brokers have to be asked for."""
        return {topic for topic in topics if topic not in self._confirmed or topic in self._doubted}


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
        self.share: dict[str, ShareGroup] = {}
        self._topic_names = topic_names
        self._partition_counts = partition_counts
        self._watched = watched
        self._memberships: dict[str, Membership] = {}
        #: The memberships of groups on the new protocols, which depend on the topics.
        self._owners: dict[str, Membership] = {}

    def apply_classic(self, group: str, membership: Membership | None) -> None:
        """Apply the members of a classic group, or None if it is deleted."""
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
        self._changed(key.group, self.consumer, record)

    def apply_streams(self, key: StreamsGroupRecordKey, record: StreamsGroupRecord | None) -> None:
        """Apply a record of a streams group, or None for its tombstone."""
        self.streams.setdefault(key.group, StreamsGroup()).apply(key, record)
        self._changed(key.group, self.streams, record)

    def apply_share(self, group: str, found: ShareGroup | None) -> None:
        """Apply a share group as it is now, or None if it is gone."""
        self._memberships.pop(group, None)
        if found is None:
            self.share.pop(group, None)
        else:
            self.share[group] = found
            self._memberships[group] = self._watched(share_membership(found))

    def forget(self, group: str) -> None:
        """Remove a group, on whichever protocol it is."""
        self.classic.discard(group)
        for table in (self.consumer, self.streams, self.share, self._memberships, self._owners):
            table.pop(group, None)

    def _changed(
        self,
        group: str,
        table: dict[str, ConsumerGroup] | dict[str, StreamsGroup],
        record: ConsumerGroupRecord | StreamsGroupRecord | None,
    ) -> None:
        self._owners.pop(group, None)
        # A group that goes back to the classic protocol loses its other records with that record.
        if record is not None:
            self._memberships.pop(group, None)
        if table[group].is_empty():
            del table[group]

    def forget_owners(self) -> None:
        """Compute the owners in groups of the new protocols again on their next use."""
        self._owners.clear()

    def membership(self, group: str) -> Membership | None:
        """Return a group's members; None if only commits of it are known."""
        known = self._memberships.get(group) or self._owners.get(group)
        if known is None:
            if (consumer := self.consumer.get(group)) is not None:
                known = consumer.membership(self._topic_names)
            elif (streams := self.streams.get(group)) is not None:
                known = streams.membership(self._partition_counts())
            else:
                return None
            known = self._owners[group] = self._watched(known)
        return known

    def assigned(self, group: str) -> dict[str, list[TopicPartition]]:
        """Return the partitions of each member that has any, sorted; those of a share group share them."""
        if (share := self.share.get(group)) is not None:
            return {one.member_id: list(one.assigned) for one in share.members if one.assigned}
        membership = self.membership(group)
        owned: dict[str, list[TopicPartition]] = {}
        for partition, member in () if membership is None else sorted(membership.owners.items()):
            owned.setdefault(member.member_id, []).append(partition)
        return owned

    def decided(self, group: str) -> Membership | None:
        """Return a group's members and its decided assignment, which it may not have yet.

        On the classic protocol that is the same; on the new ones it is the target assignment. None if
        only commits of it are known.
        """
        if (consumer := self.consumer.get(group)) is not None:
            return self._watched(consumer.decided(self._topic_names))
        if (streams := self.streams.get(group)) is not None:
            return self._watched(streams.decided(self._partition_counts()))
        return self._memberships.get(group)

    def revoking(self, group: str) -> set[str]:
        """Return the ids of members of a group on a new protocol that still have to revoke something."""
        found = self.consumer.get(group) or self.streams.get(group)
        return set() if found is None else found.revoking()

    def reconciliation(self, group: str, member: str) -> MemberReconciliation | None:
        """Return how far a member is from its target; None on the classic protocol, and before it is known."""
        if (consumer := self.consumer.get(group)) is not None:
            return consumer.reconciliation(member, self._topic_names)
        if (streams := self.streams.get(group)) is not None:
            return streams.reconciliation(member, self._partition_counts())
        return None

    def names(self) -> set[str]:
        """Return the names of all groups with metadata."""
        return self.classic | self.consumer.keys() | self.streams.keys() | self.share.keys()

"""The members of a share group (KIP-932), which may share partitions."""

from __future__ import annotations

from collections import Counter

from caughtup.models.groups.membership import Member, Membership
from caughtup.models.wire.share_groups import SHARE, ShareGroup


def share_membership(group: ShareGroup) -> Membership:
    """Return the members, and the owner of each partition that only one member has."""
    members = {
        one.member_id: Member(
            one.member_id, one.client_id, one.client_host, topics=frozenset(one.topics)
        )
        for one in group.members
    }
    shared = Counter(partition for one in group.members for partition in one.assigned)
    owners = {
        partition: members[one.member_id]
        for one in group.members
        for partition in one.assigned
        if shared[partition] == 1
    }
    topics = frozenset(topic for one in group.members for topic in one.topics)
    topics |= {partition.topic for partition in group.starts}
    return Membership(
        SHARE, group.epoch, tuple(members.values()), owners, topics, assignor=group.assignor
    )

"""A share group (KIP-932) as its coordinator describes it: its members, and where it begins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from caughtup.models.ids import TopicPartition

#: The type of share groups, as ListGroups names it.
SHARE = "share"


@dataclass(frozen=True, slots=True)
class ShareGroupMember:
    """A member, its epoch, and its partitions, which other members may have, too."""

    member_id: str
    client_id: str
    client_host: str
    epoch: int
    topics: tuple[str, ...]
    assigned: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class ShareGroup:
    """A share group as its coordinator describes it.

    ``epoch`` is that of the group, ``assignment_epoch`` that of its assignment. ``starts``: the
    share-partition start offset of each partition, before which every record is done.
    """

    epoch: int
    assignment_epoch: int
    assignor: str
    members: tuple[ShareGroupMember, ...]
    starts: Mapping[TopicPartition, int] = field(default_factory=dict)

"""Members of share groups, which may have the same partitions."""

from __future__ import annotations

from caughtup.models.groups.share import share_membership
from caughtup.models.groups.table import GroupTable
from caughtup.models.ids import TopicPartition
from caughtup.models.wire.share_groups import ShareGroup, ShareGroupMember

FIRST, SECOND, THIRD = (TopicPartition("orders", number) for number in range(3))


def member(name: str, *assigned: TopicPartition) -> ShareGroupMember:
    return ShareGroupMember(name, f"client-{name}", "/h", 4, ("orders",), assigned)


SHARED = ShareGroup(4, 4, "simple", (member("a", FIRST, SECOND), member("b", SECOND)), {THIRD: 7})


def test_a_partition_has_an_owner_if_one_member_has_it() -> None:
    found = share_membership(SHARED)
    assert (found.group_type, found.generation, found.assignor) == ("share", 4, "simple")
    assert [one.member_id for one in found.members] == ["a", "b"]
    assert {place: one.member_id for place, one in found.owners.items()} == {FIRST: "a"}
    assert found.topics == {"orders"}


def test_a_table_has_it_until_it_is_gone() -> None:
    table = GroupTable({}, dict)
    table.apply_share("share", SHARED)
    assert table.names() == {"share"}
    assert table.assigned("share") == {"a": [FIRST, SECOND], "b": [SECOND]}
    assert table.membership("share") == share_membership(SHARED)
    table.apply_share("share", None)
    assert table.names() == set()
    assert table.assigned("share") == {}
    assert table.membership("share") is None

"""What can be said of consumer groups' assignors in a line; tests/oracle holds the rest to the jars."""

from __future__ import annotations

import pytest

from caughtup.models.assignors.consumer.group import (
    AssignorFails,
    ConsumerGroupSpec,
    ConsumerMember,
)
from caughtup.models.assignors.consumer.ranges import assign_coordinator_range, assign_range
from caughtup.models.assignors.consumer.round_robin import assign_round_robin
from caughtup.models.assignors.consumer.sticky import assign_cooperative_sticky, assign_sticky
from caughtup.models.assignors.consumer.uniform import assign_uniform
from caughtup.models.ids import TopicPartition


def partitions(topic: str, *numbers: int) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in numbers]


def group(topics: dict[str, int], **owned: list[TopicPartition]) -> ConsumerGroupSpec:
    read = tuple(topics)
    members = {name: ConsumerMember(read, owned=own) for name, own in owned.items()}
    return ConsumerGroupSpec(members, topics)


def test_uniform_leaves_who_has_one_more_its_one_more() -> None:
    had = group({"t": 5}, a=partitions("t", 0, 1), b=partitions("t", 2, 3, 4), c=[])
    assert assign_uniform(had) == {
        "a": partitions("t", 0, 1),
        "b": partitions("t", 2, 3),
        "c": partitions("t", 4),
    }


@pytest.mark.parametrize("assign", [assign_range, assign_coordinator_range])
def test_range_deals_each_topic_apart(assign: type) -> None:
    given = assign(group({"t": 3, "u": 1}, b=[], a=[]))
    assert given == {"a": partitions("t", 0, 1) + partitions("u", 0), "b": partitions("t", 2)}


def test_round_robin_goes_on_with_the_next_topic_where_it_was() -> None:
    given = assign_round_robin(group({"t": 3, "u": 1}, a=[], b=[]))
    assert given == {"a": partitions("t", 0, 2), "b": partitions("t", 1) + partitions("u", 0)}


def test_cooperative_sticky_holds_back_what_another_one_has_to_revoke() -> None:
    had = group({"t": 4}, a=partitions("t", 0, 1, 2, 3), b=[])
    assert assign_sticky(had) == {"a": partitions("t", 0, 1), "b": partitions("t", 2, 3)}
    assert assign_cooperative_sticky(had) == {"a": partitions("t", 0, 1), "b": []}


def test_ranges_follow_racks_and_static_members_come_first() -> None:
    members = {
        "a": ConsumerMember(("t",), rack="r1"),
        "b": ConsumerMember(("t",), rack="r2"),
    }
    racks = {"t": [frozenset({"r2"}), frozenset({"r1"})]}
    by_rack = assign_range(ConsumerGroupSpec(members, {"t": 2}, racks))
    assert by_rack == {"a": partitions("t", 1), "b": partitions("t", 0)}
    members = {"a": ConsumerMember(("t",)), "b": ConsumerMember(("t",), instance_id="first")}
    assert assign_range(ConsumerGroupSpec(members, {"t": 1}))["b"] == partitions("t", 0)


def test_a_target_beyond_its_topic_fails_as_in_kafka() -> None:
    members = {
        "a": ConsumerMember(("t",), owned=partitions("t", 7)),
        "b": ConsumerMember(("t", "u")),
    }
    with pytest.raises(AssignorFails, match="a has t-7"):
        assign_uniform(ConsumerGroupSpec(members, {"t": 2, "u": 2}))


def test_a_group_for_which_kafkas_sticky_assignor_never_ends_is_found_out() -> None:
    """Found by tests/oracle; the published assignor had no answer after twenty seconds."""
    racks = ["r1 r2", "r3 r1", "r3 r2", "r3", "r3", "r2", "r2 r1"]
    members = {
        "C-57231": ConsumerMember(("c",), owned=partitions("c", 0, 6), generation=3),
        "consumer-419755": ConsumerMember(("t",)),
        "consumer-543029": ConsumerMember(("t", "c"), rack="r1", owned=partitions("t", 12)),
        "zz-306548": ConsumerMember(("c",), owned=partitions("c", 1), generation=3),
        "\u00fc-775478": ConsumerMember(("t",)),
    }
    topics = {"t": 14, "c": 7}
    by_topic = {"c": [frozenset(each.split()) for each in racks]}
    with pytest.raises(AssignorFails, match="for ever"):
        assign_sticky(ConsumerGroupSpec(members, topics, by_topic))

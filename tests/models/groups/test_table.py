"""Topics by name and id, and who reads them."""

from __future__ import annotations

from caughtup.models.groups.membership import Membership
from caughtup.models.groups.table import GroupTable, TopicNames
from caughtup.models.wire.consumer_group_records import ConsumerGroupMetadata
from caughtup.models.wire.record_keys import ConsumerGroupKey, RecordType

OLD, NEW = b"o" * 16, b"n" * 16


def test_a_topic_made_again_has_its_new_id_only() -> None:
    topics = TopicNames()
    assert topics.learn("clicks", OLD)
    assert not topics.learn("clicks", OLD)
    assert topics.learn("clicks", NEW)
    assert topics.names == {NEW: "clicks"}
    topics.forget("clicks")
    assert topics.names == {}
    topics.forget("clicks")


def test_what_the_brokers_told_counts_and_they_are_asked_again_where_a_commit_says_otherwise() -> (
    None
):
    topics = TopicNames()
    assert topics.learn("clicks", OLD)
    assert topics.unknown(["clicks", "orders"]) == {"clicks", "orders"}
    assert not topics.learn("clicks", OLD, confirmed=True)
    assert topics.unknown(["clicks", "orders"]) == {"orders"}
    for _ in range(2):
        assert not topics.learn("clicks", NEW)
    assert topics.names == {OLD: "clicks"}
    assert topics.unknown(["clicks"]) == {"clicks"}
    assert topics.learn("clicks", NEW, confirmed=True)
    assert topics.names == {NEW: "clicks"}
    assert topics.unknown(["clicks"]) == set()
    topics.forget("clicks")
    assert topics.unknown(["clicks"]) == {"clicks"}


def test_an_id_is_one_topics_and_the_brokers_say_whose() -> None:
    topics = TopicNames()
    topics.learn("clicks", OLD)
    assert not topics.learn("orders", OLD)
    assert topics.names == {OLD: "clicks"}
    assert topics.learn("orders", OLD, confirmed=True)
    assert topics.names == {OLD: "orders"}
    assert topics.unknown(["clicks", "orders"]) == {"clicks"}
    assert topics.learn("clicks", NEW)
    assert topics.names == {OLD: "orders", NEW: "clicks"}
    for topic in ("clicks", "orders", "clicks"):
        topics.forget(topic)
    assert topics.names == {}


def test_an_id_that_two_topics_are_told_to_have_is_that_of_the_last_and_the_other_is_asked_for() -> (
    None
):
    names = TopicNames()
    assert names.learn("orders", OLD, confirmed=True)
    assert names.learn("forged", OLD, confirmed=True)
    assert names.names == {OLD: "forged"}
    assert names.unknown(["orders", "forged"]) == {"orders"}
    assert names.learn("orders", OLD, confirmed=True)
    assert names.names == {OLD: "orders"}
    names.forget("forged")
    names.forget("orders")
    assert names.names == {}


def test_a_group_goes_back_to_the_classic_protocol_and_loses_its_other_records_after_that() -> None:
    groups = GroupTable({}, dict)
    key = ConsumerGroupKey(RecordType.CONSUMER_GROUP_METADATA, "orders")
    groups.apply_consumer(key, ConsumerGroupMetadata(7, 0))
    classic = Membership("classic", 8, (), {}, frozenset())
    groups.apply_classic("orders", classic)  # a batch's classic records are applied first
    groups.apply_consumer(key, None)
    assert groups.membership("orders") == classic
    groups.apply_classic("orders", None)
    assert groups.membership("orders") is None
    assert groups.names() == set()

"""Topics by name and id, and who reads them."""

from __future__ import annotations

from caughtup.models.topic_names import TopicNames, TopicReaders

OLD, NEW = b"o" * 16, b"n" * 16


def test_a_topic_made_again_has_its_new_id_only() -> None:
    topics = TopicNames()
    assert topics.learn("clicks", OLD)
    assert not topics.learn("clicks", OLD)
    assert topics.learn("clicks", NEW)
    assert topics.names == {NEW: "clicks"}
    assert topics.unknown(["clicks", "orders"]) == {"orders"}
    topics.forget("clicks")
    assert topics.names == {}
    topics.forget("clicks")


def test_a_group_reads_a_topic_as_long_as_it_has_a_commit_on_any_partition() -> None:
    readers = TopicReaders()
    for _ in range(2):
        readers.add("clicks", "billing")
    readers.add("clicks", "audit")
    readers.remove("clicks", "billing")
    assert sorted(readers.groups("clicks")) == ["audit", "billing"]
    readers.remove("clicks", "billing")
    assert list(readers.groups("clicks")) == ["audit"]
    readers.remove("clicks", "audit")
    assert readers.topics() == set()


def test_an_id_that_two_topics_claim_is_that_of_the_last_which_the_other_can_get_back() -> None:
    names = TopicNames()
    assert names.learn("orders", b"1")
    assert names.learn("forged", b"1")
    assert names.names == {b"1": "forged"}
    assert names.unknown(["orders", "forged"]) == {"orders"}
    assert names.learn("orders", b"1")
    assert names.names == {b"1": "orders"}
    names.forget("forged")
    assert names.names == {b"1": "orders"}
    assert names.learn("forged", b"2")
    assert names.learn("forged", b"1")
    names.forget("orders")
    assert names.names == {b"1": "forged"}

"""Topics that were made or deleted lately, in bounds."""

from __future__ import annotations

from caughtup.models.rebalances.topics import TopicChanges

START_MS = 1_800_000_000_000


def test_topics_are_new_or_gone_for_ten_minutes() -> None:
    changes = TopicChanges()
    changes.apply(["a", "b"], [], START_MS)
    changes.apply([], ["b", "c"], START_MS + 1_000)
    assert [changes.is_new(name) for name in "abc"] == [True, False, False]
    assert [changes.is_gone(name) for name in "abc"] == [False, True, True]
    changes.apply(["b"], [], START_MS + 2_000)
    assert (changes.is_new("b"), changes.is_gone("b")) == (True, False)
    changes.apply([], [], START_MS + 601_500)
    assert (changes.is_new("a"), changes.is_new("b"), changes.is_gone("c")) == (False, True, False)


def test_many_topics_at_once_are_bounded() -> None:
    changes = TopicChanges()
    changes.apply([f"topic-{number}" for number in range(30_000)], [], START_MS)
    assert not changes.is_new("topic-0")
    assert changes.is_new("topic-29999")

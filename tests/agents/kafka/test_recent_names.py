"""What was noted in the last ten minutes."""

from __future__ import annotations

from caughtup.agents.kafka.recent_names import SECONDS, RecentNames


def test_a_name_counts_for_ten_minutes_and_can_be_forgotten() -> None:
    now = 0.0
    names = RecentNames(lambda: now)
    for name in ("a", "b", "c"):
        names.add(name)
    assert "a" in names
    names.drop("a")
    assert "a" not in names
    names.keep_only({"b"})
    assert ("b" in names, "c" in names) == (True, False)
    now = SECONDS + 1
    assert "b" not in names
    assert names.known() == {"b"}
    names.add("b")
    assert "b" in names


def test_the_oldest_name_is_forgotten_first() -> None:
    names = RecentNames(most=2)
    for name in ("a", "b", "a", "c"):
        names.add(name)
    assert names.known() == {"a", "c"}

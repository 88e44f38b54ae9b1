"""What no broker takes is counted by topic and reason, and kept by key until it is made good."""

from __future__ import annotations

from caughtup.models.faults import KEYS_KEPT, SetAside, SetAsideRecords


def test_it_is_counted_and_kept_by_its_key_with_why_and_when() -> None:
    noted: list[SetAside] = []
    aside = SetAsideRecords(noted.append)
    aside.add("decisions", b"orders", "too_large", "9 bytes", 1_000)
    aside.add("decisions", b"orders", "too_large", "10 bytes", 2_000)
    aside.add("events", b"orders", "unsendable", "", 3_000)
    assert aside.counts == {("decisions", "too_large"): 2, ("events", "unsendable"): 1}
    assert aside.of("orders") == [
        SetAside("decisions", "orders", "too_large", "10 bytes", 2, 2_000),
        SetAside("events", "orders", "unsendable", "", 1, 3_000),
    ]
    assert [one.at_ms for one in aside.newest()] == [3_000, 2_000]
    assert [one.times for one in noted] == [1, 2, 1]


def test_a_newer_record_of_the_key_on_the_same_topic_makes_it_good() -> None:
    aside = SetAsideRecords()
    for topic in ("decisions", "events"):
        aside.add(topic, b"orders", "too_large", "", 1)
    aside.written("decisions", b"orders")
    aside.written("decisions", b"others")
    assert [one.topic for one in aside.of("orders")] == ["events"]
    aside.add("decisions", b"orders", "too_large", "", 2)
    assert aside.of("orders")[0].times == 1


def test_of_a_key_that_is_gone_nothing_is_kept() -> None:
    aside = SetAsideRecords()
    for topic in ("decisions", "events"):
        aside.add(topic, b"orders", "too_large", "", 1)
    aside.add("decisions", b"others", "too_large", "", 1)
    aside.forget("orders")
    aside.forget("nobody")
    assert [one.key for one in aside.newest()] == ["others"]


def test_the_newest_keys_are_kept_however_many_there_are_and_however_long() -> None:
    aside = SetAsideRecords()
    for number in range(3 * KEYS_KEPT):
        key = f"{number}-".encode() * 1_000
        aside.add("decisions", key, "too_large", "x" * 10_000, number)
    kept = aside.newest()
    assert len(kept) == KEYS_KEPT
    assert kept[0].at_ms == 3 * KEYS_KEPT - 1
    assert max(len(one.key) + len(one.message) for one in kept) <= 400
    assert aside.of(f"{3 * KEYS_KEPT - 1}-" * 1_000)
    assert aside.counts.total() == 3 * KEYS_KEPT


def test_a_key_that_is_no_text_is_kept_all_the_same() -> None:
    aside = SetAsideRecords()
    aside.add("decisions", b"\xff\x00", "too_large", "", 1)
    assert [one.key for one in aside.newest()] == ["\\xff\x00"]
    aside.written("decisions", b"\xff\x00")
    assert aside.newest() == []

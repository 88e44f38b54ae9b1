"""Refused records are counted by topic and reason; the newest of each topic is kept, cut short."""

from __future__ import annotations

from caughtup.models.faults import Refusal, RefusedRecords


def test_records_are_counted_by_topic_and_reason() -> None:
    refused = RefusedRecords()
    refused.refuse("lag", b"a", "bad_json", "not JSON", 1)
    refused.refuse("lag", b"b", "bad_json", "not JSON", 2)
    refused.refuse("lag", b"c", "too_large", "9 bytes", 3)
    refused.refuse("movements", None, "bad_json", "not JSON", 4)
    assert refused.counts == {
        ("lag", "bad_json"): 2,
        ("lag", "too_large"): 1,
        ("movements", "bad_json"): 1,
    }
    assert refused.of("lag") == 3
    assert refused.newest == {
        "lag": Refusal("lag", "c", "too_large", "9 bytes", 3),
        "movements": Refusal("movements", "", "bad_json", "not JSON", 4),
    }


def test_what_is_kept_of_a_record_is_short_whatever_its_key_holds() -> None:
    refused = RefusedRecords()
    refused.refuse("lag", b"\xff" * 50_000, "bad_key", "x" * 50_000, 1)
    kept = refused.newest["lag"]
    assert len(kept.key) == 80
    assert kept.key.startswith("\\xff\\xff")
    assert len(kept.message) == 80

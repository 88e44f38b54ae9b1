"""What Kafka works out of a string's hash."""

from __future__ import annotations

from caughtup.models.assignors.java.strings import coordinator_partition


def test_a_group_is_kept_where_javas_hash_of_its_name_says() -> None:
    assert coordinator_partition("orders", 50) == 31  # its hash is -1008770331
    assert coordinator_partition("polygenelubricants", 50) == 0  # its hash is Java's least integer
    assert coordinator_partition("", 50) == 0

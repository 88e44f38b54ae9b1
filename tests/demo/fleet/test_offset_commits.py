"""Generated commits are shaped as the brokers write them."""

from __future__ import annotations

from caughtup.demo.fleet.offset_commits import TOPIC, commit_key, commit_value
from caughtup.models.polls.batch import decode_batch
from caughtup.models.wire.consumer_offsets import OffsetCommit, OffsetKey


def test_a_generated_commit_is_read_as_one() -> None:
    batch = decode_batch([(commit_key("readers", 7), commit_value(42, 1_700_000_000_000))])
    key = OffsetKey("readers", TOPIC, 7)
    assert batch.commits.by_key() == {
        key: OffsetCommit(42, 0, "", 1_700_000_000_000, -1, bytes(range(16)))
    }
    assert not batch.errors

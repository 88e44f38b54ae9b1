"""Commits as read from the log, built from values."""

from __future__ import annotations

from collections.abc import Iterable

from caughtup.models.ids import TopicPartition
from caughtup.models.polls.batch import decode_batch
from caughtup.models.polls.commit_columns import CommitColumns
from caughtup.models.wire.consumer_offsets import OffsetCommit, OffsetKey
from tests.support import wire

Made = tuple[str, TopicPartition, OffsetCommit | None]


def columns(commits: Iterable[Made]) -> CommitColumns:
    """Encode commits (None for a tombstone), and decode them as one poll."""
    records = [
        (
            wire.offset_key(OffsetKey(group, *partition)),
            None if commit is None else wire.offset_commit(commit, 4),
        )
        for group, partition, commit in commits
    ]
    batch = decode_batch(records)
    assert not batch.errors, batch.samples
    return batch.commits

"""Commits that don't come from records, as columns like those of a poll."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from caughtup.models.commits.places import head_of
from caughtup.models.ids import TopicPartition
from caughtup.models.polls.commit_columns import NO_OFFSET, NO_TOPIC_ID, CommitColumns
from caughtup.models.polls.records import ListedRecords


def made_commits(
    group: str, offsets: Mapping[TopicPartition, int | None], time_ms: int
) -> CommitColumns:
    """Return a group's commits at a time (ms); None for a partition that has no commit any more.

    They have no records. Names must fit in a key: 32,767 bytes each.
    """
    heads: dict[str, int] = {}
    for topic, _ in offsets:
        heads.setdefault(topic, len(heads))
    made = [NO_OFFSET if offset is None else offset for offset in offsets.values()]
    count = len(made)
    return CommitColumns(
        heads=[head_of(group, topic) for topic in heads],
        head=np.fromiter((heads[topic] for topic, _ in offsets), np.int64, count),
        partition=np.fromiter((number for _, number in offsets), np.int64, count),
        offset=np.array(made, np.int64),
        time_ms=np.full(count, time_ms, np.int64),
        topic_id=np.full(count, NO_TOPIC_ID, np.int64),
        topic_ids=[],
        records=ListedRecords([], []),
    )

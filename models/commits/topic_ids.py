"""Topics' ids, each kept once and called by a number."""

from __future__ import annotations

import numpy as np

from caughtup.models.commits.columns import Columns
from caughtup.models.polls.commit_columns import NO_OFFSET, NO_TOPIC_ID

#: Ids that no row has are looked for once so many were removed, and half as many as there are.
_FEWEST_REMOVED = 64
#: What stands for an id that has no number.
UNKNOWN_ID = -2


class TopicIds:
    """Numbers ids of topics (16 bytes)."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self._ids: list[bytes] = []
        self._removed = 0

    def __len__(self) -> int:
        return len(self._ids)

    def number(self, topic_id: bytes | None) -> int:
        """Return the number of an id, a new one for one that has none; NO_TOPIC_ID for None."""
        if topic_id is None:
            return NO_TOPIC_ID
        number = self._numbers.get(topic_id)
        if number is None:
            number = self._numbers[topic_id] = len(self._ids)
            self._ids.append(topic_id)
        return number

    def known(self, topic_id: bytes) -> int:
        """Return the number of an id, UNKNOWN_ID for one that has none."""
        return self._numbers.get(topic_id, UNKNOWN_ID)

    def find(self, number: int) -> bytes | None:
        """Return the id of a number; None for NO_TOPIC_ID."""
        return None if number == NO_TOPIC_ID else self._ids[number]

    def sweep(self, columns: Columns, removed: int) -> None:
        """Forget the ids that no row has, if there may be many of them; the rest get other numbers.

        ``removed`` counts what went since the last time: groups' topics, each with an id perhaps.
        """
        self._removed += removed
        if self._removed < max(_FEWEST_REMOVED, len(self._ids) // 2):
            return
        self._removed = 0
        # Rows without a commit may still have a number.
        there = np.where(columns.offset == NO_OFFSET, NO_TOPIC_ID, columns.topic_id)
        rows = np.bincount(there + 1, minlength=len(self._ids) + 1)[1:]
        kept = np.flatnonzero(rows)
        numbers = np.full(len(self._ids) + 1, NO_TOPIC_ID, np.int32)
        numbers[kept] = np.arange(len(kept))
        columns.topic_id[:] = numbers[there]
        self._ids = [self._ids[number] for number in kept.tolist()]
        self._numbers = {topic_id: number for number, topic_id in enumerate(self._ids)}

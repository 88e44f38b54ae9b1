"""The newest end offsets of a topic's partitions as columns, for whoever asks about all of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from caughtup.models.offsets import EndOffsets

#: What stands for the time of a partition of which nothing is known.
NEVER_MS = -1
#: One in so many of the numbers up to the greatest is a partition's, at least: there are topics
#: with as many as somebody wrote, who may write any number.
_CLOSE = 8
_FEWEST = 64


class EndColumns(NamedTuple):
    """By partition: ``start``, ``end`` and ``readable`` offsets and when they were asked for (ms).

    All int64. ``readable`` is the readable end offset or, where nobody asked for it, the last
    stable one. ``as_of_ms`` is NEVER_MS where the topic has no such partition.
    """

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    readable: NDArray[np.int64]
    as_of_ms: NDArray[np.int64]

    def put(self, partition: int, ends: EndOffsets) -> None:
        """Put a newer sample in the place of a partition's."""
        readable = ends.readable_end_offset
        self.start[partition] = ends.start_offset
        self.end[partition] = ends.end_offset
        self.readable[partition] = ends.last_stable_offset if readable is None else readable
        self.as_of_ms[partition] = ends.as_of_ms


def end_columns(samples: Iterable[tuple[int, EndOffsets]]) -> EndColumns | None:
    """Make columns of samples by partition; None if their numbers are too far apart for that."""
    known = dict(samples)
    size = max(known, default=-1) + 1
    if size > max(_FEWEST, _CLOSE * len(known)):
        return None
    made = EndColumns(*(np.zeros(size, np.int64) for _ in EndColumns._fields))
    made.as_of_ms.fill(NEVER_MS)
    for partition, ends in known.items():
        made.put(partition, ends)
    return made

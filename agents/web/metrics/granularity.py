"""The granularity of a group's series (partition, topic or group), and the folding of figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from caughtup.agents.watching_settings import Granularity
from caughtup.models.ids import TopicPartition
from caughtup.models.offsets import LONG_MAX
from caughtup.models.polls.column_reader import Ints, Rows

#: Integers or floats.
Figures = NDArray[Any]

#: Sums of offsets are kept in two halves of this many bits, so that none overflows.
_LOW_BITS = 32
_LOW = (1 << _LOW_BITS) - 1


class Detail(NamedTuple):
    """The granularity of groups' series; ``limit`` is the most series of a group in a metric."""

    granularity: Granularity = "partition"
    limit: int | None = None

    def of(self, partitions: Sequence[TopicPartition]) -> Granularity:
        """Return the granularity of a group with these partitions."""
        found = self.granularity
        if self.limit is None:
            return found
        if found == "partition" and len(partitions) > self.limit:
            found = "topic"
        if found == "topic" and len({topic for topic, _ in partitions}) > self.limit:
            found = "group"
        return found


class Fold(NamedTuple):
    """How the figures of several partitions are reduced to one: the ufunc, and its start.

    Partitions without a figure don't count, as in PromQL's ``sum by`` and ``max by``.
    """

    ufunc: np.ufunc
    first: float


SUM = Fold(np.add, 0)
MOST = Fold(np.maximum, -np.inf)
EVERY = Fold(np.minimum, 1)


class Totals:
    """Folded figures by key, accumulated over slices of partitions."""

    def __init__(self, count: int, fold: Fold) -> None:
        self._fold = fold
        self._known = np.zeros(count, np.bool_)
        self._figures: Figures | None = None
        #: The upper bits of sums of offsets.
        self._high: Ints = np.zeros(count, np.int64)

    def add(self, keys: Ints, values: Figures, known: Rows | None) -> None:
        """Add figures under their keys, those that are known; None means all."""
        if known is not None:
            keys, values = keys[known], values[known]
        self._known[keys] = True
        ufunc, first = self._fold
        if self._figures is None:
            if first == -np.inf and values.dtype.kind == "i":
                first = np.iinfo(values.dtype).min
            self._figures = np.full(len(self._known), first, values.dtype)
        if ufunc is np.add and values.dtype == np.int64:
            np.add.at(self._high, keys, values >> _LOW_BITS)
            values = values & _LOW
        ufunc.at(self._figures, keys, values)

    def figures(self) -> tuple[Figures, Rows]:
        """Return the figure of each key, and whether it has one; sums are capped at Long.MAX_VALUE."""
        if self._figures is None:
            return np.zeros(len(self._known)), self._known
        if not self._high.any():
            return self._figures, self._known
        high = self._high + (self._figures >> _LOW_BITS)
        sums = (high << _LOW_BITS) + (self._figures & _LOW)
        return np.where(high > LONG_MAX >> _LOW_BITS, LONG_MAX, sums), self._known

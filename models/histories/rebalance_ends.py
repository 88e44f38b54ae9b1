"""End offsets listed again and again while a group rebalances, to bound those that its leader got.

A leader lists end offsets after the last member has joined, and before its decision is written to
``__consumer_offsets``. So what was listed while the group still waited for its members is a lower
bound, and what was asked for after the record was written an upper one. Neither needs a clock: the
order is known from the group's state, and from the end of its partition of ``__consumer_offsets``,
which is listed together with the changelogs.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from caughtup.models.ids import TopicPartition

#: The listings that are kept of a group: some seconds' worth.
MOST_LISTINGS = 48
_UNKNOWN = -1


class ListedBounds(NamedTuple):
    """Bounds of the log end offset that a leader got; None for one that isn't known."""

    low: int | None = None
    high: int | None = None

    def meet(self, bounds: tuple[int, int] | None) -> tuple[int, int] | None:
        """Return the common part of these and other bounds.

        If they have none, as after a topic was recreated, the others stay; None if one bound is
        missing in both.
        """
        if bounds is None:
            return None if self.high is None else (self.low or 0, self.high)
        low = bounds[0] if self.low is None else max(bounds[0], self.low)
        high = bounds[1] if self.high is None else min(bounds[1], self.high)
        return (low, high) if low <= high else bounds


NO_BOUNDS = ListedBounds()


@dataclass(slots=True)
class _Listing:
    """One listing: all its requests were sent after the one before was answered.

    ``ends`` is in the order of the partitions, ``log_end`` that of the group's partition of
    ``__consumer_offsets``. ``is_joining``: after it was answered, the group waited for members.
    """

    ends: array[int]
    log_end: int
    is_joining: bool = False


class RebalanceEnds:
    """The listings of a group's changelogs, oldest first."""

    __slots__ = ("_listings", "partitions")

    def __init__(self, partitions: Sequence[TopicPartition]) -> None:
        self.partitions = tuple(partitions)
        self._listings: deque[_Listing] = deque(maxlen=MOST_LISTINGS)

    def add(self, ends: Mapping[TopicPartition, int], log_end: int | None) -> None:
        """Add a listing; partitions and an end that weren't answered are unknown in it."""
        found = array("q", [ends.get(partition, _UNKNOWN) for partition in self.partitions])
        self._listings.append(_Listing(found, _UNKNOWN if log_end is None else log_end))

    def is_joining(self) -> None:
        """Note that the group, asked after the last listing was answered, waited for members."""
        if self._listings:
            self._listings[-1].is_joining = True

    def awaits(self, offset: int) -> bool:
        """Return whether the next listings may give upper bounds for the record at an offset."""
        known = (one.log_end > offset for one in list(self._listings)[:-1])
        return bool(self._listings) and not any(known)

    def bounds(self, offset: int) -> dict[TopicPartition, ListedBounds]:
        """Return bounds for the generation whose record has an offset in ``__consumer_offsets``.

        The record was not written yet when the listing after a lower bound was answered, and it was
        when the one before an upper bound was.
        """
        listings = [one for one in self._listings if one.log_end != _UNKNOWN]
        low = high = None
        for one, following in pairwise(listings):
            if one.is_joining and following.log_end <= offset:
                low = one
            if high is None and one.log_end > offset:
                high = following
        return {
            partition: ListedBounds(_end(low, place), _end(high, place))
            for place, partition in enumerate(self.partitions)
        }

    def __len__(self) -> int:
        return len(self._listings)


def _end(listing: _Listing | None, place: int) -> int | None:
    if listing is None or listing.ends[place] == _UNKNOWN:
        return None
    return listing.ends[place]

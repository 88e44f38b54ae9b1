"""What was true, and when, as far as samples tell."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence
from itertools import pairwise
from typing import NamedTuple

#: Longer than any fault and its grace.
KEPT_SECONDS = 400.0
#: Within so much nothing rises and falls: who commits pauses for as long, and an election lasts longer.
OFTEN_SECONDS = 1.0

#: Nobody was asked for so long only where nobody could answer.
GAP_SECONDS = 2.0


class Sample(NamedTuple):
    """A value that was true at some moment between two (s, monotonic); None: there was none."""

    began: float
    ended: float
    value: int | None


class Bounds(NamedTuple):
    """What a value can have been: at least, at most; ``absent`` if there may have been none."""

    low: int
    high: int
    absent: bool = False

    def __contains__(self, value: object) -> bool:
        return isinstance(value, int | float) and self.low <= value <= self.high


class History:
    """The samples of one value, oldest first, of the last minutes; ``falls``: whether it may."""

    def __init__(self, *, falls: bool = False) -> None:
        self._samples: deque[Sample] = deque()
        self._falls = falls

    @property
    def newest(self) -> Sample | None:
        """The last sample."""
        return self._samples[-1] if self._samples else None

    def add(self, sample: Sample) -> None:
        """Append a sample that was taken after all others."""
        self._samples.append(sample)
        while self._samples[0].ended < sample.began - KEPT_SECONDS:
            self._samples.popleft()

    def between(self, since: float, until: float) -> tuple[Sample, ...] | None:
        """Return the samples from the last one before a time to the first one after another.

        Whatever the value was between, it was sampled, or lies between what was: a value rises, or
        was sampled often enough where it falls. None as long as there is no sample after, if there
        is none before, or if one that may fall went without for too long.
        """
        found: list[Sample] = []
        for sample in self._samples:
            if sample.ended <= since:
                found = []
            found.append(sample)
            if sample.began >= until:
                return tuple(found) if found[0].ended <= since and self._often(found) else None
        return None

    def unseen_since(self, since: float, until: float) -> float | None:
        """Return when the last sample before a gap within two times began; None without a gap.

        A gap: no answer came for longer than ``GAP_SECONDS``, as while a partition has no leader.
        """
        for earlier, later in pairwise([*self._samples, Sample(until, until, None)]):
            if later.ended - earlier.ended > GAP_SECONDS and later.ended > since:
                return earlier.began if earlier.ended < until else None
        return None

    def _often(self, samples: Sequence[Sample]) -> bool:
        """Return whether nothing can have come and gone between two of the samples."""
        return not self._falls or all(
            later.ended - earlier.began <= OFTEN_SECONDS for earlier, later in pairwise(samples)
        )

    def known_at(self, at: float) -> bool:
        """Return whether there was a value at the last sample before a time."""
        values = [sample.value for sample in self._samples if sample.ended <= at]
        return bool(values) and values[-1] is not None

    def passed(self, value: float) -> float | None:
        """Return when the value was first seen beyond another; None if it wasn't since."""
        for earlier, sample in zip([None, *self._samples], self._samples, strict=False):
            beyond = sample.value is not None and sample.value > value
            if beyond and (earlier is None or earlier.value is None or earlier.value <= value):
                return sample.ended
        return None


class Truth:
    """A history of each value, by its key; ``cut`` are the topics whose logs may be cut."""

    def __init__(self, cut: frozenset[str] = frozenset()) -> None:
        self._histories: dict[tuple[Hashable, ...], History] = {}
        self._cut = cut

    def add(self, key: tuple[Hashable, ...], began: float, ended: float, value: int | None) -> None:
        """Append a sample to the history of a value."""
        if key not in self._histories:
            self._histories[key] = History(falls=not self._cut.isdisjoint(key))
        self._histories[key].add(Sample(began, ended, value))

    def of(self, key: tuple[Hashable, ...]) -> History:
        """Return a value's history, an empty one if it was never sampled."""
        return self._histories.get(key, History())

    def bounds(self, key: tuple[Hashable, ...], since: float, until: float) -> Bounds | None:
        """Return what a value can have been between two times; None where nobody can say (yet)."""
        samples = self.of(key).between(since, until)
        if samples is None:
            return None
        values = [sample.value for sample in samples if sample.value is not None]
        if not values:
            return Bounds(0, 0, absent=True)
        return Bounds(min(values), max(values), len(values) < len(samples))


def added(parts: Sequence[Bounds | None]) -> Bounds | None:
    """Add bounds up; None if one of them isn't known."""
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    return Bounds(sum(part.low for part in known), sum(part.high for part in known))

"""Figures over time in bounded memory: every ten seconds at first, then every two minutes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan

import numpy as np
from numpy.typing import NDArray

#: The time between two samples (ms), and the number kept: the last 30 minutes.
STEP_MS, _FINE = 10_000, 180
#: The time of each coarse sample (ms), and the number kept: the five hours before.
_WINDOW_MS, _COARSE = 120_000, 165

UNKNOWN = float("nan")


class _Ring:
    """The newest ``size`` samples of some figures (float32), by time (ms)."""

    def __init__(self, figures: int, size: int) -> None:
        self._at_ms = np.zeros(size, np.int64)
        self._values = np.full((figures, size), np.nan, np.float32)
        self._count = 0

    def append(self, at_ms: int, values: Sequence[float]) -> None:
        at = self._count % len(self._at_ms)
        self._at_ms[at] = at_ms
        self._values[:, at] = values
        self._count += 1

    def since(self, at_ms: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return times and figures of the samples at or after a time (ms), the oldest first."""
        size = len(self._at_ms)
        order = np.arange(max(0, self._count - size), self._count) % size
        order = order[self._at_ms[order] >= at_ms]
        return self._at_ms[order], self._values[:, order]


class Series:
    """Named figures of one subject over the last hours.

    Of samples older than half an hour the greatest of each two minutes is kept, so that no peak is
    lost. An unknown figure is NaN. 4.2 kB for three figures.
    """

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self._begin()

    def _begin(self) -> None:
        self._fine = _Ring(len(self.names), _FINE)
        # Created late, because many groups of test clusters are short-lived.
        self._coarse: _Ring | None = None
        self._window, self._greatest = -1, [UNKNOWN] * len(self.names)
        self._newest_ms = 0

    def add(self, at_ms: int, figures: Mapping[str, float]) -> None:
        """Add a sample of a time (ms).

        One that isn't later than the last starts the series again.
        """
        if at_ms <= self._newest_ms:  # the clock was set back
            self._begin()
        values = [figures.get(name, UNKNOWN) for name in self.names]
        window = at_ms // _WINDOW_MS
        if window != self._window:
            if self._window >= 0:
                if self._coarse is None:
                    self._coarse = _Ring(len(self.names), _COARSE)
                self._coarse.append(self._window * _WINDOW_MS, self._greatest)
            self._window, self._greatest = window, values
        else:
            self._greatest = [
                new if isnan(old) or new > old else old
                for old, new in zip(self._greatest, values, strict=True)
            ]
        self._fine.append(at_ms, values)
        self._newest_ms = at_ms

    def newest(self, name: str, count: int, *, each: int = 1) -> list[float | None]:
        """Return the ``count`` newest samples of a figure, the oldest first; None for unknown.

        ``each``: with 6 every sixth of them, counted from the newest.
        """
        _, values = self._fine.since(0)
        return _known(values[self.names.index(name)][::-each][:count][::-1])

    def columns(self) -> tuple[list[int], dict[str, list[float | None]]]:
        """Return the times (ms) of all samples, the oldest first, and each figure's values."""
        fine_ms, fine = self._fine.since(0)
        if self._coarse is not None and len(fine_ms):
            coarse_ms, coarse = self._coarse.since(0)
            before = coarse_ms + _WINDOW_MS <= fine_ms[0]
            fine_ms = np.concatenate((coarse_ms[before], fine_ms))
            fine = np.concatenate((coarse[:, before], fine), axis=1)
        return fine_ms.tolist(), {
            name: _known(values) for name, values in zip(self.names, fine, strict=True)
        }


def _known(values: NDArray[np.float32]) -> list[float | None]:
    return [None if isnan(value) else value for value in values.tolist()]

"""The CPU time and the peak memory of the descendants of this process."""

from __future__ import annotations

import os
import threading
from collections import Counter
from pathlib import Path
from typing import NamedTuple, Self

_SAMPLE_SECONDS = 0.25
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class _ProcessUsage(NamedTuple):
    parent: int
    name: str
    ticks: int
    resident_bytes: int


def cpu_seconds(besides: frozenset[int] = frozenset()) -> float:
    """Return the CPU time (s) of all descendants, with their own children that have ended.

    The processes ``besides`` and their descendants are left out.
    """
    return sum(process.ticks for process in _below(besides).values()) / _TICKS


class PeakMemory:
    """The peak resident memory of descendants, by program, inside the context."""

    def __init__(self, besides: frozenset[int] = frozenset()) -> None:
        self.peaks: dict[str, int] = {}
        self._besides = besides
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(_SAMPLE_SECONDS):
            now: Counter[str] = Counter()
            for process in _below(self._besides).values():
                now[process.name] += process.resident_bytes
            for name, resident in now.items():
                self.peaks[name] = max(resident, self.peaks.get(name, 0))


def _below(besides: frozenset[int]) -> dict[int, _ProcessUsage]:
    """Read all processes below this one. See proc(5), ``/proc/pid/stat``."""
    every = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = path.read_text(errors="replace").partition("(")[2].rpartition(")")
        except OSError:  # it has ended
            continue
        fields = rest.split()
        used = sum(map(int, fields[11:15]))
        resident = int(fields[21]) * _PAGE_BYTES
        every[int(path.parent.name)] = _ProcessUsage(int(fields[1]), name, used, resident)
    below = {os.getpid()}
    while (
        more := {pid for pid, one in every.items() if one.parent in below and pid not in besides}
        - below
    ):
        below |= more
    return {pid: every[pid] for pid in sorted(below - {os.getpid()})}

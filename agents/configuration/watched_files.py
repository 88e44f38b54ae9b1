"""Detect changes of files, so that rotated files are read again without a restart."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

#: The least time between two checks.
_LOOK_SECONDS = 1.0

_Stamp = tuple[tuple[int, int, int] | None, ...]


class WatchedFiles:
    """Checks files for changes when it is called, at most once a second."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = paths
        self._seen = self._stamp()
        self._looked = time.monotonic()

    def changed(self) -> bool:
        """Return whether a file has changed since the last check. Within a second of it: False."""
        now = time.monotonic()
        if now < self._looked + _LOOK_SECONDS:
            return False
        self._looked = now
        before, self._seen = self._seen, self._stamp()
        return self._seen != before

    def _stamp(self) -> _Stamp:
        return tuple(_stamp_of(path) for path in self._paths)


def _stamp_of(path: Path) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)  # follows links: Kubernetes switches mounted secrets by a link
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size

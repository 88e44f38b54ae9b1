"""Detects when files have changed, so that what is rotated on disk is read again without a restart."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

#: Files are looked at as often as this at most.
_LOOK_SECONDS = 1.0

_Stamp = tuple[tuple[int, int, int] | None, ...]


class WatchedFiles:
    """Looks at files whenever it is asked, since nobody needs them earlier."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = paths
        self._seen = self._stamp()
        self._looked = time.monotonic()

    def changed(self) -> bool:
        """Return whether any of them has changed since this was last true."""
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
        found = os.stat(path)  # follows links: a secret that is mounted is switched by one
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size

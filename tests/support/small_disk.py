"""A separate file system that can be full."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(place: Path, size: int) -> Iterator[Path]:
    """Mount a file system of ``size`` bytes at a new folder; skips the test without root."""
    place.mkdir()
    options = ["-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)]
    if subprocess.run(["mount", *options], capture_output=True, check=False).returncode:
        pytest.skip("nobody but root may mount a disk")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)

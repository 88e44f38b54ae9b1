"""Control groups of this machine, in either version: what a container may take, and what it took."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.service import wait_for

#: Where the groups for memory are, with the names of their limit, their highest use (which has the
#: files that the kernel keeps in memory, too), and their count of processes killed for memory.
_VERSIONS = (
    (
        Path("/sys/fs/cgroup/memory"),
        "memory.limit_in_bytes",
        "memory.max_usage_in_bytes",
        "memory.oom_control",
    ),
    (Path("/sys/fs/cgroup"), "memory.max", "memory.peak", "memory.events"),
)


@dataclass(frozen=True)
class MemoryGroup:
    """A control group with a limit on memory."""

    directory: Path
    _peak: str
    _killed: str

    def peak(self) -> int:
        """Return the highest use so far, in bytes."""
        return int((self.directory / self._peak).read_text())

    def killed(self) -> int:
        """Return how many of its processes the kernel killed for memory."""
        text = (self.directory / self._killed).read_text()
        (count,) = re.findall(r"^oom_kill (\d+)", text, re.MULTILINE)
        return int(count)


@contextmanager
def memory_group(limit: int) -> Iterator[MemoryGroup]:
    """Make a control group with a limit in bytes, until the context is left: it is empty then.

    The test is skipped where there is none.
    """
    found = [version for version in _VERSIONS if (version[0] / "cgroup.procs").exists()]
    if not found:
        pytest.skip("there is no control group for memory on this machine")
    top, name, peak, killed = found[0]
    group = top / f"caughtup-{os.getpid()}"
    group.mkdir()
    try:
        if not (group / name).exists():
            pytest.skip("control groups inside this one have no memory controller")
        (group / name).write_text(str(limit))
        yield MemoryGroup(group, peak, killed)
    finally:
        wait_for("the group is empty", lambda: not (group / "cgroup.procs").read_text())
        group.rmdir()

"""The memory limit of this process, and a warning before the system kills it for exceeding it.

A process that exceeds its control group's limit is killed without a message. Imported before
everything else, so it imports little.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

#: What a service needs without any group, with room for a few: importing it alone takes 95 MB.
LEAST_BYTES = 128_000_000
#: The share of the limit above which the service says that it may be killed.
_NEAR = 0.9
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
#: A control group of version 1 without a limit has about this one.
_UNLIMITED = 1 << 60
_TEXT_BYTES = 1 << 16


def limit_bytes(
    process: Path = Path("/proc/self"), groups: Path = Path("/sys/fs/cgroup")
) -> int | None:
    """Return the lowest memory limit of the process's control groups; None without any."""
    found = [limit for file in _limit_files(process, groups) if (limit := _limit(file)) is not None]
    return min(found, default=None)


def used_bytes(process: Path = Path("/proc/self")) -> int | None:
    """Return the process's resident memory; None if the system doesn't say."""
    try:
        return int((process / "statm").read_text().split()[1]) * _PAGE_BYTES
    except (OSError, ValueError, IndexError):
        return None


def too_little(limit: int | None) -> str | None:
    """Describe a limit (bytes) below what the service needs; None if it is enough."""
    if limit is None or limit >= LEAST_BYTES:
        return None
    return (
        f"the memory limit is {_megabytes(limit)}, and the service needs {_megabytes(LEAST_BYTES)} "
        "at least: the system will kill it; docs/operating.md says what to give it"
    )


def nearly_used(used: int | None, limit: int | None) -> str | None:
    """Describe a use (bytes) near the limit (bytes); None while it is not."""
    if used is None or limit is None or used < _NEAR * limit:
        return None
    return (
        f"{_megabytes(used)} of the limit of {_megabytes(limit)} are used, and above it the system "
        "kills the process: raise the limit, or watch fewer groups and topics"
    )


def _limit_files(process: Path, groups: Path) -> Iterator[Path]:
    """Yield the files that may have limits: of the process's control group and those above it.

    Inside a container the group's own path may not be there; its limit is at the top.
    """
    for line in _text(process / "cgroup").splitlines():
        _, controllers, path = f"{line}::".split(":")[:3]
        if not controllers:
            base, name = groups, "memory.max"
        elif "memory" in controllers.split(","):
            base, name = groups / "memory", "memory.limit_in_bytes"
        else:
            continue
        inside = PurePosixPath(path.lstrip("/"))
        for group in (inside, *inside.parents):
            yield base / group / name


def _limit(file: Path) -> int | None:
    """Return the limit in a file; None without one, as ``max`` says."""
    text = _text(file).strip()
    if not (text.isascii() and text.isdecimal() and len(text) < 20):
        return None
    limit = int(text)
    return limit if limit < _UNLIMITED else None


def _text(file: Path) -> str:
    """Return the beginning of a file; nothing if it cannot be read."""
    try:
        with file.open(encoding="utf-8", errors="replace") as opened:
            return opened.read(_TEXT_BYTES)
    except OSError:
        return ""


def _megabytes(value: int) -> str:
    return f"{value / 1_000_000:,.0f} MB"

"""Which small files of the history are to become one: a decision on names, sizes and dates only."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from math import ceil
from typing import NamedTuple

_BATCH = re.compile(r"batch-(\d{1,18})(?:-\d+)?\.parquet")
_COMPACTED = re.compile(r"compacted-(\d{1,18})-(\d{1,18})-(\d{1,18})\.parquet")


class BatchRange(NamedTuple):
    """The batches of the history whose rows are in a file, the first and the last."""

    first: int
    last: int


class FolderCompaction(NamedTuple):
    """Files of one folder that become fewer: ``old`` with their sizes in bytes, by name.

    ``folder`` is relative to the history, such as ``lag/date=2026-11-20/group_bucket=3``. There
    will be at most ``most`` new ones, whose names begin with ``prefix`` and go on from ``number``.
    """

    folder: str
    old: Mapping[str, int]
    most: int
    prefix: str
    number: int

    @property
    def table(self) -> str:
        """The table that the folder is of."""
        return self.folder.partition("/")[0]

    @property
    def day(self) -> str:
        """The folder of the day."""
        return self.folder.split("/")[1]

    @property
    def bytes(self) -> int:
        """The sum of the old files' sizes."""
        return sum(self.old.values())

    def name(self, number: int) -> str:
        """Return the name of the new file of that number, from 0."""
        return f"{self.prefix}-{self.number + number:03}.parquet"


def batches(name: str) -> BatchRange | None:
    """Return the batches that a file's name says; None for a file that isn't ours."""
    if one := _BATCH.fullmatch(name):
        return BatchRange(int(one[1]), int(one[1]))
    if several := _COMPACTED.fullmatch(name):
        return BatchRange(int(several[1]), int(several[2]))
    return None


def newest_batch(names: Sequence[str]) -> int:
    """Return the newest batch among a table's files, -1 if there is none."""
    return max((found.last for name in names if (found := batches(name))), default=-1)


def day_of(folder: str) -> date | None:
    """Read the day of a folder named like ``date=2026-11-20``, None if it isn't one."""
    if not folder.startswith("date="):
        return None
    try:
        return date.fromisoformat(folder.removeprefix("date="))
    except ValueError:
        return None


def is_due(folder: str, today: date, keep_days: int) -> bool:
    """Return whether a folder's day is old enough to be compacted.

    The newest ``keep_days`` days, ``today`` (UTC) included, are not.
    """
    day = day_of(folder)
    return day is not None and day <= today - timedelta(days=keep_days)


def plan_folder(
    folder: str, sizes: Mapping[str, int], newest: int, target_bytes: int
) -> FolderCompaction | None:
    """Choose the files of a folder that are to become fewer, None if there is nothing to gain.

    ``sizes`` are in bytes, by name. Of the table's ``newest`` batch none is taken: the history's
    job may write that batch again, and would miss it. Neither is what has half the target's size.
    """
    small = {
        name: size
        for name, size in sorted(sizes.items())
        if (found := batches(name)) and found.last < newest and 2 * size < target_bytes
    }
    if len(small) < 2:
        return None
    covered = [found for name in small if (found := batches(name))]
    first, last = min(one.first for one in covered), max(one.last for one in covered)
    # A name that an older compaction gave is never used again, even for other rows of the batches.
    taken = (_COMPACTED.fullmatch(name) for name in sizes)
    numbers = [int(one[3]) for one in taken if one and (int(one[1]), int(one[2])) == (first, last)]
    return FolderCompaction(
        folder,
        small,
        max(1, ceil(sum(small.values()) / target_bytes)),
        f"compacted-{first:010}-{last:010}",
        max(numbers, default=-1) + 1,
    )

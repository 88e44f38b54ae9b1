"""The disk under the tables is full, at any write of a worker's or of the driver's commits.

The disk is a small tmpfs, which takes root to mount.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from caughtup.models.errors import CaughtupError
from tests.support.pipelines.by_hand import GROUPS, records_of, write_batch
from tests.support.pipelines.delta import counted, new_tables, rows_of
from tests.support.small_disk import small_disk

_DISK_BYTES = 4 << 20
_PAGE = 4096
BATCHES = 8


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", _DISK_BYTES) as place:
        yield place


def leave(disk: Path, pages: int) -> None:
    """Take what is free of a disk but so many pages."""
    free = os.statvfs(disk)
    with (disk / "ballast").open("ab") as file:
        file.write(bytes((free.f_bavail - pages) * _PAGE))


@pytest.mark.thorough
def test_it_is_said_in_one_line_and_the_batch_is_done_again(disk: Path) -> None:
    root = disk / "tables"
    of_workers, of_commits = list[str](), list[str]()
    new_tables(root)
    for batch in range(BATCHES):
        for pages in range(0, 60, 3):  # one write further, each time
            leave(disk, pages)
            try:
                write_batch(new_tables(root), batch, records_of(batch))
            except OSError as error:
                of_workers.append(str(error))
            except CaughtupError as error:
                of_commits.append(error.message)
            else:
                break
            finally:
                (disk / "ballast").unlink()
        rows = counted(rows_of(root, "commits"), "log_offset")
        assert (rows.total(), max(rows.values())) == ((batch + 1) * len(GROUPS), 1)
    assert of_workers
    assert of_commits
    for line in of_workers + of_commits:
        assert line.startswith(f"can't write {root}/")
        assert "No space left on device" in line
        assert "\n" not in line

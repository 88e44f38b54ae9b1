"""Keep a history's tables small: compact files, delete old days, vacuum unused files.

Each step is a commit of its own or none, so that readers see the table before or after it, and
batches can be written meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import date, timedelta
from math import ceil

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from caughtup.models.errors import CaughtupError
from caughtup.pipelines.delta.files import partition_of
from caughtup.pipelines.delta.store import Store
from caughtup.pipelines.delta.table import HISTORY, find_table
from caughtup.pipelines.schema import VACUUM_HOURS

TARGET_BYTES = 128_000_000
#: Shows progress, given a description and the number of steps; yields a function to advance.
ShowProgress = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]


@dataclass(frozen=True, slots=True)
class UpkeepOptions:
    """The options: ``tables`` to maintain (all if empty); ``today`` is in UTC.

    The last ``keep_days`` days, with today, are not compacted. Rows of days more than ``keep`` days
    ago are deleted; None keeps all. ``dry_run``: change nothing, and report what would be done.
    """

    today: date
    tables: Sequence[str] = ()
    keep_days: int = 1
    target_bytes: int = TARGET_BYTES
    keep: int | None = None
    vacuum_hours: int = VACUUM_HOURS
    dry_run: bool = False


@dataclass(slots=True)
class TableUpkeep:
    """What was done to a table, or would be in a dry run (then file counts are upper bounds).

    ``files_before``, ``files_after``, ``bytes_before`` and ``bytes_after``: of compaction.
    ``files_of_old_days``: of deleted days. ``files_vacuumed``: deleted files.
    """

    table: str
    days: set[str] = field(default_factory=set)
    files_before: int = 0
    files_after: int = 0
    bytes_before: int = 0
    bytes_after: int | None = 0
    files_of_old_days: int = 0
    files_vacuumed: int = 0


@dataclass(slots=True)
class Upkeep:
    """The result for all tables, and the failures, each as a line that names the table."""

    tables: list[TableUpkeep]
    problems: list[str] = field(default_factory=list)


def keep_up(
    root: Store, names: Sequence[str], options: UpkeepOptions, progress: ShowProgress
) -> Upkeep:
    """Maintain the tables of a history; ``names``: the names of all its tables.

    A step that fails is reported, and the others go on. Raises CaughtupError ``no_table`` or
    ``bad_output``.
    """
    there = {name: table for name in names if (table := _ours(root, name)) is not None}
    if not there:
        raise CaughtupError("no_table", f"there are no tables of a history at {root.uri}")
    if unknown := sorted(set(options.tables) - set(there)):
        raise CaughtupError(
            "no_table", f"there is no table {unknown[0]} at {root.uri}, but {', '.join(there)}"
        )
    wanted = [name for name in there if not options.tables or name in options.tables]
    found = Upkeep([])
    with progress("keeping tables up", len(wanted)) as advance:
        for name in wanted:
            kept = TableUpkeep(name)
            found.tables.append(kept)
            for what, step in _steps(there[name], kept, options):
                try:
                    step()
                except (DeltaError, OSError) as error:
                    found.problems.append(f"can't {what} {name}: {root.describe(error)}")
            advance(1)
    return found


def _ours(root: Store, name: str) -> DeltaTable | None:
    table = find_table(root.at(name))
    return table if table is not None and HISTORY in table.metadata().configuration else None


def _steps(
    table: DeltaTable, kept: TableUpkeep, options: UpkeepOptions
) -> Iterator[tuple[str, Callable[[], None]]]:
    if "date" in table.metadata().partition_columns:
        if options.keep is not None:
            oldest = options.today - timedelta(days=options.keep)
            yield "leave out old days of", lambda: _leave_out(table, kept, oldest, options)
        yield "compact", lambda: _compact(table, kept, options)
    yield "vacuum", lambda: _vacuum(table, kept, options)


def _leave_out(table: DeltaTable, kept: TableUpkeep, oldest: date, options: UpkeepOptions) -> None:
    if options.dry_run:
        kept.files_of_old_days = sum(_day(path) < str(oldest) for path, _ in _files(table))
    elif any(_day(path) < str(oldest) for path, _ in _files(table)):
        kept.files_of_old_days = table.delete(f"date < '{oldest}'")["num_removed_files"]
        table.update_incremental()


def _compact(table: DeltaTable, kept: TableUpkeep, options: UpkeepOptions) -> None:
    until = str(options.today - timedelta(days=options.keep_days - 1))
    planned = _planned(table, until, options.target_bytes)
    if not planned:
        return
    kept.days = {_day(paths[0]) for paths, _ in planned.values()}
    if options.dry_run:
        kept.files_before = sum(len(paths) for paths, _ in planned.values())
        kept.bytes_before = sum(size for _, size in planned.values())
        sizes = (size for _, size in planned.values())
        kept.files_after = sum(ceil(size / options.target_bytes) for size in sizes)
        kept.bytes_after = None
        return
    # One task at a time, since a batch may need the memory.
    made = table.optimize.compact(
        partition_filters=[("date", "<", until)],
        target_size=options.target_bytes,
        max_concurrent_tasks=1,
    )
    kept.files_before, kept.files_after = made["numFilesRemoved"], made["numFilesAdded"]
    sizes = (json.loads(made[name])["totalSize"] for name in ("filesRemoved", "filesAdded"))
    kept.bytes_before, kept.bytes_after = sizes
    table.update_incremental()


def _planned(
    table: DeltaTable, until: str, target_bytes: int
) -> Mapping[tuple[object, ...], tuple[list[str], int]]:
    """Return folders with several small files: their paths, and the sum of their bytes."""
    found: dict[tuple[object, ...], tuple[list[str], int]] = {}
    for path, size in _files(table):
        if _day(path) < until and size < target_bytes:
            key = tuple(partition_of(path).values())
            paths, sum_ = found.get(key, ([], 0))
            found[key] = [*paths, path], sum_ + size
    return {key: files for key, files in found.items() if len(files[0]) > 1}


def _vacuum(table: DeltaTable, kept: TableUpkeep, options: UpkeepOptions) -> None:
    gone = table.vacuum(
        options.vacuum_hours,
        dry_run=options.dry_run,
        enforce_retention_duration=False,
        full=True,
    )
    kept.files_vacuumed = len(gone)


def _files(table: DeltaTable) -> list[tuple[str, int]]:
    actions = table.get_add_actions()
    columns = (actions.column(name).to_pylist() for name in ("path", "size_bytes"))
    return list(zip(*columns, strict=True))


def _day(path: str) -> str:
    return partition_of(path)["date"] or ""

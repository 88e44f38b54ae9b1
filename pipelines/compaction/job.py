"""The job that makes one file of many: each folder of a past day, for every table of the history.

A reader that lists a folder between the moment at which new files are there and the one at which
the old ones are gone sees rows twice; one that listed it before may ask for a file that is gone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import date

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import TimestampType

from caughtup.models.errors import CaughtupError
from caughtup.pipelines.compaction.journal import Compaction, NewFile, journal_prefix, left_behind
from caughtup.pipelines.compaction.plan import (
    FolderCompaction,
    day_of,
    is_due,
    newest_batch,
    plan_folder,
)
from caughtup.pipelines.compaction.sized_files import SizedFiles
from caughtup.pipelines.spark.session import one_line

_NAMED_BY = {"group_bucket": "group", "topic_bucket": "topic"}
_LOG = ("log_partition", "log_offset")
_FAILURES = (PySparkException, Py4JError)
#: Gives a way to show progress, by what is done and in how many steps.
Progress = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CompactOptions:
    """What is compacted: the history at ``output``, a path or URI; no ``tables`` means all.

    ``today`` is in UTC; the ``keep_days`` last days, it included, are left alone.
    """

    output: str
    today: date
    tables: Sequence[str] = ()
    keep_days: int = 1
    target_bytes: int = 128_000_000
    dry_run: bool = False


@dataclass(slots=True)
class Compacted:
    """What became of a table's files that were taken; of a dry run, what would at most."""

    table: str
    days: set[str] = field(default_factory=set)
    files_before: int = 0
    files_after: int = 0
    bytes_before: int = 0
    bytes_after: int | None = 0


@dataclass(slots=True)
class Compactions:
    """All tables, and what went wrong, each in one line that names the folder."""

    tables: list[Compacted]
    problems: list[str] = field(default_factory=list)


def compact(spark: SparkSession, options: CompactOptions, progress: Progress) -> Compactions:
    """Compact the history, after ending what an earlier run left.

    What can't be compacted is told and left as it is, the rest goes on. Raises CaughtupError
    ``no_table`` or ``unreadable``.
    """
    root, files = options.output.rstrip("/"), SizedFiles(spark)
    try:
        names = _tables(files, root, options.tables)
        stuck = {} if options.dry_run else _end_left_behind(files, root)
        planned = {name: _plan(files, root, name, options) for name in names}
    except _FAILURES as error:
        raise CaughtupError("unreadable", f"can't read {root}: {one_line(error)}") from error
    problems = [f"can't end the compaction {name}: {why}" for name, why in stuck.items()]
    found = Compactions([Compacted(name) for name in names], problems)
    with progress("compacting folders", sum(map(len, planned.values()))) as advance:
        for table in found.tables:
            for plan in planned[table.table]:
                if any(name.startswith(journal_prefix(plan.folder)) for name in stuck):
                    advance(1)
                    continue  # rows may be in two files: a third would have them twice
                try:
                    new = None if options.dry_run else _compact(spark, files, root, plan)
                except (CaughtupError, *_FAILURES) as error:
                    problems.append(f"can't compact {plan.folder}: {_why(error)}")
                else:
                    _count(table, plan, new)
                advance(1)
    return found


def _tables(files: SizedFiles, root: str, wanted: Sequence[str]) -> list[str]:
    there = files.folders(root) if files.exists(root) else []
    tables = [name for name in there if any(map(day_of, files.folders(f"{root}/{name}")))]
    if not tables:
        raise CaughtupError("no_table", f"there are no tables of a history at {root}")
    if unknown := sorted(set(wanted) - set(tables)):
        raise CaughtupError(
            "no_table", f"there is no table {unknown[0]} at {root}, but {', '.join(tables)}"
        )
    return sorted(set(wanted)) or tables


def _end_left_behind(files: SizedFiles, root: str) -> dict[str, str]:
    """End what an earlier run left, and tell what can't be ended, and why."""
    stuck = {}
    for compaction in left_behind(files, root):
        try:
            how = compaction.settle()
            _log.warning("%s the compaction %s, which had ended early", how, compaction.name)
        except (CaughtupError, *_FAILURES) as error:
            stuck[compaction.name] = _why(error)
    return stuck


def _why(error: Exception) -> str:
    return error.message if isinstance(error, CaughtupError) else one_line(error)


def _plan(
    files: SizedFiles, root: str, table: str, options: CompactOptions
) -> list[FolderCompaction]:
    sizes: dict[str, dict[str, int]] = {}
    for day in files.folders(f"{root}/{table}"):
        for bucket in files.folders(f"{root}/{table}/{day}"):
            folder = f"{table}/{day}/{bucket}"
            sizes[folder] = files.sizes(f"{root}/{folder}")
    newest = newest_batch([name for inside in sizes.values() for name in inside])
    planned = []
    for folder, inside in sizes.items():
        if not is_due(folder.split("/")[1], options.today, options.keep_days):
            continue
        plan = plan_folder(folder, inside, newest, options.target_bytes)
        if plan is not None:
            planned.append(plan)
    return planned


def _compact(
    spark: SparkSession, files: SizedFiles, root: str, plan: FolderCompaction
) -> list[NewFile]:
    """Make new files of a folder's old ones. What fails before those are whole is undone."""
    compaction = Compaction.begin(files, root, plan)
    try:
        new = _write(spark, files, root, plan, compaction.staging)
    except (CaughtupError, *_FAILURES):
        compaction.undo()
        raise
    compaction.written(new)
    compaction.settle()
    return new


def _write(
    spark: SparkSession, files: SizedFiles, root: str, plan: FolderCompaction, staging: str
) -> list[NewFile]:
    """Write the new files aside, and see that no row is missing."""
    for name, size in plan.old.items():
        if size == 0:  # Spark would skip it
            raise CaughtupError("bad_file", f"{name} is empty")
    old = _read(spark, [f"{root}/{plan.folder}/{name}" for name in plan.old])
    keys = sort_keys(old, plan.folder)
    if plan.most == 1:
        placed = old.coalesce(1)
    elif keys:
        placed = old.repartitionByRange(plan.most, *keys)
    else:
        placed = old.repartition(plan.most)
    ordered = placed.sortWithinPartitions(*keys) if keys else placed
    # Executors of a killed driver may go on for a moment, and leave something there.
    ordered.write.mode("overwrite").option("compression", "zstd").parquet(staging)
    rows = old.count()
    staged = {
        name: size for name, size in files.sizes(staging).items() if name.endswith(".parquet")
    }
    written = _read(spark, [f"{staging}/{name}" for name in staged]).count()
    if written != rows:
        raise CaughtupError("rows_differ", f"{written:,} of {rows:,} rows would be left")
    return [
        NewFile(name, plan.name(number), staged[name]) for number, name in enumerate(sorted(staged))
    ]


def _read(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    """Read files as one, with the columns that any of them has; a file that can't be is an error."""
    reader = spark.read.option("mergeSchema", "true")
    for name in ("ignoreCorruptFiles", "ignoreMissingFiles"):
        reader = reader.option(name, "false")
    return reader.parquet(*paths)


def sort_keys(rows: DataFrame, folder: str) -> list[str]:
    """Name the columns to sort a folder's rows by: whose they are, when, and their place in a log."""
    named_by = _NAMED_BY.get(folder.rpartition("/")[2].partition("=")[0])
    times = [one.name for one in rows.schema if isinstance(one.dataType, TimestampType)]
    time = "as_of" if "as_of" in times else next(iter(times), None)
    wanted = [named_by, time, *_LOG]
    return [name for name in wanted if name in rows.columns]


def _count(table: Compacted, plan: FolderCompaction, new: list[NewFile] | None) -> None:
    table.days.add(plan.day)
    table.files_before += len(plan.old)
    table.bytes_before += plan.bytes
    if new is None:
        table.files_after += plan.most
        table.bytes_after = None
    else:
        table.files_after += len(new)
        table.bytes_after = (table.bytes_after or 0) + sum(one.bytes for one in new)

"""Convert the folders that caughtup 0.1 wrote into Delta tables, in place: no file is copied.

The files are Parquet as Delta has it, so that a table takes them over in one commit, with the
history's owner and its last complete batch. The state becomes a table too, and the job continues
from there. A conversion that was interrupted continues when it is run again.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from deltalake.exceptions import DeltaError
from pyarrow.fs import FileSelector, FileSystem, FileType

from caughtup.models.errors import CaughtupError
from caughtup.pipelines.delta.files import NewFile, new_file, write_file
from caughtup.pipelines.delta.store import Store
from caughtup.pipelines.delta.table import HistoryTable, Owner
from caughtup.pipelines.delta.upkeep import ShowProgress
from caughtup.pipelines.history.buckets.lag import STATE, state_folder
from caughtup.pipelines.history.identity import MARK, Identity
from caughtup.pipelines.history.tables import (
    TABLES,
    HistoryTables,
    complete_tables,
    open_tables,
)
from caughtup.pipelines.spark.arrow import arrow_schema
from caughtup.pipelines.tables import SCHEMA, Table

#: The schema and the number of buckets of 0.1.
_SCHEMA, _BUCKETS = 3, 4
_FILE = re.compile(r"date=[^/]+/(?:group|topic)_bucket=\d+/(batch|compacted)-(\d+)\S*\.parquet")
_STATE = re.compile(r"(commits|ends|groups)(?:-(\d+))?")


@dataclass(slots=True)
class Converted:
    """A converted table, with the number of its files and rows."""

    table: str
    files: int
    rows: int


def convert(root: Store, checkpoint: Store, progress: ShowProgress) -> list[Converted]:
    """Convert a history's folders to tables, and its checkpoint to this release's.

    Raises CaughtupError ``bad_output`` or ``bad_checkpoint``, before anything is written, if they
    are not of 0.1 or do not belong together.
    """
    ours = _mark(checkpoint)
    there = _mark(root) if MARK in root.names() else None
    if ours.schema not in (_SCHEMA, SCHEMA) or (ours.schema == SCHEMA and there is None):
        raise CaughtupError(
            "bad_checkpoint",
            f"{checkpoint.uri} is of schema {ours.schema}, and only schema {_SCHEMA} can be converted",
        )
    if there is None or there.history != ours.history:
        raise CaughtupError(
            "bad_output", f"{root.uri} has no folders that {checkpoint.uri} is the checkpoint of"
        )
    if "_compactions" in root.names() and root.at("_compactions").names():
        raise CaughtupError(
            "bad_output",
            f"a compaction of {root.uri} ended early: let 0.1's `caughtup pipeline compact` end it",
        )
    owner, found = Owner(ours.history, ours.cluster), []
    if ours.schema == _SCHEMA:
        last = _last_batch(checkpoint)
        with progress("reading the files' footers", len(TABLES)) as advance:
            files = {}
            for table in TABLES:
                files[table.name] = list(_files_of(root, table, last))
                advance(1)
        tables = complete_tables(root, owner, open_tables(root, owner))
        found = [_take_in(tables[t.name], owner, last, files[t.name]) for t in TABLES]
        _take_state(tables, owner, checkpoint, last)
        _write_mark(checkpoint, Identity(ours.history, ours.cluster, SCHEMA))
    root.filesystem().delete_file(MARK)
    return found


def _take_in(table: HistoryTable, owner: Owner, last: int, files: Sequence[NewFile]) -> Converted:
    name = table.layout.name
    if files and table.batch(owner) is None:
        table.commit(owner, last, files)
    rows = sum(file.rows for file in files)
    table.batch(owner)
    if (there := table.count()) != rows:
        raise CaughtupError("bad_output", f"the table {name} has {there:,} of {rows:,} rows")
    return Converted(name, len(files), rows)


def _files_of(root: Store, table: Table, last: int) -> Iterator[NewFile]:
    """Yield a table's files of complete batches; the job repeats an incomplete one."""
    place = root.at(table.name)
    if table.name not in root.names():
        return
    files = place.filesystem()
    expected = arrow_schema(table.columns)
    for one in files.get_file_info(FileSelector("", recursive=True)):
        named = _FILE.fullmatch(one.path.lstrip("/"))
        if one.type != FileType.File or not named or int(named[2]) > last:
            continue
        try:
            with files.open_input_file(one.path) as stream:
                metadata = pq.read_metadata(stream)
        except (pa.ArrowException, OSError) as error:
            raise CaughtupError(
                "bad_output", f"can't read {place.uri}/{one.path}: {place.describe(error)}"
            ) from error
        _check(f"{place.uri}/{one.path}", metadata.schema.to_arrow_schema(), expected)
        yield new_file(table.name, one.path.lstrip("/"), one.size, metadata)


def _check(uri: str, found: pa.Schema, expected: pa.Schema) -> None:
    for field in found:
        wanted = expected.field(field.name).type if field.name in expected.names else None
        nested = wanted is not None and pa.types.is_nested(wanted)
        if wanted != field.type and not (nested and pa.types.is_nested(field.type)):
            raise CaughtupError(
                "bad_output", f"{uri} has a column {field.name} of {field.type}, not {wanted}"
            )


def _take_state(tables: HistoryTables, owner: Owner, checkpoint: Store, last: int) -> None:
    state = tables.state
    if last < 0 or tables[STATE].batch(owner) is not None:
        return
    place = checkpoint.at("caughtup")
    named = f"state-{last:010}.json"
    try:
        left = msgspec.json.decode(_read(place, named), type=dict[str, str])
        new = [_state_file(tables.root, place, *one) for one in sorted(left.items())]
    except (msgspec.DecodeError, pa.ArrowException, OSError, ValueError) as error:
        raise CaughtupError(
            "bad_checkpoint",
            f"the checkpoint's state of batch {last}, {place.uri}/{named}, can't be read: "
            f"{place.describe(error)}",
        ) from error
    state.leave(last, new, (), None, tables.versions(last))


def _state_file(root: Store, place: Store, name: str, at: str) -> NewFile:
    of = _STATE.fullmatch(name)
    if of is None:
        raise ValueError(f"the file {name} is not known")
    rows = ds.dataset(f"{at}", format="parquet", filesystem=place.filesystem()).to_table()
    folder = state_folder(of[1], int(of[2] or 0), _BUCKETS)
    return write_file(root, STATE, folder, "converted", rows, ())


def _last_batch(checkpoint: Store) -> int:
    """Return the last batch that Spark committed, -1 before the first."""
    names = checkpoint.at("commits").names()
    return max((int(name) for name in names if name.isdigit()), default=-1)


def _mark(place: Store) -> Identity:
    try:
        return msgspec.json.decode(_read(place, MARK), type=Identity)
    except (msgspec.DecodeError, DeltaError, OSError) as error:
        raise CaughtupError(
            "bad_checkpoint", f"can't read {place.uri}/{MARK}: {place.describe(error)}"
        ) from error


def _write_mark(checkpoint: Store, mark: Identity) -> None:
    files = checkpoint.filesystem()
    # Hadoop would refuse the new file because of the checksum of the old one.
    with contextlib.suppress(OSError):
        files.delete_file(f".{MARK}.crc")
    content = msgspec.json.encode(mark)
    # deltalake's files refuse Arrow's own buffers, in which Arrow passes unbuffered data.
    with files.open_output_stream(MARK, buffer_size=len(content) + 1) as stream:
        stream.write(content)


def _read(place: Store, name: str) -> bytes:
    files: FileSystem = place.filesystem()
    with files.open_input_stream(name) as stream:
        return bytes(stream.read())

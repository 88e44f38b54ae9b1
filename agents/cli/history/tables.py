"""The history's Delta tables for DuckDB, opened if a query names them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from caughtup.agents.errors import UserError
from caughtup.pipelines.delta.store import Store

NAMES = (
    "commits",
    "decisions",
    "end_offsets",
    "group_generations",
    "lag",
    "movements",
    "quarantine",
    "reassignments",
    "rebalances",
)
#: Queries can load no extension, read no file and see no Python variable, only given tables.
_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}
_CLOSED = """
SET TimeZone = 'UTC'; SET python_enable_replacements = false;
SET enable_external_access = false; SET lock_configuration = true
"""
_BATCH_ROWS = 1_000


class TableInfo(NamedTuple):
    """A table at a version: its rows, files, bytes, and its last commit (ms)."""

    name: str
    version: int
    rows: int | None
    files: int
    bytes: int
    last_commit_ms: int | None


#: What DuckDB has in a row: the query gives each column its type.
Row = tuple[Any, ...]


class Answer(NamedTuple):
    """A query's result: the names of its columns, and its rows, read lazily."""

    names: list[str]
    rows: Iterator[Row]


class History:
    """The tables of one history, at a version or time ``at``, None for the newest version."""

    def __init__(self, store: Store, at: datetime | int | None = None) -> None:
        self._store = store
        self._at = at

    def about(self) -> Iterator[TableInfo]:
        """Yield the existing tables. Raises UserError if there is none."""
        found = False
        for name in NAMES:
            try:
                with self._readable(name):
                    info = _table_info(name, self._open(name))
            except TableNotFoundError:
                continue
            found = True
            yield info
        if not found:
            raise UserError(
                f"no table of a history at {self._store.uri}: caughtup pipeline history writes "
                "them, and caughtup pipeline convert makes them from the history that 0.1 wrote"
            )

    def ask(self, sql: str, values: Mapping[str, object]) -> Answer:
        """Return the answer to a query. Raises UserError for bad SQL, and for missing tables."""
        connection = duckdb.connect(config=_CONFIG)
        missing = []
        for name in NAMES:
            if re.search(rf"\b{name}\b", sql):
                try:
                    with self._readable(name):
                        connection.register(name, self._open(name).to_pyarrow_dataset())
                except TableNotFoundError:
                    missing.append(name)
        connection.execute(_CLOSED)
        try:
            reader = connection.sql(sql, params=dict(values) or None).to_arrow_reader(_BATCH_ROWS)
        except duckdb.Error as error:
            if missing and isinstance(error, duckdb.CatalogException):
                raise UserError(f"no table {missing[0]} at {self._store.uri}") from None
            raise UserError(_first_line(error)) from None
        return Answer(reader.schema.names, _rows(reader))

    def _open(self, name: str) -> DeltaTable:
        place = self._store.at(name)
        with self._readable(name):
            table = DeltaTable(place.uri, storage_options=dict(place.options))
            if self._at is not None:
                table.load_as_version(self._at)
        return table

    @contextmanager
    def _readable(self, name: str) -> Iterator[None]:
        """Turn errors of the store or of an existing table into a UserError."""
        place = self._store.at(name)
        try:
            yield
        except TableNotFoundError:
            raise
        except (DeltaError, OSError) as error:
            raise UserError(f"can't read {place.uri}: {place.describe(error)}") from None


def _table_info(name: str, table: DeltaTable) -> TableInfo:
    actions = table.get_add_actions(flatten=True)
    sizes = actions.column("size_bytes").to_pylist()
    rows = actions.column("num_records").to_pylist()
    (last,) = table.history(1)
    return TableInfo(
        name,
        table.version(),
        None if None in rows else sum(rows),
        len(sizes),
        sum(sizes),
        last.get("timestamp"),
    )


def _rows(reader: pa.RecordBatchReader) -> Iterator[Row]:
    try:
        for batch in reader:
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
    except (duckdb.Error, OSError, pa.ArrowException) as error:
        raise UserError(_first_line(error)) from None


def _first_line(error: Exception) -> str:
    """Return the first line of an error, which has its cause."""
    return str(error).splitlines()[0]

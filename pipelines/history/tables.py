"""The tables of a history: open them together, and add each batch's files once."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence

from caughtup.models.errors import CaughtupError
from caughtup.pipelines.delta.files import NewFile
from caughtup.pipelines.delta.store import Store
from caughtup.pipelines.delta.table import (
    HistoryTable,
    Layout,
    Owner,
    create_table,
    open_table,
)
from caughtup.pipelines.generations.schema import GENERATIONS
from caughtup.pipelines.history.decoding.topic_columns import own_table
from caughtup.pipelines.history.decoding.topic_schema import TOPIC_TABLES
from caughtup.pipelines.history.state import STATE_TABLE, HistoryState
from caughtup.pipelines.tables import COMMITS, LAG, QUARANTINE, Table

TABLES = (COMMITS, LAG, GENERATIONS, *map(own_table, sorted(TOPIC_TABLES)), QUARANTINE)


def layout_of(table: Table) -> Layout:
    """Return a table's layout in Delta: partitioned by day and bucket."""
    return Layout(table.name, table.stored, ("date", table.bucket))


#: All tables, with the state.
LAYOUTS = (*map(layout_of, TABLES), STATE_TABLE)


class HistoryTables:
    """A history's tables, which all exist and belong to it."""

    def __init__(self, root: Store, owner: Owner, tables: Mapping[str, HistoryTable]) -> None:
        self.root = root
        self._owner = owner
        self._tables = tables
        self.state = HistoryState(tables[STATE_TABLE.name], owner)

    def __getitem__(self, name: str) -> HistoryTable:
        return self._tables[name]

    def add(self, batch: int, files: Mapping[str, Sequence[NewFile]]) -> None:
        """Add a batch's files to their tables, unless a table has the batch already.

        The first attempt's files stay: the log is compacted, and a later attempt may read less.
        """
        for name in sorted(files):
            table, new = self._tables[name], files[name]
            last = table.batch(self._owner)
            if new and (last is None or last < batch):
                table.commit(self._owner, batch, new)

    def versions(self, batch: int) -> dict[str, int]:
        """Return the version of each table, after a batch was added to all.

        Raises CaughtupError ``bad_output`` if another job writes the same tables.
        """
        found = {}
        for table in TABLES:
            last = self._tables[table.name].batch(self._owner)
            if last is not None and last > batch:
                raise CaughtupError(
                    "bad_output", f"another job with this checkpoint writes the table {table.name}"
                )
            found[table.name] = self._tables[table.name].version()
        return found

    def finish(
        self, batch: int, state: Sequence[NewFile], replaced: Sequence[str], digest: str
    ) -> None:
        """Write a batch's state, which completes the batch."""
        self.state.leave(batch, state, replaced, digest, self.versions(batch))

    def forget(self, files: Sequence[NewFile]) -> None:
        """Delete files that are in no table; a vacuum deletes those that this cannot."""
        if not files:
            return
        system = self.root.at(STATE_TABLE.name).filesystem()
        for file in files:
            with contextlib.suppress(OSError):
                system.delete_file(file.path)


def open_tables(root: Store, owner: Owner) -> dict[str, HistoryTable]:
    """Open those of a history's tables that exist.

    Raises CaughtupError ``bad_output`` if one belongs to another history.
    """
    found = {layout.name: open_table(root, layout, owner) for layout in LAYOUTS}
    return {name: table for name, table in found.items() if table is not None}


def complete_tables(root: Store, owner: Owner, found: Mapping[str, HistoryTable]) -> HistoryTables:
    """Create the missing tables; return all. Raises CaughtupError ``output_unwritable``."""
    tables = {
        layout.name: found.get(layout.name) or create_table(root, layout, owner)
        for layout in LAYOUTS
    }
    return HistoryTables(root, owner, tables)

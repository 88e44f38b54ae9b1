"""The tables of a history, opened together, and its state between batches.

Each batch's files are added once. The state has a table of its own, ``_state``, whose commit is the
last one of a batch: a batch that it has is complete in every table, and a batch that is repeated
finds the same state as the first time. Unchanged files stay.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable, Mapping, Sequence

import msgspec
from pyspark.sql.types import IntegerType, StringType, StructType

from caughtup.models.errors import CaughtupError
from caughtup.models.ids import TopicPartition
from caughtup.pipelines.delta.files import NewFile, partition_of
from caughtup.pipelines.delta.store import Store
from caughtup.pipelines.delta.table import (
    HistoryTable,
    Layout,
    Owner,
    create_table,
    open_table,
)
from caughtup.pipelines.generations.schema import GENERATIONS
from caughtup.pipelines.history.buckets.lag import LAST_COMMITS, LAST_ENDS, STATE
from caughtup.pipelines.history.decoding.topic_columns import own_table
from caughtup.pipelines.history.decoding.topic_schema import TOPIC_TABLES
from caughtup.pipelines.history.generations import GROUP_RECORDS
from caughtup.pipelines.tables import COMMITS, LAG, QUARANTINE, REBALANCES, Table, columns

_OFFSETS = "caughtup.offsets"
_FOLDERS = columns(kind=StringType(), bucket=IntegerType(), buckets=IntegerType())
_COLUMNS = {
    field.name: field for kind in (LAST_COMMITS, LAST_ENDS, GROUP_RECORDS) for field in kind
}
#: Each row has the columns of its kind, and the others are null.
STATE_TABLE = Layout(
    STATE, StructType([*_COLUMNS.values(), *_FOLDERS.fields]), tuple(_FOLDERS.names)
)


def offsets_digest(until: Mapping[TopicPartition, int]) -> str:
    """Return a digest of a batch's end offsets, to recognize the batch when it is repeated."""
    ends = sorted((*partition, offset) for partition, offset in until.items())
    return hashlib.sha256(msgspec.json.encode(ends)).hexdigest()[:32]


class HistoryState:
    """The state as of the last complete batch."""

    def __init__(self, table: HistoryTable, owner: Owner) -> None:
        self._table = table
        self._owner = owner
        self._upkeep = Owner(f"{owner.history}-upkeep", owner.cluster)

    def is_whole(self, batch: int, digest: str | None) -> bool:
        """Return whether a batch is in all tables already.

        Otherwise the state is that of the batch before it. Raises CaughtupError ``bad_checkpoint``
        if the checkpoint is behind the tables, or ahead of them.
        """
        last = self._table.batch(self._owner)
        if last == batch:
            said = self._table.commit_metadata(self._owner, batch).get(_OFFSETS)
            if said not in (None, digest):
                raise CaughtupError(
                    "bad_checkpoint",
                    f"batch {batch} is in the tables, up to other offsets than in the checkpoint: "
                    "the checkpoint is an older copy",
                )
            return True
        if (-1 if last is None else last) != batch - 1:
            raise CaughtupError(
                "bad_checkpoint",
                f"the checkpoint is at batch {batch}, and the last one of the tables is "
                f"{'none' if last is None else last}: they are from different times",
            )
        return False

    def last(self) -> int | None:
        """Return the last complete batch, None before the first."""
        return self._table.batch(self._owner)

    def paths(self, *kinds: str) -> list[str]:
        """Return the paths of the state's files of these kinds."""
        return self._table.paths(kind=kinds)

    def kept_up(self) -> int | None:
        """Return the ordinal of the day of the last upkeep, None before the first."""
        return self._table.batch(self._upkeep)

    def keep_up_done(self, day: int) -> None:
        """Store the day (ordinal) of an upkeep."""
        self._table.batch(self._upkeep)
        self._table.commit(self._upkeep, day, [])

    def leave(
        self,
        batch: int,
        new: Sequence[NewFile],
        replaced: Iterable[str],
        digest: str | None,
        versions: Mapping[str, int],
    ) -> None:
        """Replace the state that a batch changed; this commit completes the batch.

        All former files of the kinds in ``replaced`` are removed. ``versions``: the tables' versions
        with the batch, which the commit records.
        """
        kinds = set(replaced)
        places = {(file.partition["kind"], file.partition["bucket"]) for file in new}
        gone = []
        for path in self._table.paths():
            of = partition_of(path)
            if of["kind"] in kinds or (of["kind"], of["bucket"]) in places:
                gone.append(path)
        said = {f"caughtup.version.{name}": str(number) for name, number in versions.items()}
        if digest is not None:
            said[_OFFSETS] = digest
        self._table.commit(self._owner, batch, new, gone, said)


TABLES = (COMMITS, LAG, GENERATIONS, REBALANCES, *map(own_table, sorted(TOPIC_TABLES)), QUARANTINE)

#: The tables that a history of an earlier release lacks: the job creates them and continues.
ADDED_LATER = frozenset({REBALANCES.name})


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
                    "bad_output",
                    f"another job writes with this checkpoint: it wrote the table {table.name}",
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

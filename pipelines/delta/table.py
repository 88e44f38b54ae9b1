"""A history's Delta table, whose one writer adds each batch's files in one commit.

A commit has the batch's number as the version of an application, which is the history. The library
does not skip a batch that is there already: so its number is read, and the commit is made on the
same handle, which fails if another batch came in between. Compaction and vacuum may run meanwhile.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction
from pyspark.sql.types import StructType

from caughtup.models.errors import CaughtupError
from caughtup.pipelines.delta.files import NewFile, partition_of
from caughtup.pipelines.delta.store import Store
from caughtup.pipelines.spark.arrow import arrow_schema
from caughtup.pipelines.tables import SCHEMA

#: The keys of a table's configuration: the history, the cluster, our schema.
HISTORY, CLUSTER, RELEASE = "caughtup.history", "caughtup.cluster", "caughtup.schema"
_BATCH, _ATTEMPT = "caughtup.batch", "caughtup.attempt"
_COMMITS_LOOKED_AT = 20


class Owner(NamedTuple):
    """The owner of tables: the history's id, from its checkpoint, and its cluster's id."""

    history: str
    cluster: str


class Layout(NamedTuple):
    """A table's name, all its columns, and those of them that are folders."""

    name: str
    columns: StructType
    partition_by: tuple[str, ...]


class HistoryTable:
    """A table of a history, opened by ``open_table`` or created by ``create_table``."""

    def __init__(self, root: Store, layout: Layout, delta: DeltaTable) -> None:
        self.root = root
        self.layout = layout
        self._delta = delta

    def batch(self, owner: Owner) -> int | None:
        """Read the table's newest version, and return its last batch, None before the first."""
        with reported(self.root, self.layout.name):
            self._delta.update_incremental()
            return self._delta.transaction_version(owner.history)

    def version(self) -> int:
        """Return the version that was last read."""
        return self._delta.version()

    def count(self) -> int:
        """Return the number of rows of the version that was last read."""
        with reported(self.root, self.layout.name):
            return int(self._delta.to_pyarrow_dataset().count_rows())

    def commit_metadata(self, owner: Owner, batch: int) -> dict[str, object]:
        """Return the metadata of a batch's commit; empty if it is not among the last 20 commits."""
        with reported(self.root, self.layout.name):
            lately = self._delta.history(_COMMITS_LOOKED_AT)
        return next(
            (dict(one) for one in lately if one.get(_BATCH) == f"{owner.history} {batch}"), {}
        )

    def paths(self, **partition: Sequence[str]) -> list[str]:
        """Return the paths of the table's files, or of those with certain partition values."""
        with reported(self.root, self.layout.name):
            every = self._delta.get_add_actions().column("path").to_pylist()
        return sorted(
            path
            for path in every
            if all(partition_of(path).get(name) in values for name, values in partition.items())
        )

    def commit(
        self,
        owner: Owner,
        batch: int,
        new: Sequence[NewFile],
        removed: Sequence[str] = (),
        said: Mapping[str, str] | None = None,
    ) -> None:
        """Commit a batch: add files, and remove others. The method ``batch`` has to precede it.

        Raises CaughtupError ``bad_output`` if another writer's batch came in between, and
        ``output_unwritable`` if the store fails.
        """
        attempt, now = secrets.token_hex(8), int(time.time() * 1000)
        adds = [AddAction(f.path, f.size, f.partition, now, True, f.stats) for f in new]
        gone = [RemoveAction(path, True, now, None, partition_of(path)) for path in removed]
        properties = CommitProperties(
            custom_metadata={**(said or {}), _BATCH: f"{owner.history} {batch}", _ATTEMPT: attempt},
            app_transactions=[Transaction(owner.history, batch, now)],
        )
        with reported(self.root, self.layout.name):
            try:
                self._delta.create_write_transaction(
                    [*adds, *gone],
                    mode="append",
                    schema=Schema.from_arrow(arrow_schema(self.layout.columns)),
                    partition_by=list(self.layout.partition_by),
                    commit_properties=properties,
                )
            except (CommitFailedError, DeltaError, OSError):
                # The store may have taken the commit and failed after that, or at a retry.
                if not self._has(attempt):
                    raise
            self._delta.update_incremental()

    def _has(self, attempt: str) -> bool:
        try:
            self._delta.update_incremental()
            lately = self._delta.history(_COMMITS_LOOKED_AT)
        except (DeltaError, OSError):
            return False
        return any(one.get(_ATTEMPT) == attempt for one in lately)


def create_table(root: Store, layout: Layout, owner: Owner) -> HistoryTable:
    """Create an empty table. Raises CaughtupError ``output_unwritable``."""
    place = root.at(layout.name)
    said = {HISTORY: owner.history, CLUSTER: owner.cluster, RELEASE: str(SCHEMA)}
    with reported(root, layout.name):
        try:
            delta = DeltaTable.create(
                place.uri,
                Schema.from_arrow(arrow_schema(layout.columns)),
                mode="error",
                partition_by=list(layout.partition_by),
                configuration=said,
                storage_options=dict(place.options),
                raise_if_key_not_exists=False,
            )
        except (DeltaError, OSError):
            # The store may have taken the commit all the same.
            found = find_table(place)
            if found is None or not said.items() <= found.metadata().configuration.items():
                raise
            delta = found
    return HistoryTable(root, layout, delta)


def find_table(place: Store) -> DeltaTable | None:
    """Open any Delta table; return None if there is none. Raises CaughtupError ``bad_output``."""
    try:
        return DeltaTable(place.uri, storage_options=dict(place.options))
    except TableNotFoundError:
        return None
    except (DeltaError, OSError) as error:
        raise CaughtupError(
            "bad_output", f"can't read the table {place.uri}: {place.describe(error)}"
        ) from error


def open_table(root: Store, layout: Layout, owner: Owner) -> HistoryTable | None:
    """Open a table of this history; return None if there is none.

    Raises CaughtupError ``bad_output`` if it belongs to another writer, or another release.
    """
    delta = find_table(root.at(layout.name))
    if delta is None:
        return None
    uri, said = root.at(layout.name).uri, delta.metadata().configuration
    if HISTORY not in said:
        raise CaughtupError(
            "bad_output", f"{uri} is a Delta table, but not one of caughtup's history"
        )
    if said.get(RELEASE) != str(SCHEMA):
        raise CaughtupError(
            "bad_output",
            f"{uri} is of schema {said.get(RELEASE)}, and this release writes schema {SCHEMA}: use "
            "the release that wrote it",
        )
    if said[HISTORY] != owner.history:
        raise CaughtupError(
            "bad_output",
            f"{uri} is written by the history {said[HISTORY]}, whose checkpoint is another one "
            f"than that of this history, {owner.history}: give that checkpoint, or another "
            f"--output",
        )
    return HistoryTable(root, layout, delta)


@contextmanager
def reported(root: Store, name: str) -> Iterator[None]:
    """Turn errors of the library into CaughtupError ``bad_output`` or ``output_unwritable``."""
    try:
        yield
    except CommitFailedError as error:
        why = root.describe(error)
        if "oncurrent transaction" in why:
            raise CaughtupError(
                "bad_output",
                f"another job writes with this checkpoint: it wrote the table {name}: {why}",
            ) from error
        raise CaughtupError(
            "output_unwritable", f"can't write {root.at(name).uri}: {why}"
        ) from error
    except (DeltaError, OSError) as error:
        raise CaughtupError(
            "output_unwritable", f"can't write {root.at(name).uri}: {root.describe(error)}"
        ) from error

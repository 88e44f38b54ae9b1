"""The state of the history between batches, in a table of its own: ``_state``.

Its commit is the last one of a batch. So a batch that it has is complete in every table, and a
batch that is repeated finds the same state as the first time. Unchanged files stay.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence

import msgspec
from pyspark.sql.types import IntegerType, StringType, StructType

from caughtup.models.errors import CaughtupError
from caughtup.models.ids import TopicPartition
from caughtup.pipelines.delta.files import NewFile, partition_of
from caughtup.pipelines.delta.table import HistoryTable, Layout, Owner
from caughtup.pipelines.history.buckets.lag import LAST_COMMITS, LAST_ENDS, STATE
from caughtup.pipelines.history.generations import GROUP_RECORDS
from caughtup.pipelines.tables import columns

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
                    f"batch {batch} is in the tables, up to other offsets than the checkpoint's: "
                    "it is an older copy of the tables' own",
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

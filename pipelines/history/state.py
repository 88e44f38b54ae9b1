"""What the history remembers between batches, a table of its own: ``_state``.

Its commit is a batch's last one. So a batch that is in it is whole in every table, and one that is
done again finds the state that it found the first time. What didn't change stays where it is.
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
    """Return by what a batch is known that is done again: where it ends in each log."""
    ends = sorted((*partition, offset) for partition, offset in until.items())
    return hashlib.sha256(msgspec.json.encode(ends)).hexdigest()[:32]


class HistoryState:
    """The state as the last whole batch left it."""

    def __init__(self, table: HistoryTable, owner: Owner) -> None:
        self._table = table
        self._owner = owner
        self._upkeep = Owner(f"{owner.history}-upkeep", owner.cluster)

    def is_whole(self, batch: int, digest: str | None) -> bool:
        """Return whether a batch is in all tables; if not, the state is the one before it.

        Raises CaughtupError ``bad_checkpoint`` where the checkpoint is behind its tables, or ahead.
        """
        last = self._table.batch(self._owner)
        if last == batch:
            said = self._table.said_of(self._owner, batch).get(_OFFSETS)
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
        """Return the last whole batch, None before the first."""
        return self._table.batch(self._owner)

    def paths(self, *kinds: str) -> list[str]:
        """Return the files of kinds of state."""
        return self._table.paths(kind=kinds)

    def kept_up(self) -> int | None:
        """Return the day, by its ordinal, on which the tables were kept up last."""
        return self._table.batch(self._upkeep)

    def keep_up_done(self, day: int) -> None:
        """Note that the tables were kept up on a day."""
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
        """Add what a batch changed in place of what was before; this makes the batch whole.

        Of the kinds that are ``replaced`` all that was before goes. ``versions`` are the tables'
        with the batch in them, which the commit tells.
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

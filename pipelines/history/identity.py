"""Check that a history's tables belong to the checkpoint and the cluster.

Tables identify a batch by its number, and another checkpoint would count from 0 again. So each
checkpoint has an id, which its tables have too, and both are compared at the start.
"""

from __future__ import annotations

import uuid

import msgspec

from caughtup.models.errors import CaughtupError
from caughtup.pipelines.delta.store import Store
from caughtup.pipelines.delta.table import Owner
from caughtup.pipelines.history.tables import (
    ADDED_LATER,
    LAYOUTS,
    HistoryTables,
    complete_tables,
    open_tables,
)
from caughtup.pipelines.spark.session import Files
from caughtup.pipelines.tables import SCHEMA

MARK = "_caughtup.json"


class Identity(msgspec.Struct):
    """The content of a checkpoint's mark file: the history's id, the cluster's id, the schema."""

    history: str
    cluster: str
    schema: int


def own_tables(files: Files, root: Store, checkpoint: str, cluster: str) -> HistoryTables:
    """Open the tables of a checkpoint and a cluster, or create those of a new checkpoint.

    Raises CaughtupError ``bad_output``, ``bad_checkpoint`` or ``output_unwritable``.
    """
    mark = f"{checkpoint}/{MARK}"
    ours = read_mark(files, mark)
    if ours is not None and ours.schema != SCHEMA:
        raise CaughtupError(
            "bad_checkpoint",
            f"{checkpoint} is of schema {ours.schema}, and this release writes schema {SCHEMA}: "
            "use the release that wrote it, or `caughtup pipeline convert`",
        )
    if ours is not None and ours.cluster != cluster:
        raise CaughtupError(
            "bad_checkpoint",
            f"{checkpoint} is of the cluster {ours.cluster}, and this is {cluster}: each cluster "
            "needs a history of its own",
        )
    if ours is None and files.names(f"{checkpoint}/offsets"):
        raise CaughtupError(
            "bad_checkpoint",
            f"{checkpoint} is not a checkpoint of this release's history: name another one",
        )
    refuse_older(root)
    owner = Owner(uuid.uuid4().hex if ours is None else ours.history, cluster)
    found = open_tables(root, owner)
    needed = {layout.name for layout in LAYOUTS} - ADDED_LATER
    missing = [layout.name for layout in LAYOUTS if layout.name in needed - found.keys()]
    if missing and files.names(f"{checkpoint}/commits"):
        raise CaughtupError(
            "bad_output",
            f"{checkpoint} continues from batches that it wrote, but there is no table {missing[0]} "
            f"at {root.uri}: give the --output that has it, or another --checkpoint",
        )
    if ours is None:
        # The mark precedes the tables: after a kill in between, the next start creates these.
        files.write(mark, msgspec.json.encode(Identity(owner.history, cluster, SCHEMA)))
    return complete_tables(root, owner, found)


def refuse_older(root: Store) -> None:
    """Raise CaughtupError ``bad_output`` if an older release wrote its folders at this place."""
    names = root.names()
    if MARK in names:
        raise CaughtupError(
            "bad_output",
            f"{root.uri} has the folders of caughtup 0.1: `caughtup pipeline convert` makes tables "
            "of them, or give another --output and another --checkpoint",
        )
    if any(name.startswith(("date=", "_spark_metadata")) for name in names):
        raise CaughtupError(
            "bad_output",
            f"{root.uri} is a table of an older release of caughtup and stays readable; write "
            "this release's history to another place, with another --checkpoint",
        )


def read_mark(files: Files, path: str) -> Identity | None:
    """Read a checkpoint's mark file; return None if there is none.

    Raises CaughtupError ``bad_checkpoint`` if it is malformed.
    """
    if not files.exists(path):
        return None
    try:
        return msgspec.json.decode(files.read(path), type=Identity)
    except msgspec.DecodeError as error:
        raise CaughtupError("bad_checkpoint", f"can't read {path}: {error}") from error

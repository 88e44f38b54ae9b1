"""Which checkpoint and which cluster a history's tables belong to.

A batch's files are known by its number, and another checkpoint counts from 0 again: written to
the same tables it would find its files there already. So which one it is is checked at the start.
"""

from __future__ import annotations

import uuid

import msgspec

from caughtup.models.errors import CaughtupError
from caughtup.pipelines.schema import BUCKETS
from caughtup.pipelines.spark.files import Files
from caughtup.pipelines.tables import SCHEMA

_NAME = "_caughtup.json"


class _Identity(msgspec.Struct):
    history: str
    cluster: str
    schema: int
    buckets: int


def check_identity(files: Files, output: str, checkpoint: str, cluster: str) -> None:
    """Check that tables, checkpoint and cluster belong together, or mark new ones as doing so.

    Raises CaughtupError ``bad_output`` or ``bad_checkpoint``.
    """
    here, there = f"{checkpoint}/{_NAME}", f"{output}/{_NAME}"
    ours = _read(files, here, "bad_checkpoint")
    tables = _read(files, there, "bad_output")
    if tables is None and any(
        name.startswith(("date=", "_spark_metadata")) for name in files.names(output)
    ):
        raise CaughtupError(
            "bad_output",
            f"{output} is a table of an older release of caughtup, which goes on being readable; "
            "write this one's history to another place, with another --checkpoint",
        )
    if tables is not None and (ours is None or ours.history != tables.history):
        raise CaughtupError(
            "bad_output",
            f"{output} was written with another checkpoint than {checkpoint}: give that one, or "
            "another --output",
        )
    for found in (ours, tables):
        if found is not None and (found.schema != SCHEMA or found.buckets != BUCKETS):
            raise CaughtupError(
                "bad_output",
                f"{output} is of schema {found.schema} with {found.buckets} buckets, and this "
                f"release writes schema {SCHEMA} with {BUCKETS}: use the release that wrote it",
            )
    if ours is not None and ours.cluster != cluster:
        raise CaughtupError(
            "bad_checkpoint",
            f"{checkpoint} is of the cluster {ours.cluster}, and this is {cluster}: each has a "
            "history of its own",
        )
    if ours is None:
        if files.names(f"{checkpoint}/offsets"):
            raise CaughtupError(
                "bad_checkpoint",
                f"{checkpoint} is no checkpoint of this release's history: give another one",
            )
        ours = _Identity(uuid.uuid4().hex, cluster, SCHEMA, BUCKETS)
        files.write(here, msgspec.json.encode(ours))
    if tables is None:
        files.write(there, msgspec.json.encode(ours))


def _read(files: Files, path: str, code: str) -> _Identity | None:
    if not files.exists(path):
        return None
    try:
        return msgspec.json.decode(files.read(path), type=_Identity)
    except msgspec.DecodeError as error:
        raise CaughtupError(code, f"can't read {path}: {error}") from error

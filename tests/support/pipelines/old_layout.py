"""A history as written by caughtup 0.1: folders of Parquet, and the state beside the checkpoint."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from caughtup.pipelines.events import KafkaRecord
from caughtup.pipelines.history.buckets.tables import (
    KNOWN_COMMITS,
    KNOWN_ENDS,
    bucket_parts,
)
from caughtup.pipelines.history.decoding.batches import pack_records
from caughtup.pipelines.schema import BUCKETS
from tests.support.pipelines.commit_batches import batch_of
from tests.support.pipelines.end_offsets import TOPIC_TABLES

HISTORY, CLUSTER = "old-history", "2VRiQaSTRTyA9bBbE_kRyQ"


class OldHistory:
    """Tables and a checkpoint in a directory, written batch by batch."""

    def __init__(self, directory: Path) -> None:
        self.tables = directory / "tables"
        self.checkpoint = directory / "checkpoint"
        self._state: dict[str, str] = {}
        mark = {"history": HISTORY, "cluster": CLUSTER, "schema": 3, "buckets": 4}
        for root in (self.tables, self.checkpoint):
            root.mkdir(parents=True)
            (root / "_caughtup.json").write_text(json.dumps(mark))
        (self.checkpoint / "._caughtup.json.crc").write_bytes(b"crc\0")

    def write(self, batch: int, records: Sequence[KafkaRecord], *, whole: bool = True) -> None:
        """Write a batch's files; unless ``whole``, Spark's checkpoint lacks its commit."""
        made = list(pack_records(TOPIC_TABLES, BUCKETS, [batch_of(list(records))]))
        for bucket in range(BUCKETS):
            packs = self._known(bucket)
            for few in made:
                for row in few.to_pylist():
                    if row["bucket"] == bucket:
                        packs.setdefault(row["kind"], []).append(row["data"])
            for part in bucket_parts(bucket, packs, BUCKETS):
                if part.table == "_state":
                    self._left(
                        part.folder.split("/")[0].removeprefix("kind="), bucket, batch, part.rows
                    )
                else:
                    put(
                        self.tables / part.table / part.folder / f"batch-{batch:010}.parquet",
                        part.rows,
                    )
        for name, content in (("offsets", "v1"), *([("commits", "v1")] if whole else [])):
            (self.checkpoint / name).mkdir(exist_ok=True)
            (self.checkpoint / name / str(batch)).write_text(content)
        if whole:
            state = self.checkpoint / "caughtup" / f"state-{batch:010}.json"
            state.parent.mkdir(exist_ok=True)
            state.write_text(json.dumps(self._state))

    def _known(self, bucket: int) -> dict[str, list[bytes]]:
        place, found = self.checkpoint / "caughtup", dict[str, list[bytes]]()
        for name, file in self._state.items():
            kind, _, number = name.partition("-")
            if kind == "ends":
                found.setdefault(KNOWN_ENDS, []).append((place / file).read_bytes())
            elif number == str(bucket):
                found[KNOWN_COMMITS] = [(place / file).read_bytes()]
        return found

    def _left(self, kind: str, bucket: int, batch: int, rows: pa.Table) -> None:
        name = f"{kind}-{bucket}-{batch:010}.parquet"
        put(self.checkpoint / "caughtup" / name, rows)
        self._state[f"{kind}-{bucket}"] = name


def put(path: Path, rows: pa.Table) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, path, compression="zstd", store_schema=False)

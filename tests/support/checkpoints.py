"""Checkpoints as Spark 4.0 writes them, made without Spark."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

#: Topic → partition number → offset.
Offsets = Mapping[str, Mapping[int, int]]


def line(offsets: Offsets) -> str:
    """Return the line of a Kafka source's offsets."""
    return json.dumps(
        {topic: {str(number): at for number, at in of.items()} for topic, of in offsets.items()},
        separators=(",", ":"),
    )


def batch_end(at_ms: int, *sources: Offsets | str) -> bytes:
    """Return the content of ``offsets/N``."""
    header = {
        "batchWatermarkMs": 0,
        "batchTimestampMs": at_ms,
        "conf": {"spark.sql.shuffle.partitions": "4"},
    }
    lines = [source if isinstance(source, str) else line(source) for source in sources]
    return "\n".join(["v1", json.dumps(header), *lines]).encode()


class Checkpoint:
    """A checkpoint in a folder; times in ms."""

    def __init__(
        self, folder: Path, query_id: str = "1f0e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"
    ) -> None:
        self.folder = folder
        for log in ("offsets", "commits", "sources/0", "state/0/0"):
            (folder / log).mkdir(parents=True)
        (folder / "metadata").write_text(json.dumps({"id": query_id}))
        (folder / "offsets/.0.crc").write_bytes(b"crc\0")
        (folder / "offsets/.5.tmp").write_bytes(b"half")

    def begin_at(self, offsets: Offsets, source: int = 0) -> None:
        """Write the offsets at which a source begins."""
        (self.folder / f"sources/{source}").mkdir(exist_ok=True)
        (self.folder / f"sources/{source}/0").write_bytes(b"\0v1\n" + line(offsets).encode())

    def start(self, number: int, at_ms: int, *sources: Offsets | str) -> None:
        """Begin a batch."""
        (self.folder / f"offsets/{number}").write_bytes(batch_end(at_ms, *sources))

    def commit(self, number: int, at_ms: int) -> None:
        """Commit a batch at a time (ms)."""
        file = self.folder / f"commits/{number}"
        file.write_text('v1\n{"nextBatchWatermarkMs":0}')
        os.utime(file, ns=(at_ms * 1_000_000, at_ms * 1_000_000))

    def batch(self, number: int, at_ms: int, *sources: Offsets | str) -> None:
        """Begin and commit a batch at one time."""
        self.start(number, at_ms, *sources)
        self.commit(number, at_ms)

"""A history as its job leaves it, in many small files, and what is in it as another tool reads it."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

import pyarrow
import pyarrow.parquet

TODAY = date(2026, 11, 22)
#: Files of a past day, and rows in each.
BATCHES, ROWS = 4, 25
_EARLY = [
    ("as_of", pyarrow.timestamp("us", "UTC")),
    ("group", pyarrow.string()),
    ("topic", pyarrow.string()),
    ("partition", pyarrow.int32()),
    ("lag", pyarrow.int64()),
    ("log_partition", pyarrow.int32()),
    ("log_offset", pyarrow.int64()),
]
EARLY = pyarrow.schema(_EARLY)
#: What a later release writes.
LATER = pyarrow.schema([*_EARLY, ("source", pyarrow.string())])


def write_history(root: Path, table: str = "lag", bucket: str = "group_bucket") -> None:
    """Write two past days and today, two buckets each, every second file with a column more."""
    for back in (2, 1, 0):
        for number in (1, 3):
            for batch in range(1, BATCHES + 1):
                # Today's come last; yesterday's last one is of today's first batch.
                place = folder(root, table, back, bucket, number)
                write_file(place, 3 * (2 - back) + batch, TODAY - timedelta(days=back))


def folder(root: Path, table: str, back: int, bucket: str, number: int) -> Path:
    """Return the folder of a day so many days before TODAY."""
    return root / table / f"date={TODAY - timedelta(days=back)}" / f"{bucket}={number}"


def write_file(place: Path, batch: int, day: date, rows: int = ROWS) -> Path:
    """Write a batch's file, its rows in the order of its log."""
    later = batch % 2 == 0
    midnight = datetime.combine(day, time(), UTC)
    columns = {
        "as_of": [midnight + timedelta(seconds=60 * batch + row) for row in range(rows)],
        "group": [f"group-{row * 7 % 5}" for row in range(rows)],
        "topic": ["orders"] * rows,
        "partition": [row % 3 for row in range(rows)],
        "lag": [None if row % 11 == 0 else row for row in range(rows)],
        "log_partition": [batch % 2] * rows,
        "log_offset": [1_000 * batch + row for row in range(rows)],
    }
    if later:
        columns["source"] = ["commit"] * rows
    place.mkdir(parents=True, exist_ok=True)
    path = place / f"batch-{batch:010}.parquet"
    table = pyarrow.table(columns, schema=LATER if later else EARLY)
    pyarrow.parquet.write_table(table, path)
    return path


def rows_in(root: Path) -> Counter[tuple[object, ...]]:
    """Count the rows below a directory: their folder and columns, those that are absent as null."""
    found: Counter[tuple[object, ...]] = Counter()
    for path in sorted(root.rglob("*.parquet")):
        place = path.parent.relative_to(root)
        if place.parts[0].startswith("_"):
            continue
        table = pyarrow.parquet.ParquetFile(path).read()
        found.update(
            (str(place), *(row.get(name) for name in LATER.names)) for row in table.to_pylist()
        )
    return found


def names_in(place: Path) -> list[str]:
    """Name the tables' files in a folder."""
    return sorted(path.name for path in place.glob("*.parquet"))


def is_tidy(root: Path) -> bool:
    """Return whether neither journals nor anything in the staging directory is left."""
    return not any(
        path.is_file() for name in ("_compactions", "_staging") for path in (root / name).rglob("*")
    )

"""The history's tables: created without a job, and read by polars, like other tools."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import polars
from deltalake import DeltaTable

from caughtup.pipelines.delta.store import Store
from caughtup.pipelines.delta.table import Owner
from caughtup.pipelines.history.tables import HistoryTables, complete_tables, open_tables

OWNER = Owner("history-1", "2VRiQaSTRTyA9bBbE_kRyQ")


def new_tables(root: Path | str | Store, owner: Owner = OWNER) -> HistoryTables:
    """Open a history's tables, or create them, as its job does at its start."""
    store = root if isinstance(root, Store) else Store(str(root))
    return complete_tables(store, owner, open_tables(store, owner))


def rows_of(
    root: Path | str,
    table: str,
    version: int | None = None,
    options: Mapping[str, str] | None = None,
) -> list[dict[str, Any]]:
    """Read a table at a version, by default the newest; empty if it doesn't exist."""
    place, given = f"{root}/{table}", dict(options or {})
    if not DeltaTable.is_deltatable(place, given):
        return []
    return polars.read_delta(place, version=version, storage_options=given).to_dicts()


def counted(rows: Iterable[Mapping[str, Any]], *names: str) -> Counter[tuple[Any, ...]]:
    """Count rows by some of their columns."""
    return Counter(tuple(_countable(row[name]) for name in names) for row in rows)


def _countable(value: Any) -> Any:
    """Return a hashable value; nested values become text."""
    return repr(value) if isinstance(value, list | dict) else value


def in_ms(moment: datetime | None) -> int | None:
    """Return a time in ms since the epoch."""
    return None if moment is None else round(moment.timestamp() * 1000)


@contextmanager
def unseen(_what: str, _steps: int) -> Iterator[Callable[[int], None]]:
    """Show no progress."""
    yield lambda _: None

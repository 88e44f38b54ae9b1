"""Rows of a replay as they stand in a table, and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

import msgspec

from caughtup.models.errors import CaughtupError
from caughtup.models.replay.figures import ReplayFigures
from caughtup.models.replay.outcome import RECORDED, ReplayRow, replay_group
from caughtup.models.replay.recorded import RecordedGeneration
from caughtup.models.replay.settings import ReplaySetting
from caughtup.pipelines.generations.recorded import read_recorded

_FIGURES = tuple(field.name for field in fields(ReplayFigures))


def replay_rows(
    rows: Iterable[Mapping[str, Any]], settings: Sequence[ReplaySetting | None]
) -> Iterator[dict[str, Any]]:
    """Replay rows of one group, as they stand in the table of generations, in their order.

    What stands there twice, after two runs at once, counts once; what can't be read or decided
    gives a row with its error for each setting.
    """
    readable: list[RecordedGeneration] = []
    seen: set[tuple[int, int | None]] = set()
    for row in rows:
        identity = (row["as_of_ms"], row["generation"])
        if identity in seen:
            continue
        seen.add(identity)
        try:
            readable.append(read_recorded(row))
        except CaughtupError as error:
            for setting in settings:
                name = RECORDED if setting is None else str(setting)
                unread = ReplayRow(
                    row["group"], row["generation"], row["as_of_ms"], name, 0, error=str(error)
                )
                yield flat(unread)
    yield from map(flat, replay_group(readable, settings))


def flat(row: ReplayRow) -> dict[str, Any]:
    """Write a row by the table's columns: figures flat, the decision as JSON."""
    figures = dict.fromkeys(_FIGURES) if row.figures is None else asdict(row.figures)
    decision = None if row.decision is None else msgspec.json.encode(row.decision).decode()
    return {
        "group": row.group,
        "generation": row.generation,
        "as_of_ms": row.as_of_ms,
        "setting": row.setting,
        "doubts": row.doubts,
        "decision": decision,
        "change": row.change,
        "seconds_until_change": row.seconds_until_change,
        "error": row.error,
        **figures,
    }


def read_flat(row: Mapping[str, Any]) -> ReplayRow:
    """Read a row back, without its decision."""
    figures = None
    if row["copies_built"] is not None:
        figures = ReplayFigures(**{name: row[name] for name in _FIGURES})
    return ReplayRow(
        row["group"],
        row["generation"],
        row["as_of_ms"],
        row["setting"],
        row["doubts"],
        change=row["change"],
        seconds_until_change=row["seconds_until_change"],
        figures=figures,
        error=row["error"],
    )

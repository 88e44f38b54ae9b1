"""Replay recorded rows of the table of generations, and convert a replay's rows to columns and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

import msgspec

from caughtup.models.assignment.decision import DecidedTasks
from caughtup.models.errors import CaughtupError
from caughtup.models.replay.figures import ReplayFigures
from caughtup.models.replay.outcome import RECORDED, ReplayRow, replay_group
from caughtup.models.replay.recorded import RecordedGeneration
from caughtup.models.replay.settings import ReplaySetting

#: A row as Spark or Delta gives it: the table's schema gives each column its type.
TableRow = Mapping[str, Any]


def read_recorded(row: TableRow) -> RecordedGeneration:
    """Read a row back. Raises CaughtupError for a row with an error, or a malformed one.

    ``row`` has the table's columns, with maps as pairs, and ``as_of_ms``.
    """
    if row["error"] is not None or row["scenario"] is None:
        raise CaughtupError("unread", row["error"] or "no scenario was recorded")
    try:
        scenario = msgspec.json.decode(row["scenario"], type=dict[str, object])
    except msgspec.DecodeError as error:
        raise CaughtupError("bad_json", f"scenario: {error}") from None
    clients: dict[str, DecidedTasks] = {}
    sums: dict[str, dict[str, int]] = {}
    for member in row["members"]:
        process = member["process_id"]
        given = clients.setdefault(process, {"active": [], "standby": [], "warmup": []})
        given["active"] = sorted({*given["active"], *member["active"]}, key=_task_order)
        given["standby"] = sorted({*given["standby"], *member["standby"]}, key=_task_order)
        sums.setdefault(process, {}).update(dict(member["offset_sums"]))
    return RecordedGeneration(
        group=row["group"],
        generation=row["generation"],
        as_of_ms=row["as_of_ms"],
        scenario=scenario,
        assigned={
            "probing_rebalance_needed": row["next_rebalance_ms"] is not None,
            "clients": clients,
        },
        offset_sums=sums,
        doubts=tuple(row["doubts"]),
    )


def _task_order(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split("_")))


_FIGURES = tuple(field.name for field in fields(ReplayFigures))


def replay_rows(
    rows: Iterable[TableRow], settings: Sequence[ReplaySetting | None]
) -> Iterator[dict[str, object]]:
    """Replay one group's rows of the table of generations, given in their order.

    Duplicates, from two jobs at the same time, count once. A row that cannot be read or decided
    yields a row with the error for each setting.
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
                yield flat_row(unread)
    yield from map(flat_row, replay_group(readable, settings))


def flat_row(row: ReplayRow) -> dict[str, object]:
    """Return a row in the table's columns: with flat figures, and the decision as JSON."""
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


def read_flat_row(row: TableRow) -> ReplayRow:
    """Read a row back from the table's columns, without its decision."""
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

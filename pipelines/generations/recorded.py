"""Read rows of the table of generations back, for a replay."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from caughtup.models.errors import CaughtupError
from caughtup.models.replay.recorded import RecordedGeneration


def read_recorded(row: Mapping[str, Any]) -> RecordedGeneration:
    """Read a row back. Raises CaughtupError for a row with an error, or a malformed one.

    ``row`` has the table's columns, with maps as pairs, and ``as_of_ms``.
    """
    if row["error"] is not None or row["scenario"] is None:
        raise CaughtupError("unread", row["error"] or "no scenario was recorded")
    try:
        scenario = msgspec.json.decode(row["scenario"], type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise CaughtupError("bad_json", f"scenario: {error}") from None
    clients: dict[str, dict[str, list[str]]] = {}
    sums: dict[str, dict[str, int]] = {}
    for member in row["members"]:
        process = member["process_id"]
        given = clients.setdefault(process, {"active": [], "standby": [], "warmup": []})
        for kind in ("active", "standby"):
            given[kind] = sorted({*given[kind], *member[kind]}, key=_task_order)
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

"""A week of a group in the history's tables: daily load, and an evening with an outage."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.agents.cli.history.tables import add
from tests.support.pictures.played_cluster import NOW_MS

DAYS = 7
_STEP = timedelta(minutes=7)
_PARTITIONS = 4
#: When reading stopped, went on, and had caught up, in hours before now.
_STOOD, _AGAIN, _MADE_UP = 66.0, 63.5, 59.0


def write_week(root: Path) -> None:
    """Write eight days of the group ``orders``."""
    now = datetime.fromtimestamp(NOW_MS / 1000, UTC)
    moments = [
        now - (DAYS + 1) * timedelta(days=1) + n * _STEP
        for n in range((DAYS + 1) * timedelta(days=1) // _STEP)
    ]
    rows: list[dict[str, Any]] = []
    end = 4_000_000.0
    for moment in moments:
        hour = moment.hour + moment.minute / 60
        per_second = 252 * (1.25 - math.cos((hour - 3.5) * math.pi / 12))
        end += per_second * _STEP.total_seconds()
        behind = _behind((now - moment).total_seconds() / 3_600) * 420
        for partition in range(_PARTITIONS):
            # The group is a second behind, as it is now.
            lag = int(per_second * (0.7 + 0.2 * partition) + behind)
            known = {"lag": lag, "end_offset": int(end), "committed": int(end) - lag}
            of = {"group": "orders", "topic": "orders", "partition": partition}
            rows.append({"as_of": moment, **of, **known})
    add(root, "lag", *rows)
    clients = ["orders-a", "orders-b"]
    generations = [(150.0, clients), (_STOOD, clients[:1]), (_AGAIN, clients), (20.0, clients)]
    generations[3] = (20.0, [*clients, "orders-c"])
    add(
        root,
        "group_generations",
        *(
            _generation(now, hours, number, who)
            for number, (hours, who) in enumerate(generations, 12)
        ),
    )


def _behind(hours_ago: float) -> float:
    """Return the age (s) of the oldest unread record, ``hours_ago`` hours ago."""
    if _AGAIN <= hours_ago <= _STOOD:
        return (_STOOD - hours_ago) * 3_600
    if _MADE_UP <= hours_ago <= _AGAIN:
        return (_STOOD - _AGAIN) * 3_600 * (hours_ago - _MADE_UP) / (_AGAIN - _MADE_UP)
    return 0.0


def _generation(now: datetime, hours: float, number: int, clients: list[str]) -> dict[str, Any]:
    members = [
        {"member_id": one, "client_id": f"{one}-StreamThread-1-consumer", "host": "/10.1.0.11"}
        for one in clients
    ]
    at = now - timedelta(hours=hours)
    return {"as_of": at, "group": "orders", "generation": number, "members": members}

"""``python -m scripts.dashboards``: write grafana/dashboards/, as ``make dashboards`` does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from scripts.dashboards.connect import connect
from scripts.dashboards.groups import groups
from scripts.dashboards.health import health
from scripts.dashboards.overview import overview
from scripts.dashboards.reassignments import reassignments
from scripts.dashboards.streams import streams

FOLDER = Path(__file__).resolve().parents[2] / "grafana" / "dashboards"

#: The function that makes each file's JSON. The overview keeps the name of the former only
#: dashboard.
FILES: dict[str, Callable[[], str]] = {
    "caughtup.json": overview,
    "groups.json": groups,
    "streams.json": streams,
    "reassignments.json": reassignments,
    "connect.json": connect,
    "health.json": health,
}

if __name__ == "__main__":
    for name, make in FILES.items():
        (FOLDER / name).write_text(make())

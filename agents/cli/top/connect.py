"""Connect groups: how their work is spread, what nobody has, and who runs what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from caughtup.agents.cli.top.tables import DECISION_COLOURS, Line, Table
from caughtup.agents.columns import Column
from caughtup.models.durations import duration

GROUP_COLUMNS = (
    Column("CONNECT GROUP", name=True),
    Column("WORKERS", right=True, order=2),
    Column("CONNECTORS", right=True, order=1),
    Column("TASKS", right=True),
    Column("UNASSIGNED", right=True),
    Column("CONTRADICTIONS", right=True, order=3),
    Column("DECIDED", colours=DECISION_COLOURS),
    Column("GENERATION", right=True, order=0),
)
ITEM_COLUMNS = (
    Column("NAME", name=True),
    Column("WORKER", name=True),
    Column("STATE", colours={"RUNNING": "green", "FAILED": "red"}),
    Column("SAID BY", name=True, order=0),
    Column("GOES TO", name=True, order=1),
)


def connect(state: Mapping[str, Any]) -> Table:
    """Return the Connect groups, those first of whose work something isn't done."""
    lines = []
    for view in state.get("connect", ()):
        unassigned, contradictions = len(view["unassigned"]), len(view["contradictions"])
        cells = (
            view["group"],
            str(len(view["workers"])),
            str(len(view["connectors"])),
            str(sum("task" in item for item in view["items"])),
            str(unassigned),
            str(contradictions),
            view.get("result", "not yet"),
            str(view.get("generation", "")),
        )
        ranks = {"unassigned": (-unassigned, -contradictions), "name": 0}
        lines.append(Line((view["group"],), cells, ranks))
    orders = ("unassigned", "name")
    return Table("connect", GROUP_COLUMNS, lines, orders, "no Connect group is known")


def work(state: Mapping[str, Any], key: Sequence[Any], lines: object = None) -> Table:
    """Return the connectors and tasks of a group, with their workers."""
    (name,) = key
    view = next((one for one in state.get("connect", ()) if one["group"] == name), None)
    if view is None:
        return Table(name, ITEM_COLUMNS, [], ("name",), "this Connect group is gone")
    goes_to = {one["name"]: one.get("goes_to", "") for one in view["unassigned"]}
    found = []
    for number, item in enumerate(view["items"]):
        workers = item["workers"]
        cells = (
            item["name"],
            ", ".join(workers),
            item.get("state", ""),
            item.get("said_by", ""),
            goes_to.get(item["name"], ""),
        )
        ranks = {
            "name": number,
            "unassigned": bool(workers),
            "state": item.get("state") != "FAILED",
        }
        found.append(Line((item["connector"], item.get("task", -1)), cells, ranks))
    orders = ("name", "unassigned", "state")
    about = tuple(_words(view, state["now_ms"]))
    return Table(name, ITEM_COLUMNS, found, orders, "no connectors", about)


def _words(view: Mapping[str, Any], now_ms: int) -> list[str]:
    why = f" ({view['why']})" if view.get("why") else ""
    said = [f"generation {view.get('generation', 'unknown')}: {view.get('result', 'not yet')}{why}"]
    if (at_ms := view.get("next_rebalance_ms")) is not None:
        said[0] += f", next rebalance in {duration(max(0, at_ms - now_ms) / 1000)}"
    said += [f"{one['name']}: {one['why']}" for one in view["contradictions"]]
    return said

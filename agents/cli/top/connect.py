"""Connect groups: how their work is spread, what is unassigned, and who runs what."""

from __future__ import annotations

from collections.abc import Sequence

from caughtup.agents.cli.top.tables import Line, TopTable
from caughtup.agents.columns import CONNECT_COLUMNS, ITEM_COLUMNS, cells
from caughtup.agents.web.page.whole import WholeView
from caughtup.models.durations import duration
from caughtup.models.records.fields import changed
from caughtup.models.shown.connect_lines import ConnectView


def connect(state: WholeView) -> TopTable:
    """Return the Connect groups, those first of which most work is unassigned."""
    lines = [
        Line(
            (view.group,),
            cells(CONNECT_COLUMNS, view),
            {"unassigned": (-len(view.unassigned), -len(view.contradictions)), "name": 0},
        )
        for view in state.connect
    ]
    orders = ("unassigned", "name")
    return TopTable("connect", CONNECT_COLUMNS, lines, orders, "no Connect group is known")


def work(state: WholeView, key: Sequence[str | int], lines: object = None) -> TopTable:
    """Return the connectors and tasks of a group, with their workers."""
    name = str(key[0])
    view = next((one for one in state.connect if one.group == name), None)
    if view is None:
        return TopTable(name, ITEM_COLUMNS, [], ("name",), "this Connect group is gone")
    goes_to = {one.name: one.goes_to for one in view.unassigned}
    found = []
    for number, item in enumerate(view.items):
        ranks = {
            "name": number,
            "unassigned": bool(item.workers),
            "state": item.state != "FAILED",
        }
        row = cells(ITEM_COLUMNS, changed(item, goes_to=goes_to.get(item.name)))
        task = -1 if item.task is None else item.task
        found.append(Line((item.connector, task), row, ranks))
    orders = ("name", "unassigned", "state")
    about = tuple(_about(view, state.now_ms))
    return TopTable(name, ITEM_COLUMNS, found, orders, "no connectors", about)


def _about(view: ConnectView, now_ms: int) -> list[str]:
    why = f" ({view.why})" if view.why else ""
    about = [f"generation {view.generation}: {view.result}{why}"]
    if (at_ms := view.next_rebalance_ms) is not None:
        about[0] += f", next rebalance in {duration(max(0, at_ms - now_ms) / 1000)}"
    about += [f"{one.name}: {one.why}" for one in view.contradictions]
    return about

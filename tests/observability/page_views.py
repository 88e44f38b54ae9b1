"""A view of what a service tells, as ``GET api/view`` and ``GET api/events`` have it."""

from __future__ import annotations

import time
from typing import Any

import msgspec

from caughtup.agents.page_columns import DECLARED

_HEAD = (
    *("schema", "ready", "unready", "notices", "cluster", "cluster_name", "version"),
    *("reader", "links", "history"),
)
_REASSIGNMENTS = (
    "reassignments",
    "reassignment_counts",
    "reassignments_missing",
    "throttles",
    "recent_reassignments",
)
_VIEWS = {
    "overview": (
        "groups",
        "groups_more",
        "groups_not_told",
        *_REASSIGNMENTS,
        "streams",
        "faults",
        "refused",
        "set_aside",
        "checkpoint_problems",
        "feed",
    ),
    "reassignments": (*_REASSIGNMENTS, "feed"),
    "transactions": ("transactions", "transactions_missing", "partitions_left_out", "feed"),
    "connect": ("connect",),
    "streams": ("streams",),
    "health": (
        "faults",
        "refused",
        "set_aside",
        "checkpoint_problems",
        "parts",
        "unhealthy",
        "feed",
    ),
}
_GROUPS_MOST = 2_000


def view(state: dict[str, Any], query: dict[str, str]) -> dict[str, Any]:
    """Return what a query asks for: ``view``, with ``find``, or ``group``."""
    group = query.get("group")
    name = "group" if group is not None else query["view"]
    head = {key: state[key] for key in _HEAD if key in state}
    told = {
        **head,
        "view": name,
        "declared": msgspec.to_builtins(DECLARED),
        "now_ms": int(time.time() * 1000),
    }
    if group is not None:
        return told | _group(state, group)
    told |= {key: state[key] for key in _VIEWS[name] if key in state}
    if name == "overview":
        found = [each for each in _groups(state) if query.get("find", "") in each["group"]]
        told |= {"groups": found[:_GROUPS_MOST], "groups_more": max(0, len(found) - _GROUPS_MOST)}
    return told


def _groups(state: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the groups, those whose application or workers are known, too, with these in short."""
    groups = {each["group"]: dict(each) for each in state["groups"]}
    for app in state["applications"]:
        roles = [copy["role"] for task in app["tasks"] for copy in task["copies"]]
        short = {"clients": len(app["clients"]), "tasks": len(app["tasks"])}
        short["copies"] = {role: roles.count(role) for role in set(roles)}
        short["movements"] = len(_pending(app))
        short["result"] = app["exact"]["result"]
        if "change" in app:
            short["change"] = app["change"]
        groups.setdefault(app["group"], {"group": app["group"]})["application"] = short
    for each in state["connect"]:
        short = {"workers": len(each["workers"]), "connectors": len(each["connectors"])}
        short |= {"unassigned": len(each["unassigned"]), "result": each["result"]}
        short["contradictions"] = len(each["contradictions"])
        groups.setdefault(each["group"], {"group": each["group"]})["connect"] = short
    return list(groups.values())


def _pending(app: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the recommended movements of an application that are still to be made."""
    runs = {
        (task["task"], copy["process"])
        for task in app["tasks"]
        for copy in task["copies"]
        if copy["role"] == "active"
    }
    at_once = {"active", "cold", "swap", "stateless"}
    movements: list[dict[str, Any]] = app.get("recommendation", {}).get("movements", [])
    return [m for m in movements if m["kind"] not in at_once or (m["task"], m["to"]) not in runs]


def _group(state: dict[str, Any], name: str) -> dict[str, Any]:
    told = {
        field: each
        for field in ("group", "application", "connect")
        for each in state[field if field == "connect" else f"{field}s"]
        if each["group"] == name
    }
    if "application" in told:
        told["application"] = {**told["application"], "pending": _pending(told["application"])}
    feed = [each for each in state["feed"] if each.get("group") == name]
    return {"partitions": state.get("partitions", []), "partitions_more": 0, "feed": feed, **told}

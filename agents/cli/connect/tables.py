"""Connect groups in plain columns: workers, what nobody has, contradictions, connectors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from caughtup.agents.cli.columns import Output, lines, printable
from caughtup.agents.columns import Column

_WORKERS = (
    Column("WORKER", name=True),
    Column("LEADER"),
    Column("CONNECTORS", right=True),
    Column("TASKS", right=True),
    Column("HAS", name=True),
)
_UNASSIGNED = (
    Column("UNASSIGNED", name=True),
    Column("FOR", right=True),
    Column("GOES TO", name=True),
    Column("IN", right=True),
)
_COLOURS = {
    "failed": "red",
    "zombie": "red",
    "unassigned": "red",
    "not_running": "yellow",
    "fewer_tasks": "yellow",
}
_CONTRADICTIONS = (
    Column("CONTRADICTION", colours=_COLOURS),
    Column("OF", name=True),
    Column("WORKER", name=True),
    Column("FOR", right=True),
    Column("WHY", name=True),
)
_CONNECTORS = (
    Column("CONNECTOR", name=True),
    Column("TYPE"),
    Column("STATE"),
    Column("TASKS", right=True),
    Column("TASKS.MAX", right=True),
    Column("LAG", right=True),
    Column("OFFSETS", right=True),
)


def group_lines(
    group: str, told: Iterable[dict[str, Any]], output: Output, now_ms: int
) -> Iterator[str]:
    """Yield what is printed of a group, of its lines."""
    by_kind: dict[str, list[dict[str, Any]]] = {}
    for line in told:
        by_kind.setdefault(line["kind"], []).append(line)
    for about in by_kind.get("group", []):
        yield from _about(group, about, now_ms)
    contradictions = [
        [
            one["contradiction"],
            one["name"],
            one.get("worker", ""),
            _since(one.get("since_ms"), now_ms),
            one["why"],
        ]
        for one in by_kind.get("contradiction", [])
    ]
    unassigned = [
        [
            one["name"],
            _since(one.get("since_ms"), now_ms),
            one.get("goes_to", ""),
            _until(one.get("at_ms"), now_ms),
        ]
        for one in by_kind.get("unassigned", [])
    ]
    workers = [
        [
            one["worker"],
            "leader" if one["leader"] else "",
            str(len(one["connectors"])),
            str(len(one["tasks"])),
            " ".join((*one["connectors"], *one["tasks"])),
        ]
        for one in by_kind.get("worker", [])
    ]
    connectors = [
        [
            one["name"],
            one.get("type", ""),
            one.get("state", ""),
            str(one["tasks"]),
            str(one.get("tasks_max", "")),
            str(one.get("lag", "")),
            _since(one.get("offsets_at_ms"), now_ms),
        ]
        for one in by_kind.get("connector", [])
    ]
    for columns, rows in (
        (_CONTRADICTIONS, contradictions),
        (_UNASSIGNED, unassigned),
        (_WORKERS, workers),
        (_CONNECTORS, connectors),
    ):
        if rows:
            yield ""
            yield from lines(columns, rows, output)


def _about(group: str, about: dict[str, Any], now_ms: int) -> Iterator[str]:
    """Yield the sentences about a group as a whole."""
    why = f": {about['why']}" if "why" in about else ""
    yield printable(
        f"{group}, generation {about['generation']} ({about.get('protocol')}), "
        f"compared with Kafka's assignor: {about['result']}{why}"
    )
    if "empty_since_ms" in about:
        yield f"the group has had no workers for {_since(about['empty_since_ms'], now_ms)}"
    if about["delay_ms"]:
        due = _until(about.get("next_rebalance_ms"), now_ms)
        why = about.get("delayed", "its cause is not known")
        yield f"a delay runs ({why}); the next rebalance is due in {due}"
    for worker, revoked in sorted(about["next_revokes"].items()):
        yield printable(f"the next rebalance revokes from {worker}: {' '.join(revoked)}")
    if "storm" in about:
        yield printable(f"the group rebalances again and again: {about['storm']['why']}")
    for one in about["absences"]:
        yield printable(
            f"{one['worker']} left {_since(one['left_ms'], now_ms)} ago: {one['outcome']}"
        )
    if "topics_unknown" in about:
        yield printable(
            f"the topics of its worker cluster are not known: {about['topics_unknown']}"
        )
    if "shared_with" in about:
        others = ", ".join(about["shared_with"])
        yield printable(
            f"it shares its topics with {others}: nobody can tell which group a status belongs to"
        )


def _since(at_ms: int | None, now_ms: int) -> str:
    return "" if at_ms is None else _seconds(now_ms - at_ms)


def _until(at_ms: int | None, now_ms: int) -> str:
    return "" if at_ms is None else _seconds(at_ms - now_ms)


def _seconds(ms: int) -> str:
    return f"{max(0, round(ms / 1000))} s"

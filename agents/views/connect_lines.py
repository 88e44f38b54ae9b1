"""Connect groups, one JSON object a line; and the same for the page."""

from __future__ import annotations

from collections.abc import Generator, Iterator

from caughtup.agents.views.connect import (
    Row,
    connector_rows,
    contradiction_row,
    group_row,
    item_rows,
    unassigned_rows,
    worker_rows,
)
from caughtup.models.state.cluster import ClusterState


def connect_lines(state: ClusterState, group: str, now_ms: int) -> Iterator[Row]:
    """Yield a group's lines: its workers, what nobody has, contradictions, connectors, the group."""
    known = state.connect.groups.get(group)
    if known is None or known.watch is None:
        return
    watch = known.watch
    _, topics = state.connect.topics_of(group)
    about = {
        "group": group,
        "generation": watch.generation.generation,
        "protocol": watch.generation.protocol,
    }
    if known.empty_since_ms is None:
        for worker in worker_rows(watch):
            yield {**about, "kind": "worker", **worker}
    for row in unassigned_rows(known, topics):
        yield {"group": group, "kind": "unassigned", **row}
    for one in state.connect.contradictions(group, now_ms):
        yield {"group": group, "kind": "contradiction", **contradiction_row(one)}
    for row in connector_rows(state, watch, topics):
        yield {"group": group, "kind": "connector", **row}
    yield {"group": group, "kind": "group", **group_row(state, group, known, now_ms)}


def connect_view(state: ClusterState, group: str, now_ms: int) -> Generator[None, None, Row | None]:
    """Describe a group for the page, in steps; None while nothing was decided of it yet."""
    known = state.connect.groups.get(group)
    if known is None or known.watch is None:
        return None
    watch = known.watch
    _, topics = state.connect.topics_of(group)
    view: Row = {"group": group, **group_row(state, group, known, now_ms)}
    view["workers"] = worker_rows(watch) if known.empty_since_ms is None else []
    yield
    view["unassigned"] = unassigned_rows(known, topics)
    yield
    view["contradictions"] = [
        contradiction_row(one) for one in state.connect.contradictions(group, now_ms)
    ]
    yield
    view["connectors"] = connector_rows(state, watch, topics)
    yield
    view["items"] = item_rows(watch, topics)
    return view

"""Connect groups in plain columns: workers, unassigned work, contradictions, connectors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from caughtup.agents.cli.columns import Output, lines, printable
from caughtup.agents.columns import (
    CONNECTOR_COLUMNS,
    CONTRADICTION_COLUMNS,
    UNASSIGNED_COLUMNS,
    WORKER_COLUMNS,
    Column,
    cells,
    seconds_since,
    seconds_until,
)
from caughtup.models.shown.connect_lines import (
    ConnectGroupLine,
    ConnectorLine,
    ContradictionLine,
    Line,
    UnassignedLine,
    WorkerLine,
)

#: The tables, in their order, each with its kind of lines.
_TABLES: tuple[tuple[type[Line], tuple[Column, ...]], ...] = (
    (ContradictionLine, CONTRADICTION_COLUMNS),
    (UnassignedLine, UNASSIGNED_COLUMNS),
    (WorkerLine, WORKER_COLUMNS),
    (ConnectorLine, CONNECTOR_COLUMNS),
)


def group_lines(group: str, found: Iterable[Line], output: Output, now_ms: int) -> Iterator[str]:
    """Yield what is printed of a group, from its lines."""
    of_group = list(found)
    for line in of_group:
        if isinstance(line, ConnectGroupLine):
            yield from _about(group, line, now_ms)
    for kind, columns in _TABLES:
        rows = [cells(columns, line, now_ms) for line in of_group if isinstance(line, kind)]
        if rows:
            yield ""
            yield from lines(columns, rows, output)


def _about(group: str, about: ConnectGroupLine, now_ms: int) -> Iterator[str]:
    """Yield the sentences about a group as a whole."""
    why = "" if about.why is None else f": {about.why}"
    yield printable(
        f"{group}, generation {about.generation} ({about.protocol}), "
        f"compared with Kafka's assignor: {about.result}{why}"
    )
    if about.empty_since_ms is not None:
        yield f"the group has had no workers for {seconds_since(about.empty_since_ms, now_ms)}"
    if about.delay_ms:
        due = seconds_until(about.next_rebalance_ms, now_ms)
        why = about.delayed or "its cause is not known"
        yield f"a delay runs ({why}); the next rebalance is due in {due}"
    for worker, revoked in sorted(about.next_revokes.items()):
        yield printable(f"the next rebalance revokes from {worker}: {' '.join(revoked)}")
    if about.storm is not None:
        yield printable(f"the group rebalances again and again: {about.storm.why}")
    for one in about.absences:
        since = seconds_since(one.left_ms, now_ms)
        yield printable(f"{one.worker} left {since} ago: {one.outcome}")
    if about.topics_unknown is not None:
        yield printable(f"the topics of its worker cluster are not known: {about.topics_unknown}")
    if about.shared_with is not None:
        others = ", ".join(about.shared_with)
        yield printable(
            f"it shares its topics with {others}: nobody can tell which group a status belongs to"
        )

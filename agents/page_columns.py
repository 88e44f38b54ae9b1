"""The columns that only the page has, and what it gets with each view to draw its tables.

``web/static/shell/table.js`` draws the columns, ``web/static/cells.js`` names the renderers of cells.
"""

from __future__ import annotations

from caughtup.agents.columns import (
    CONNECTOR_COLUMNS,
    COPY_COLUMNS,
    COPY_VERDICT_COLUMNS,
    GROUP_COLUMNS,
    MEMBER_COLUMNS,
    PARTITION_COLUMNS,
    REASSIGNMENT_COLUMNS,
    REBALANCE_COLUMNS,
    TRANSACTION_COLUMNS,
    UNASSIGNED_COLUMNS,
    VOCABULARIES,
    Column,
    Page,
)
from caughtup.models.rebalances.rebalance import CAUSES
from caughtup.models.records.fields import changed
from caughtup.models.verdicts import Vocabulary

#: Of a ``GroupRow`` and a ``PartitionLine``.
_RECENT = Column(
    "", of=("recent",), page=Page("Recent lag", "sparkline", 9, spare=True, sorts=False)
)
_PARTITION = Column(
    "",
    of=("topic", "partition"),
    unit="partition",
    page=Page("Partition", "partition", 0, id="partition"),
)
#: What is in a cell of the matrix of tasks. Of a ``CopyLine``.
_MATRIX_COLUMNS = (
    Column("", of=("role",), page=Page(cell="letter")),
    Column("", of=("lag",), page=Page(cell="short figure")),
    Column("", of=("lag",), page=Page(cell="lag bar", id="bar")),
)
#: Of a ``CopyLine`` and a ``ConnectorLine``.
_COPY_AGE = Column("", of=("as_of_ms",), page=Page(cell="copy age", place=9))
_PROGRESS = Column(
    "",
    of=("type", "lag", "offsets_at_ms"),
    page=Page("Reads or writes", "progress", 9, id="progress"),
)
#: Of a ``StreamLine``.
_STREAM_COLUMNS = (
    Column("", of=("stream",), page=Page("Stream", "stream")),
    Column("", verdict="streams", of=("status",), page=Page("Status", "verdict")),
    Column(
        "",
        right=True,
        of=("offsets_behind",),
        unit="number",
        page=Page(
            "Behind", title="offsets between the end of its last batch and the ends of the logs"
        ),
    ),
    Column(
        "",
        right=True,
        of=("rows_per_second",),
        page=Page("A second", "short", title="records that its last batch read in a second"),
    ),
)
#: Of a ``ChangeLine`` with its application.
_CHANGE_COLUMNS = (
    Column("", of=("group",), page=Page("Application", "change")),
    Column(
        "",
        right=True,
        of=("copies",),
        unit="number",
        page=Page(
            "Copies", "bar", title="copies of state that an instance had to build from nothing"
        ),
    ),
    Column("", right=True, of=("rebalances",), unit="number", page=Page("Rebalances")),
    Column(
        "",
        right=True,
        of=("waited_seconds", "waits"),
        page=Page(
            "Waited",
            "waited",
            spare=True,
            title="for rebalances that the application had scheduled",
        ),
    ),
    Column("", right=True, of=("at_ms", "at_rest_ms"), page=Page("At rest after", "rest")),
)
#: Of equal ``RecommendedMovement``s, with their ``tasks``.
_MOVEMENT_COLUMNS = (
    Column("", of=("tasks",), page=Page("Tasks", "moved tasks")),
    Column("", of=("kind",), page=Page("Movement", "movement")),
    Column("", of=("from", "to"), page=Page("From → to", "route")),
    Column("", right=True, of=("lag",), page=Page("Lag", "moved lag")),
    Column("", of=("reason",), page=Page("Reason when decided", "reason")),
)


def _left_out(what: str, where: tuple[str, str], times: str, name: str) -> tuple[Column, ...]:
    """Return the columns of what the service left out."""
    return (
        Column("", name=True, of=(name,), page=Page(what)),
        Column("", name=True, of=(where[0],), page=Page(where[1])),
        Column("", right=True, of=("times",), unit="number", page=Page(times)),
    )


def _on_page(*columns: Column) -> list[Column]:
    """Return the columns that the page has, in its order."""
    shown = [(column.page.place, column) for column in columns if column.page is not None]
    return [column for _, column in sorted(shown, key=lambda one: one[0])]


def _declared(vocabulary: Vocabulary) -> dict[str, object]:
    shown = ("word", "colour", "sign", "meaning")
    terms = [
        {name: value for name in shown if (value := getattr(term, name))}
        for term in vocabulary.terms
    ]
    return {"unassessed": vocabulary.unassessed, "terms": terms}


#: Sent to the page with each view: verdicts, the best first, and the columns of its tables.
DECLARED = {
    "verdicts": {kind: _declared(words) for kind, words in VOCABULARIES.items()},
    "causes": CAUSES,
    "columns": {
        name: _on_page(*columns)
        for name, columns in {
            "reassignments": REASSIGNMENT_COLUMNS,
            "transactions": TRANSACTION_COLUMNS,
            "groups": (*GROUP_COLUMNS, _RECENT),
            "partitions": (_PARTITION, *PARTITION_COLUMNS),
            "members": MEMBER_COLUMNS,
            "rebalances": REBALANCE_COLUMNS,
            "copies": (*COPY_COLUMNS, *COPY_VERDICT_COLUMNS, _COPY_AGE),
            "matrix": _MATRIX_COLUMNS,
            "movements": _MOVEMENT_COLUMNS,
            "changes": _CHANGE_COLUMNS,
            "connectors": (*CONNECTOR_COLUMNS, _PROGRESS),
            "unassigned": [changed(column, right=False) for column in UNASSIGNED_COLUMNS],
            "streams": _STREAM_COLUMNS,
            "faults": _left_out("Failed", ("part", "Part"), "Times", "subject"),
            "refused": _left_out("Refused on", ("key", "Key"), "Records", "topic"),
            "set_aside": _left_out("Not written", ("topic", "Topic"), "Records", "key"),
        }.items()
    },
}

"""The columns of tables on the terminal and on the page: their fields, units and layout.

``page_columns.py`` has what the page adds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from caughtup.agents.units import TIMES, Unit, formatted
from caughtup.models.records.fields import or_none
from caughtup.models.verdicts import (
    CONTRADICTIONS,
    COPIES,
    DECISIONS,
    LAG,
    OUTCOMES,
    REASSIGNMENTS,
    STREAMS,
    TRANSACTIONS,
)

#: The verdicts of a column, by its ``verdict``.
VOCABULARIES = {
    "lag": LAG,
    "reassignments": REASSIGNMENTS,
    "outcomes": OUTCOMES,
    "decisions": DECISIONS,
    "contradictions": CONTRADICTIONS,
    "streams": STREAMS,
    "copies": COPIES,
    "transactions": TRANSACTIONS,
}


class Page(msgspec.Struct, frozen=True, omit_defaults=True):
    """A column on the page, with its ``heading`` there.

    ``cell`` names the renderer of its cells (``web/static/cells.js``); without one they are figures
    in the column's unit. Columns are in the order of ``place``. ``spare`` ones are left out on a
    narrow page. ``id`` names it in addresses, by default by its first attribute. ``title`` explains
    it. ``sorts``: whether rows can be sorted by it, where its table can be sorted.
    """

    heading: str = ""
    cell: str = ""
    place: int = 5
    spare: bool = False
    id: str = ""
    title: str = ""
    sorts: bool = True


class Column(msgspec.Struct, frozen=True, omit_defaults=True):
    """A column, which shows the attributes ``of`` a row in a ``unit``.

    ``name`` is whether its cells may be shortened. If the columns don't fit, those with the
    smallest ``order`` are left out first, those with None never. Its cells are in the colours of a
    kind of ``verdict``, or in ``tints`` by their text. ``page``: how the page has it, if at all.
    """

    heading: str
    right: bool = False
    name: bool = False
    order: int | None = None
    verdict: str = ""
    tints: Mapping[str, str] = {}
    of: tuple[str, ...] = ()
    unit: Unit = "text"
    page: Page | None = None

    @property
    def colours(self) -> Mapping[str, str]:
        """The colours of its cells, by their text."""
        return VOCABULARIES[self.verdict].colours if self.verdict else self.tints

    def cell(self, row: object, now_ms: int = 0) -> str:
        """Return the text of a row's cell at ``now_ms``, empty if unknown."""
        values = [or_none(getattr(row, name)) for name in self.of]
        if self.unit in TIMES:
            return TIMES[self.unit](*values, now_ms)
        return formatted(self.unit, *values)


def cells(columns: Sequence[Column], row: object, now_ms: int = 0) -> tuple[str, ...]:
    """Return the texts of a row's cells."""
    return tuple(column.cell(row, now_ms) for column in columns)


_IN_TIME = Page("In time", place=3, id="time", title="the age of its oldest unread record")
#: Of a ``GroupLine``.
GROUP_COLUMNS = (
    Column("GROUP", name=True, of=("group",), page=Page("Group", "group", 0)),
    Column("STATE", verdict="lag", of=("status",), unit="state", page=Page("Status", "verdict", 1)),
    Column("LAG", right=True, of=("lag", "lag_at_least"), unit="lag", page=Page("Lag", "bar", 2)),
    Column(
        "SECONDS", right=True, of=("lag_seconds", "lag_seconds_method"), unit="age", page=_IN_TIME
    ),
    Column("PARTITIONS", right=True, order=1, of=("partitions",)),
    Column("MEMBERS", right=True, order=2, of=("members",)),
    Column("TYPE", order=0, of=("group_type",)),
)
#: Of a ``PartitionLine``.
PARTITION_COLUMNS = (
    Column("GROUP", name=True, of=("group",)),
    Column("TOPIC", name=True, of=("topic",)),
    Column("PARTITION", right=True, of=("partition",)),
    Column(
        "COMMITTED",
        right=True,
        order=0,
        of=("committed", "has_commit", "share_start_offset"),
        unit="committed",
        page=Page("Committed", place=4, spare=True),
    ),
    Column(
        "END",
        right=True,
        order=1,
        of=("end_offset", "committed", "verdict"),
        unit="log end",
        page=Page("Log's end", "log end", 4, spare=True, id="end"),
    ),
    Column("LAG", right=True, of=("lag",), unit="known", page=Page("Lag", "dated", 2)),
    Column(
        "SECONDS",
        right=True,
        order=3,
        of=("lag_seconds", "lag_seconds_method"),
        unit="age",
        page=_IN_TIME,
    ),
    Column(
        "STATE",
        verdict="lag",
        of=("verdict",),
        unit="state",
        page=Page("Status", "verdict", 1, id="status"),
    ),
    Column(
        "CLIENT",
        name=True,
        order=2,
        of=("client_id",),
        page=Page("Member", "member", 9, id="member"),
    ),
)
#: Of an ``AssignedMember``.
MEMBER_COLUMNS = (
    Column("MEMBER", name=True, of=("member",)),
    Column("CLIENT", name=True, of=("client_id",), page=Page("Client", place=0)),
    Column("HOST", name=True, of=("host",), page=Page("Host", place=1, spare=True)),
    Column(
        "PARTITIONS",
        right=True,
        of=("assigned",),
        unit="count",
        page=Page("Partitions", "assigned", 2),
    ),
    Column("LAG", right=True, of=("lag",), unit="number", page=Page("Lag", place=3)),
    Column(
        "A SECOND",
        right=True,
        of=("rate",),
        unit="records/s",
        page=Page("A second", place=4, title="records that its partitions get in a second"),
    ),
    Column("WHICH", name=True, of=("which",)),
)
#: Of a ``GroupRebalance``.
REBALANCE_COLUMNS = (
    Column("AGO", right=True, of=("at_ms",), unit="time since", page=Page("Ago", "time", 0)),
    Column("GENERATION", right=True, of=("generation",), page=Page("Generation", place=1)),
    Column("CAUSE", of=("cause_texts",), unit="list", page=Page("Cause", "causes", 2)),
    Column(
        "MOVED",
        right=True,
        of=("moved",),
        unit="number",
        page=Page("Moved", place=3, title="partitions that got another member"),
    ),
    Column(
        "STILL",
        right=True,
        of=("stood_still_seconds",),
        unit="time to go",
        page=Page(
            "Stood still",
            "time",
            4,
            title="the longest time without a commit of a partition that had to stop: at most this",
        ),
    ),
)
#: Of a ``CopyLine``, as a snapshot shows it.
COPY_COLUMNS = (
    Column("GROUP", name=True, of=("group",)),
    Column("TASK", of=("task",)),
    Column("CLIENT", name=True, order=1, of=("client_id",)),
    Column("ROLE", of=("role",), page=Page(cell="role", place=0)),
    Column("LAG", right=True, of=("lag",), page=Page(cell="copy lag", place=1)),
    Column("PROVENANCE", order=0, of=("provenance",), page=Page(cell="provenance", place=2)),
)
#: What a service adds to them, in ``top`` and on the page.
COPY_VERDICT_COLUMNS = (
    Column("STATE", verdict="copies", of=("verdict",), page=Page(cell="copy verdict", place=3)),
    Column("ENDS IN", right=True, order=1, of=("eta_seconds",), unit="time to go"),
)
#: Of a ``ConfigLine``.
CONFIG_COLUMNS = (
    Column("GROUP", name=True, of=("group",)),
    Column("CONFIG", of=("name",)),
    Column("VALUE", of=("values",)),
    Column("KNOWN", of=("known",)),
    Column("NARROWED BY", order=0, of=("would_tell",)),
)
#: Added by --wide to groups and partitions, last since it contains spaces.
WHY = Column("WHY", of=("why",))
#: Of an ``ApplicationView``.
APPLICATION_COLUMNS = (
    Column("APPLICATION", name=True, of=("group",)),
    Column("CLIENTS", right=True, order=1, of=("clients",), unit="count"),
    Column("TASKS", right=True, of=("tasks",), unit="count"),
    Column("BEHIND", right=True, of=("behind",)),
    Column("EXACT", verdict="decisions", of=("result",)),
    Column("PROBING IN", right=True, order=2, of=("probing_due_ms",), unit="seconds to go"),
    Column("GENERATION", right=True, order=0, of=("generation",)),
)
#: Of a ``Reassignment``.
REASSIGNMENT_COLUMNS = (
    Column("partition", name=True, of=("topic", "partition"), unit="partition"),
    Column("from → to", name=True, order=3, of=("original", "target"), unit="route", page=Page()),
    Column("phase", order=0, of=("phase",), page=Page(cell="phase", place=1)),
    Column("in sync", order=1, of=("isr", "target"), unit="of", page=Page()),
    Column(
        "left", right=True, of=("bytes_remaining", "offsets_remaining"), unit="left", page=Page()
    ),
    Column("rate", right=True, order=2, of=("rate_bytes_per_second",), unit="bytes/s", page=Page()),
    Column("ends in", right=True, of=("eta_seconds", "never"), unit="time to go", page=Page()),
    Column("verdict", verdict="reassignments", of=("verdict",), page=Page(cell="verdict", place=0)),
)
#: Of a ``ReplicaCopy``.
REPLICA_COLUMNS = (
    Column("BROKER", right=True, of=("broker",)),
    Column("ROLE", of=("role",)),
    Column("IN SYNC", of=("in_sync",), unit="yes or no"),
    Column("LOG END", right=True, of=("log_end",)),
    Column("SHARE", right=True, of=("share",), unit="share"),
    Column("BROKER STATE", order=0, of=("away", "missing", "unanswered"), unit="broker is"),
)
#: Of an ``OpenTransaction``.
TRANSACTION_COLUMNS = (
    Column(
        "TRANSACTION",
        name=True,
        of=("transactional_id", "producer_id"),
        unit="transaction",
        page=Page("Transaction", place=0, id="transaction"),
    ),
    Column("STATE", verdict="transactions", of=("verdict",), page=Page("State", "verdict", 1)),
    Column("OPEN FOR", right=True, of=("started_at_ms",), unit="time since", page=Page("Open for")),
    Column(
        "LAST WRITE",
        right=True,
        order=0,
        of=("last_write_ms",),
        unit="time since",
        page=Page("Last write", spare=True),
    ),
    Column(
        "TIMES OUT IN",
        right=True,
        order=1,
        of=("ends_at_ms",),
        unit="seconds to go",
        page=Page("Times out in"),
    ),
    Column("HOLDS BACK", name=True, of=("partitions",), unit="held", page=Page("Holds back")),
    Column(
        "OFFSETS BEHIND",
        right=True,
        of=("records_behind",),
        unit="number",
        page=Page("Offsets behind", spare=True),
    ),
    Column(
        "BLOCKED GROUPS",
        name=True,
        of=("blocked_groups",),
        unit="list",
        page=Page("Blocked groups", "blocked groups", 9),
    ),
)
#: Of a ``ConnectView``.
CONNECT_COLUMNS = (
    Column("CONNECT GROUP", name=True, of=("group",)),
    Column("WORKERS", right=True, order=2, of=("workers",), unit="count"),
    Column("CONNECTORS", right=True, order=1, of=("connectors",), unit="count"),
    Column("TASKS", right=True, of=("tasks",)),
    Column("UNASSIGNED", right=True, of=("unassigned",), unit="count"),
    Column("CONTRADICTIONS", right=True, order=3, of=("contradictions",), unit="count"),
    Column("DECIDED", verdict="decisions", of=("result",)),
    Column("GENERATION", right=True, order=0, of=("generation",)),
)
#: Of an ``ItemLine``.
ITEM_COLUMNS = (
    Column("NAME", name=True, of=("name",)),
    Column("WORKER", name=True, of=("workers",), unit="list"),
    Column("STATE", tints={"RUNNING": "green", "FAILED": "red"}, of=("state",)),
    Column("REPORTED BY", name=True, order=0, of=("said_by",)),
    Column("GOES TO", name=True, order=1, of=("goes_to",)),
)
#: Of a ``ContradictionLine``, an ``UnassignedLine``, a ``WorkerLine`` and a ``ConnectorLine``.
CONTRADICTION_COLUMNS = (
    Column("CONTRADICTION", verdict="contradictions", of=("contradiction",)),
    Column("NAME", name=True, of=("name",)),
    Column("WORKER", name=True, of=("worker",)),
    Column("FOR", right=True, of=("since_ms",), unit="since"),
    Column("WHY", name=True, of=("why",)),
)
UNASSIGNED_COLUMNS = (
    Column("UNASSIGNED", name=True, of=("name",), page=Page("Connector or task")),
    Column("FOR", right=True, of=("since_ms",), unit="since", page=Page("For", "time")),
    Column("GOES TO", name=True, of=("goes_to",), page=Page("Goes to", "worker")),
    Column("IN", right=True, of=("at_ms",), unit="until", page=Page("When", "time")),
)
WORKER_COLUMNS = (
    Column("WORKER", name=True, of=("worker",)),
    Column("LEADER", of=("leader",), unit="leader"),
    Column("CONNECTORS", right=True, of=("connectors",), unit="count"),
    Column("TASKS", right=True, of=("tasks",), unit="count"),
    Column("ASSIGNED", name=True, of=("connectors", "tasks"), unit="names"),
)
CONNECTOR_COLUMNS = (
    Column("CONNECTOR", name=True, of=("name",), page=Page("Connector", "connector", 0)),
    Column("TYPE", of=("type",), page=Page("Type", spare=True)),
    Column("STATE", of=("state",), page=Page("State", "connector state", 2)),
    Column("TASKS", right=True, of=("tasks",), page=Page("Tasks", "tasks", 1)),
    Column("TASKS.MAX", right=True, of=("tasks_max",)),
    Column("LAG", right=True, of=("lag",)),
    Column("OFFSETS", right=True, of=("offsets_at_ms",), unit="since"),
)

"""The shown values of a Connect group: workers, connectors, unassigned work, contradictions.

The page has the same lines as the terminal, in a ``ConnectView``.
"""

from __future__ import annotations

from collections.abc import Mapping

from caughtup.models.connect.watching.forecast import Imbalance
from caughtup.models.connect.watching.watch import Past
from caughtup.models.records.fields import Part


class WorkerLine(Part, kw_only=True, omit_defaults=True, tag_field="kind", tag="worker"):
    """A worker with its work once it has applied its assignment. The page omits ``group``."""

    group: str | None = None
    generation: int | None = None
    protocol: str | None = None
    worker: str
    member: str
    client_id: str
    host: str
    url: str
    leader: bool
    connectors: list[str]
    tasks: list[str]
    revoked: list[str]
    delay_ms: int
    reassign_at_ms: int | None = None


class UnassignedLine(Part, kw_only=True, omit_defaults=True, tag_field="kind", tag="unassigned"):
    """A connector or task that no worker has, and if known, which worker gets it when."""

    group: str | None = None
    name: str
    connector: str
    task: int | None = None
    since_ms: int | None = None
    goes_to: str | None = None
    at_ms: int | None = None


class ContradictionLine(
    Part, kw_only=True, omit_defaults=True, tag_field="kind", tag="contradiction"
):
    """A connector or task on which sources disagree; ``waits``: that may end by itself."""

    group: str | None = None
    name: str
    connector: str
    task: int | None = None
    contradiction: str
    worker: str | None = None
    since_ms: int | None = None
    why: str
    waits: bool


class ConnectorLine(Part, kw_only=True, omit_defaults=True, tag_field="kind", tag="connector"):
    """A connector: its configuration, its state, and the lag of a sink's consumer group."""

    group: str | None = None
    name: str
    tasks: int
    connector_class: str | None = None
    type: str | None = None
    tasks_max: int | None = None
    target_state: str | None = None
    state: str | None = None
    offsets_at_ms: int | None = None
    source_partitions: int | None = None
    consumer_group: str | None = None
    lag: int | None = None
    lag_seconds: float | None = None
    status: str | None = None
    partitions: int | None = None


class AbsenceLine(Part, omit_defaults=True):
    """A worker that left, until when its work stayed unassigned, and the outcome."""

    worker: str
    left_ms: int
    waits_until_ms: int | None = None
    back_ms: int | None = None
    outcome: str = ""


class StormLine(Part):
    """A group's repeated rebalances: see ``Storm``."""

    cause: str
    culprit: str
    joined: int
    left: int
    generations: int
    since_ms: int
    why: str


class ConnectGroupLine(Part, kw_only=True, omit_defaults=True, tag_field="kind", tag="group"):
    """A group as a whole: its newest generation decided again, and its next rebalance.

    ``next_revokes``: by worker, the work that the next rebalance revokes. ``topics``: the topics of
    its worker cluster by purpose, or ``topics_unknown``, why they are unknown. ``held_back``: what
    open transactions hold back on them.
    """

    group: str
    generation: int
    protocol: str | None = None
    as_of_ms: int | None = None
    result: str
    why: str | None = None
    empty_since_ms: int | None = None
    delay_ms: int
    delayed: str | None = None
    next_rebalance_ms: int | None = None
    next_revokes: dict[str, list[str]]
    imbalance: Imbalance | None = None
    imbalance_after: Imbalance | None = None
    uneven_since_ms: int | None = None
    storm: StormLine | None = None
    absences: list[AbsenceLine]
    topics: Mapping[str, str] | None = None
    topics_unknown: str | None = None
    held_back: list[str] | None = None
    shared_with: list[str] | None = None
    history: list[Past]


class ItemLine(Part, kw_only=True, omit_defaults=True):
    """A connector or task with its workers and its newest status.

    ``said_by``, ``said_generation`` and ``said_ms``: the worker that wrote the status, in which
    generation and when. ``goes_to``: the worker that gets it; only the terminal has this.
    """

    name: str
    connector: str
    task: int | None = None
    workers: list[str]
    state: str | None = None
    said_by: str | None = None
    said_generation: int | None = None
    said_ms: int | None = None
    error: str | None = None
    goes_to: str | None = None


class ConnectView(ConnectGroupLine, kw_only=True):
    """A whole group, for the page."""

    workers: list[WorkerLine]
    unassigned: list[UnassignedLine]
    contradictions: list[ContradictionLine]
    connectors: list[ConnectorLine]
    items: list[ItemLine]

    @property
    def tasks(self) -> int:
        """The number of tasks."""
        return sum(item.task is not None for item in self.items)


Line = WorkerLine | UnassignedLine | ContradictionLine | ConnectorLine | ConnectGroupLine

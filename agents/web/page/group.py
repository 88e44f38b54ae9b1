"""One group on the page: its figures, partitions, tasks or connectors, and recent events."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from itertools import islice

from caughtup.agents.process.health import Health
from caughtup.agents.web.page.head import Head, encoded, view_with_head
from caughtup.models.commits.table import LastCommits
from caughtup.models.decisions.consumer_decision import ConsumerDecision
from caughtup.models.ids import TopicPartition
from caughtup.models.lag.group_lag import PartitionRow, partition_rows
from caughtup.models.rebalances.rebalance import GroupRebalance
from caughtup.models.recent.happenings import Happening
from caughtup.models.records.fields import ABSENT, Absent, extended, or_absent, or_none
from caughtup.models.records.lag_lines import PartitionLine
from caughtup.models.shown.applications import ApplicationView, application_view
from caughtup.models.shown.connect import connect_view
from caughtup.models.shown.connect_lines import ConnectView
from caughtup.models.shown.groups import GroupLine, group_line, with_since
from caughtup.models.shown.lag import partition_lines, partition_rank
from caughtup.models.shown.streams_group import streams_group_view
from caughtup.models.state.cluster import ClusterState
from caughtup.models.verdicts import LAG

#: The most partitions of a group in one answer, the worst; the others are counted.
PARTITIONS_SHOWN = 500
#: The most rebalances of a group in one answer, the newest.
REBALANCES_SHOWN = 10


class GroupPartition(PartitionLine, kw_only=True):
    """A partition's line without its group, with the time of its end offset and its member's host."""

    as_of_ms: int | Absent = ABSENT
    host: str | Absent = ABSENT


class GroupView(Head, kw_only=True):
    """One group; ``group`` is absent if there is none of this name.

    ``decision`` compares its last assignment, if that was decided while the service ran, with what
    the assignor decides. ``next_assignor``: by which its coordinator says it assigns next, empty
    if it names none, absent if its leader assigns.
    """

    name: str
    partitions_more: int
    group: GroupLine | Absent = ABSENT
    partitions: Sequence[GroupPartition] | Absent = ABSENT
    application: ApplicationView | Absent = ABSENT
    connect: ConnectView | Absent = ABSENT
    decision: ConsumerDecision | Absent = ABSENT
    next_assignor: str | Absent = ABSENT
    rebalances: Sequence[GroupRebalance] = ()
    feed: Sequence[Happening]


def group_steps(
    state: ClusterState, health: Health, now_ms: int, group: str
) -> Generator[None, None, GroupView]:
    """Return one group, yielding to other work between steps. What fails is left out."""
    view = view_with_head(GroupView, state, health, now_ms, name=group, partitions_more=0, feed=())
    names = state.commits.groups() | state.groups.names()
    if group in names:
        with state.faults.isolated("page", group, now_ms):
            view.group = encoded(with_since(state, group_line(state, group)))
        yield
        with state.faults.isolated("page", group, now_ms):
            view.partitions, view.partitions_more = yield from _partitions(state, group)
        yield
    if (application := state.applications.get(group)) is not None:
        with state.faults.isolated("page", group, now_ms):
            described = yield from application_view(state, group, application, now_ms)
            view.application = encoded(described)
        yield
    elif (coordinated := state.groups.streams.get(group)) is not None:
        with state.faults.isolated("page", group, now_ms):
            view.application = encoded(
                (yield from streams_group_view(state, group, coordinated, now_ms))
            )
        yield
    if group in state.connect.groups:
        with state.faults.isolated("page", group, now_ms):
            connect = yield from connect_view(state, group, now_ms)
            view.connect = ABSENT if connect is None else encoded(connect)
    view.decision = or_absent(state.group_decisions.last(group))
    view.next_assignor = or_absent(state.group_decisions.next_assignor(group))
    view.rebalances = state.rebalances.of(group)[:REBALANCES_SHOWN]
    view.feed = list(state.recent.happenings.of(group))
    return view


def _partitions(
    state: ClusterState, group: str
) -> Generator[None, None, tuple[list[GroupPartition], int]]:
    """Return the worst partitions, and the number of the others."""
    membership = state.groups.membership(group)
    hosts = {} if membership is None else {one.member_id: one.host for one in membership.members}
    chosen, more = _worst(state, group)
    rows: list[GroupPartition] = []
    lines = partition_lines(state, group, chosen)
    while batch := list(islice(lines, 50)):
        for line in batch:
            latest = state.ends.latest(line.topic_partition)
            rows.append(
                extended(
                    GroupPartition,
                    line,
                    group=ABSENT,
                    as_of_ms=ABSENT if latest is None else latest.as_of_ms,
                    host=hosts.get(or_none(line.member) or "") or ABSENT,
                )
            )
        yield
    rows.sort(key=partition_rank)
    return rows, more


def _worst(state: ClusterState, group: str) -> tuple[Iterator[PartitionRow], int]:
    """Return the rows of a group's partitions, the worst if too many, and the number of others."""
    membership = state.groups.membership(group)
    owned = {} if membership is None else membership.owners
    last = state.commits.last(group)
    partitions = set(last.partitions) | owned.keys()
    if len(partitions) <= PARTITIONS_SHOWN:
        return state.partition_rows(group), 0
    found = {one: state.assessments.find(group, one) for one in state.assessments.behind(group)}

    def rank(one: TopicPartition) -> tuple[int, float, TopicPartition]:
        assessed = found[one]
        if assessed is None:
            return -LAG.severity(None), 0.0, one
        return -LAG.severity(assessed.verdict), -(assessed.lag_seconds or 0.0), one

    worst = sorted((one for one in found if one in partitions), key=rank)[:PARTITIONS_SHOWN]
    worst += sorted(partitions - set(worst))[: PARTITIONS_SHOWN - len(worst)]
    chosen = set(worst)
    kept = [(one, offset, at_ms) for one, offset, at_ms in zip(*last, strict=True) if one in chosen]
    commits = LastCommits(*map(list, zip(*kept, strict=True))) if kept else LastCommits([], [], [])
    rows = partition_rows(commits, membership, state.ends)
    return (row for row in rows if row.partition in chosen), len(partitions) - len(chosen)

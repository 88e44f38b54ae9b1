"""The lag table: a line for each partition, member and copy of a group.

The lines of partitions and copies are also the records of caughtup-lag, and rows of the page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import isfinite

from caughtup.models.copies.catch_up_rates import SOURCE_BY_PACE
from caughtup.models.copies.watch import CopyWatch
from caughtup.models.decisions.task_table import TaskCopy
from caughtup.models.ids import CopyKey
from caughtup.models.lag.group_lag import PartitionRow
from caughtup.models.records.fields import ABSENT, Absent, Part, or_absent
from caughtup.models.records.lag_lines import CopyLine, GroupType, PartitionLine
from caughtup.models.state.cluster import ClusterState


class MemberLine(Part, kw_only=True, omit_defaults=True, tag_field="kind", tag="member"):
    """A member of a group. ``process``: the id in Kafka Streams; ``assigned``: its partitions."""

    group: str
    group_type: str
    member: str
    client_id: str
    host: str
    process: str | None = None
    assigned: list[tuple[str, int]]


Line = PartitionLine | MemberLine | CopyLine


def lag_lines(state: ClusterState, group: str) -> Iterator[Line]:
    """Yield the lines of a group: its partitions, members and copies of tasks."""
    yield from partition_lines(state, group)
    yield from member_lines(state, group)
    yield from copy_lines(state, group)


def partition_lines(
    state: ClusterState, group: str, rows: Iterable[PartitionRow] | None = None
) -> Iterator[PartitionLine]:
    """Yield a line for each of ``rows``, by default for each partition of a group."""
    kind: GroupType | Absent = or_absent(state.group_type(group))  # type: ignore[arg-type]
    for row in state.partition_rows(group) if rows is None else rows:
        line = PartitionLine(group, *row.partition, row.committed is not None, kind)
        line.committed = or_absent(row.committed)
        if row.ends is not None:
            line.end_offset = row.ends.end_offset
            line.last_stable_offset = row.ends.last_stable_offset
            line.start_offset = row.ends.start_offset
            assessed = state.assessments.find(group, row.partition)
            if assessed is not None:
                line.lag_seconds = or_absent(assessed.lag_seconds)
                line.lag_seconds_method = or_absent(assessed.method)
                line.verdict, line.why = assessed.verdict, assessed.reason
        if row.lag is not None:
            line.lag = row.lag.lag
            line.lag_committed_view = row.lag.lag_committed_view
        if row.member is not None:
            line.member, line.client_id = row.member.member_id, row.member.client_id
        yield line


def member_lines(state: ClusterState, group: str) -> Iterator[MemberLine]:
    """Yield a line for each member of a group, with its assigned partitions."""
    membership = state.groups.membership(group)
    if membership is None:
        return
    owned: dict[str, list[tuple[str, int]]] = {}
    for partition, member in sorted(membership.owners.items()):
        owned.setdefault(member.member_id, []).append((*partition,))
    application = state.applications.get(group)
    processes = (
        {m.member_id: str(m.process) for m in application.newest.members()} if application else {}
    )
    for member in membership.members:
        yield MemberLine(
            group=group,
            group_type=membership.group_type,
            member=member.member_id,
            client_id=member.client_id,
            host=member.host,
            process=member.process or processes.get(member.member_id),
            assigned=owned.get(member.member_id, []),
        )


def copy_lines(state: ClusterState, group: str) -> Iterator[CopyLine]:
    """Yield a line for each copy of each task of a Streams application."""
    watch = state.watches.get(group)
    for copy in state.task_rows(group):
        yield copy_line(group, copy, watch)


def copy_line(group: str, copy: TaskCopy, watch: CopyWatch | None) -> CopyLine:
    """Return the line of a copy, with its assessment from ``watch``."""
    line = CopyLine(
        group=group,
        generation=copy.generation,
        client_id=copy.client_id,
        task=str(copy.task),
        process=copy.process,
        role=copy.role,
        provenance=copy.provenance,
        lag=or_absent(copy.lag),
        as_of_ms=or_absent(copy.as_of_ms),
        offset_sum=or_absent(copy.offset_sum),
        end_offset_sum=or_absent(copy.end_offset_sum),
        changelogs=dict(copy.changelogs) or ABSENT,
    )
    assessed = None if watch is None else watch.copies.get(CopyKey(copy.process, copy.task))
    if assessed is not None:
        line.verdict, line.why = assessed.verdict, assessed.reason
        eta, pace = assessed.figures.eta, assessed.figures.pace
        if eta and isfinite(eta.seconds):  # JSON has no infinity
            line.eta_seconds = eta.seconds
        if pace:
            line.rates = SOURCE_BY_PACE[pace]
    return line

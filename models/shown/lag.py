"""The lag table: a line for each partition, member and copy of a group.

The lines of partitions and copies are also the records of caughtup-lag, and rows of the page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields
from math import inf, isinf
from typing import Any, TypeVar

from caughtup.models.copies.watch import CopyWatch
from caughtup.models.decisions.task_table import TaskCopy
from caughtup.models.ids import CopyKey
from caughtup.models.lag.assessed import Assessed
from caughtup.models.lag.group_lag import PartitionRow
from caughtup.models.records.fields import ABSENT, Absent, Part, or_absent, or_none
from caughtup.models.records.lag_lines import CopyLine, GroupType, PartitionLine
from caughtup.models.state.cluster import ClusterState
from caughtup.models.verdicts import LAG


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

T = TypeVar("T")
#: The fields that lines have from an assessment, with their places there, and those from a copy.
_ASSESSED = tuple(
    (name, place)
    for place, name in enumerate(Assessed._fields)
    if name in PartitionLine.__struct_fields__
)
_OF_COPY = tuple(
    field.name for field in fields(TaskCopy) if field.name not in ("task", "changelogs")
)


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
    share = state.groups.share.get(group)
    for row in state.partition_rows(group) if rows is None else rows:
        line = PartitionLine(group, *row.partition, row.committed is not None, kind)
        line.committed = or_absent(row.committed)
        if row.ends is not None:
            line.end_offset = row.ends.end_offset
            line.last_stable_offset = row.ends.last_stable_offset
            line.start_offset = row.ends.start_offset
            assessed = state.assessments.find(group, row.partition)
            if assessed is not None:
                for name, place in _ASSESSED:  # of a million partitions: no call for each figure
                    figure = assessed[place]
                    if figure is not None and figure != inf:
                        setattr(line, name, figure)
        if row.lag is not None:
            line.lag = row.lag.lag
            line.lag_committed_view = row.lag.lag_committed_view
        if share is not None:
            line.share_start_offset = or_absent(share.starts.get(row.partition))
        if row.member is not None:
            line.member, line.client_id = row.member.member_id, row.member.client_id
        yield line


def member_lines(state: ClusterState, group: str) -> Iterator[MemberLine]:
    """Yield a line for each member of a group, with its assigned partitions."""
    membership = state.groups.membership(group)
    if membership is None:
        return
    owned = state.groups.assigned(group)
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
            assigned=[(*partition,) for partition in owned.get(member.member_id, ())],
        )


def partition_rank(line: PartitionLine) -> tuple[int, int, str, int]:
    """Return a sort key by which the worst partitions come first, those with more lag before others."""
    severity = LAG.severity(or_none(line.verdict))
    return -severity, -(or_none(line.lag) or 0), line.topic, line.partition


def copy_lines(state: ClusterState, group: str) -> Iterator[CopyLine]:
    """Yield a line for each copy of each task of a Streams application."""
    watch = state.watches.get(group)
    for copy in state.task_rows(group):
        yield copy_line(group, copy, watch)


def copy_line(group: str, copy: TaskCopy, watch: CopyWatch | None) -> CopyLine:
    """Return the line of a copy, with its assessment from ``watch``."""
    figures: dict[str, Any] = {name: or_absent(getattr(copy, name)) for name in _OF_COPY}
    line = CopyLine(
        group, task=str(copy.task), changelogs=dict(copy.changelogs) or ABSENT, **figures
    )
    assessed = None if watch is None else watch.copies.get(CopyKey(copy.process, copy.task))
    if assessed is not None:
        line.verdict, line.why = assessed.verdict, assessed.reason
        for name, value in assessed.figures.shown.items():
            setattr(line, name, _known(value))
    return line


def _known(figure: T | None) -> T | Absent:
    """Return a figure for JSON, which has no infinity: ABSENT if it is unknown or infinite."""
    return ABSENT if isinstance(figure, float) and isinf(figure) else or_absent(figure)

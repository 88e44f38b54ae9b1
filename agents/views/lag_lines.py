"""The lag table as JSON objects, a line each: for ``caughtup lag`` and caughtup-lag."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from caughtup.agents.views.copies import copy_fields, present
from caughtup.models.lag.partition_rows import PartitionRow
from caughtup.models.records.lag_lines import CopyLine, PartitionLine
from caughtup.models.state.cluster import ClusterState


def lag_lines(state: ClusterState, group: str) -> Iterator[dict[str, Any]]:
    """Yield the lines of one group: its partitions, its members, its tasks' copies."""
    yield from map(msgspec.to_builtins, partition_lines(state, group))
    yield from _member_lines(state, group)
    yield from map(msgspec.to_builtins, task_lines(state, group))


def partition_lines(
    state: ClusterState, group: str, rows: Iterable[PartitionRow] | None = None
) -> Iterator[PartitionLine]:
    """Yield a line for each of these rows; else for each partition that a group has."""
    kind = state.group_type(group)
    for row in state.partition_rows(group) if rows is None else rows:
        assessed = state.assessments.find(group, row.partition)
        known = present(
            group_type=kind,
            committed=row.committed,
            end_offset=row.ends.end_offset if row.ends else None,
            last_stable_offset=row.ends.last_stable_offset if row.ends else None,
            start_offset=row.ends.start_offset if row.ends else None,
            lag=row.lag.lag if row.lag else None,
            lag_committed_view=row.lag.lag_committed_view if row.lag else None,
            lag_seconds=assessed.lag_seconds if assessed and row.ends else None,
            lag_seconds_method=assessed.method if assessed and row.ends else None,
            verdict=assessed.verdict if assessed and row.ends else None,
            why=assessed.reason if assessed and row.ends else None,
            member=row.member.member_id if row.member else None,
            client_id=row.member.client_id if row.member else None,
        )
        yield PartitionLine(group, *row.partition, row.committed is not None, **known)


def task_lines(state: ClusterState, group: str) -> Iterator[CopyLine]:
    """Yield a line for each copy of each task of a Streams application."""
    watch = state.watches.get(group)
    for copy in state.task_rows(group):
        known = present(
            offset_sum=copy.offset_sum,
            end_offset_sum=copy.end_offset_sum,
            changelogs=copy.changelogs or None,
        )
        yield CopyLine(
            group=group,
            generation=copy.generation,
            client_id=copy.client_id,
            task=str(copy.task),
            **copy_fields(copy, watch),
            **known,
        )


def _member_lines(state: ClusterState, group: str) -> Iterator[dict[str, Any]]:
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
        yield present(
            kind="member",
            group=group,
            group_type=membership.group_type,
            member=member.member_id,
            client_id=member.client_id,
            host=member.host,
            process=member.process or processes.get(member.member_id),
            assigned=owned.get(member.member_id, []),
        )

"""One group on the page: its figures, its partitions, its tasks or connectors, what happened to it."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from itertools import islice
from typing import Any

import msgspec

from caughtup.agents.process.health import Health
from caughtup.agents.views.applications import application_view
from caughtup.agents.views.connect_lines import connect_view
from caughtup.agents.views.groups import group_summary
from caughtup.agents.views.lag_lines import partition_lines
from caughtup.agents.views.page.head import encoded, head_fields
from caughtup.agents.views.page.recent import happening_fields, since_fields
from caughtup.models.commits.group_commits import LastCommits
from caughtup.models.ids import TopicPartition
from caughtup.models.lag.partition_rows import PartitionRow, partition_rows
from caughtup.models.state.cluster import ClusterState
from caughtup.models.verdicts import LAG

#: Partitions of a group in one answer, the worst; the others are at their end, or are counted.
PARTITIONS_SHOWN = 500


def group_steps(
    state: ClusterState, health: Health, now_ms: int, group: str
) -> Generator[None, None, dict[str, Any]]:
    """Describe one group, in steps between which others may have their turn.

    Without ``group`` where nobody knows such a group. What fails is left out.
    """
    view = {**head_fields(state, health, now_ms), "name": group, "partitions_more": 0}
    names = state.commits.groups() | state.groups.names()
    if group in names:
        with state.faults.isolated("page", group, now_ms):
            view["group"] = encoded(group_summary(state, group) | since_fields(state, group))
        yield
        with state.faults.isolated("page", group, now_ms):
            rows, view["partitions_more"] = yield from _partitions(state, group)
            view["partitions"] = rows
        yield
    if (application := state.applications.get(group)) is not None:
        with state.faults.isolated("page", group, now_ms):
            described = yield from application_view(state, group, application, now_ms)
            view["application"] = encoded(described)
        yield
    if group in state.connect.groups:
        with state.faults.isolated("page", group, now_ms):
            connect = yield from connect_view(state, group, now_ms)
            if connect is not None:
                view["connect"] = encoded(connect)
    view["feed"] = [happening_fields(one) for one in state.recent.happenings.of(group)]
    return view


def _partitions(
    state: ClusterState, group: str
) -> Generator[None, None, tuple[list[dict[str, Any]], int]]:
    """Describe the worst partitions, and count the others."""
    membership = state.groups.membership(group)
    hosts = {} if membership is None else {one.member_id: one.host for one in membership.members}
    chosen, more = _worst(state, group)
    rows: list[dict[str, Any]] = []
    lines = partition_lines(state, group, chosen)
    while batch := list(islice(lines, 50)):
        for line in batch:
            row = msgspec.to_builtins(line)
            row.pop("group")
            latest = state.ends.latest(TopicPartition(row["topic"], row["partition"]))
            if latest is not None:
                row["as_of_ms"] = latest.as_of_ms
            if host := hosts.get(row.get("member", "")):
                row["host"] = host
            rows.append(row)
        yield
    rows.sort(
        key=lambda row: (
            -LAG.severity(row.get("verdict")),
            -row.get("lag", 0),
            row["topic"],
            row["partition"],
        )
    )
    return rows, more


def _worst(state: ClusterState, group: str) -> tuple[Iterator[PartitionRow], int]:
    """Return the rows of a group, or of those partitions that fare worst where it has too many."""
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

"""Where answers come from: a running service, or looks at the cluster. Both block."""

from __future__ import annotations

import heapq
from typing import Protocol

from caughtup.agents.cli.mcp.answers import (
    GroupsAnswer,
    LagAnswer,
    ReassignmentsAnswer,
    RebalancesAnswer,
)
from caughtup.agents.cli.service_answers import PartitionAnswer
from caughtup.agents.cli.service_client import ServiceClient
from caughtup.agents.clock import now_ms
from caughtup.agents.errors import NotThereError
from caughtup.agents.looks.cluster import ClusterLooks
from caughtup.agents.progress import NoProgress
from caughtup.agents.settings import Settings
from caughtup.models.records.fields import or_none
from caughtup.models.records.lag_lines import PartitionLine
from caughtup.models.shown.groups import group_line, group_rank
from caughtup.models.shown.lag import partition_lines, partition_rank
from caughtup.models.state.cluster import ClusterState
from caughtup.models.why.explain import why
from caughtup.models.why.links import Why

#: The most groups and partitions of one answer: no more fit into 4 kB.
MOST = 50
_NO_GROUP = "there is no group of this name"


class AnswerSource(Protocol):
    """Answers about a cluster. Every call raises UserError when there is no answer."""

    def groups(self, limit: int) -> GroupsAnswer:
        """Return the groups, the worst first."""

    def why(self, group: str) -> Why:
        """Return why a group is as it is."""

    def lag(self, group: str) -> LagAnswer:
        """Return a group's lag, by partition."""

    def rebalances(self, group: str) -> RebalancesAnswer:
        """Return a group's last rebalances."""

    def reassignments(self) -> ReassignmentsAnswer:
        """Return the partitions in movement."""

    def close(self) -> None:
        """Close connections that are kept."""


class AnswersOfService:
    """Asks a running service, which has observed the past."""

    def __init__(self, service: ServiceClient) -> None:
        self._service = service

    def groups(self, limit: int) -> GroupsAnswer:
        """Return the groups, the worst first."""
        found = self._service.overview()
        kept = list(found.groups[:limit])
        return GroupsAnswer(groups=kept, left_out=found.groups_more + len(found.groups) - len(kept))

    def why(self, group: str) -> Why:
        """Return why a group is as it is."""
        return self._service.why(group)

    def lag(self, group: str) -> LagAnswer:
        """Return a group's lag, by partition."""
        found = self._service.group(group)
        line = or_none(found.group)
        if line is None:
            raise NotThereError(_NO_GROUP)
        kept = found.partitions[:MOST]
        more = found.partitions_more + len(found.partitions) - len(kept)
        return LagAnswer(group=line, partitions=kept, left_out=more)

    def rebalances(self, group: str) -> RebalancesAnswer:
        """Return a group's last rebalances."""
        found = self._service.group(group)
        if or_none(found.group) is None:
            raise NotThereError(_NO_GROUP)
        return RebalancesAnswer(group=group, rebalances=found.rebalances)

    def reassignments(self) -> ReassignmentsAnswer:
        """Return the partitions in movement."""
        return ReassignmentsAnswer(reassignments=self._service.reassignments())

    def close(self) -> None:
        """Close nothing: each request has a connection of its own."""


class AnswersOfLooks:
    """Looks at the cluster for each answer; a look reads what is new since the one before.

    Of the groups that were asked about by name, the last one's looks are kept.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._looks: dict[str | None, ClusterLooks] = {}

    def groups(self, limit: int) -> GroupsAnswer:
        """Return the groups, the worst first."""
        state = self._look(None)
        lines = sorted((group_line(state, group) for group in state.group_names()), key=group_rank)
        return GroupsAnswer(groups=lines[:limit], left_out=len(lines[limit:]))

    def why(self, group: str) -> Why:
        """Return why a group is as it is."""
        found = why(self._look(group), group, now_ms())
        if found is None:
            raise NotThereError(_NO_GROUP)
        return found

    def lag(self, group: str) -> LagAnswer:
        """Return a group's lag, by partition."""
        state = self._look_at(group)
        line = group_line(state, group)
        worst = heapq.nsmallest(MOST, partition_lines(state, group), key=partition_rank)
        return LagAnswer(
            group=line,
            partitions=[_answer(line) for line in worst],
            left_out=line.partitions - len(worst),
        )

    def rebalances(self, group: str) -> RebalancesAnswer:
        """Return a group's last rebalances."""
        return RebalancesAnswer(group=group, rebalances=self._look_at(group).rebalances.of(group))

    def reassignments(self) -> ReassignmentsAnswer:
        """Return the partitions in movement."""
        state = self._look(None)
        lines = list(state.reassignment_watch.lines(state.reassignments, now_ms()))
        return ReassignmentsAnswer(reassignments=lines)

    def close(self) -> None:
        """Close the connections."""
        for looks in self._looks.values():
            looks.close()
        self._looks.clear()

    def _look_at(self, group: str) -> ClusterState:
        """Return the cluster as it is now. Raises NotThereError if it has no such group."""
        state = self._look(group)
        if not state.commits.changed(group) and state.groups.membership(group) is None:
            raise NotThereError(_NO_GROUP)
        return state

    def _look(self, group: str | None) -> ClusterState:
        looks = self._looks.get(group)
        if looks is None:
            for other in [one for one in self._looks if one is not None and group is not None]:
                self._looks.pop(other).close()
            named = [] if group is None else [group]
            looks = ClusterLooks(self._settings, named, connect=True, reassignments=True)
            self._looks[group] = looks
        return looks.look(NoProgress())


def _answer(line: PartitionLine) -> PartitionAnswer:
    return PartitionAnswer(
        topic=line.topic,
        partition=line.partition,
        lag=or_none(line.lag),
        lag_seconds=or_none(line.lag_seconds),
        verdict=or_none(line.verdict),
        why=or_none(line.why),
        committed=or_none(line.committed),
        end_offset=or_none(line.end_offset),
        client_id=or_none(line.client_id),
    )

"""Which standby assignor a group gets, and what it has to offer to the task assignors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from caughtup.models.assignment.client_state import ClientState
from caughtup.models.assignment.releases import Release
from caughtup.models.assignment.scenario import Scenario
from caughtup.models.assignors.kafka.standbys.default import assign_default_standbys
from caughtup.models.assignors.kafka.standbys.tag_aware import TagAwareStandbyAssignor
from caughtup.models.ids import TaskId


class StandbyAssignor(Protocol):
    """Places standbys beside the actives. Source: Kafka's internal StandbyTaskAssignor."""

    def assign(
        self, clients: Sequence[ClientState], tasks: Sequence[TaskId], replicas: int
    ) -> None:
        """Assign each task, in order, up to ``replicas`` standbys on clients without a copy."""

    def may_move(self, source: int, destination: int) -> bool:
        """Return whether standbys may move between two clients, by places, for balance."""

    def may_exchange(
        self, clients: Sequence[ClientState], source: int, destination: int, task: TaskId
    ) -> bool:
        """Return whether a standby may move between two clients for the sake of their racks."""


def choose_standby_assignor(scenario: Scenario) -> StandbyAssignor:
    """Choose as HighAvailabilityTaskAssignor does, which knows of tags since 3.2.

    Source: StandbyTaskAssignorFactory.create.
    """
    keys = scenario.configs.rack_aware_assignment_tags
    if keys and scenario.release >= Release.V3_2:
        return TagAwareStandbyAssignor([client.tags for client in scenario.clients], keys)
    return _LoadAware()


class _LoadAware:
    """Goes by the load only."""

    def assign(
        self, clients: Sequence[ClientState], tasks: Sequence[TaskId], replicas: int
    ) -> None:
        assign_default_standbys(clients, tasks, replicas)

    def may_move(self, source: int, destination: int) -> bool:
        return True

    def may_exchange(
        self, clients: Sequence[ClientState], source: int, destination: int, task: TaskId
    ) -> bool:
        return True

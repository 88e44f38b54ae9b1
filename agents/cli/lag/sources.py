"""The sources of ``caughtup lag``'s figures: snapshots of a cluster, or a running service."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Protocol

from caughtup.agents.cli.service_client import ServiceClient
from caughtup.agents.looks.cluster import ClusterLooks
from caughtup.agents.progress import Progress
from caughtup.models.records.config_lines import ConfigLine
from caughtup.models.records.fields import changed
from caughtup.models.shown.applications import config_lines
from caughtup.models.shown.groups import (
    CheckpointProblem,
    GroupLine,
    checkpoint_problems,
    group_line,
)
from caughtup.models.shown.lag import Line, lag_lines
from caughtup.models.state.cluster import ClusterState


class Lag(Protocol):
    """The lag of all groups as it was at one moment."""

    @property
    def where(self) -> str:
        """The cluster or the service that the figures are from."""
        ...

    @property
    def unready(self) -> Sequence[str]:
        """The reasons why some figures are missing."""
        ...

    def groups(self) -> list[str]:
        """Return the groups' names."""
        ...

    def group_lines(self, groups: Iterable[str]) -> Iterator[GroupLine]:
        """Yield the line of each group."""
        ...

    def lines(self, groups: Sequence[str]) -> Iterator[Line]:
        """Yield the lines of groups: their partitions, members and copies of tasks."""
        ...

    def configs(self, groups: Sequence[str]) -> Iterator[ConfigLine]:
        """Yield what is known of the configs of Streams applications."""
        ...


#: Reads the lag again at each call; raises UserError if that fails.
Look = Callable[[], Lag]


class LookedAt:
    """The lag in a snapshot that the command took itself."""

    where = "on this cluster"

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self.unready = unread_checkpoints(checkpoint_problems(state))

    def groups(self) -> list[str]:
        """Return the groups' names."""
        return self._state.group_names()

    def group_lines(self, groups: Iterable[str]) -> Iterator[GroupLine]:
        """Yield the line of each group."""
        return (group_line(self._state, group) for group in groups)

    def lines(self, groups: Sequence[str]) -> Iterator[Line]:
        """Yield the lines of groups."""
        return chain.from_iterable(lag_lines(self._state, group) for group in groups)

    def configs(self, groups: Sequence[str]) -> Iterator[ConfigLine]:
        """Yield what is known of the configs of Streams applications."""
        known = (group for group in groups if group in self._state.applications)
        return chain.from_iterable(config_lines(self._state, group) for group in known)


class Asked:
    """The lag as a service knows it."""

    def __init__(self, service: ServiceClient) -> None:
        self._service = service
        state = service.state()
        self._groups = {found.group: found for found in state.groups}
        self._applications = state.applications
        self.where = f"at {service.url}"
        self.unready = [*state.unready, *unread_checkpoints(state.checkpoint_problems)]

    def groups(self) -> list[str]:
        """Return the groups' names."""
        return list(self._groups)

    def group_lines(self, groups: Iterable[str]) -> Iterator[GroupLine]:
        """Yield the line of each group."""
        return (self._groups[group] for group in groups)

    def lines(self, groups: Sequence[str]) -> Iterator[Line]:
        """Yield the lines of groups, as the service computes them now."""
        every = list(groups) == list(self._groups)
        return self._service.lag(None if every else groups)

    def configs(self, groups: Sequence[str]) -> Iterator[ConfigLine]:
        """Yield what is known of the configs of Streams applications."""
        return (
            changed(line, group=application.group)
            for application in self._applications
            if application.group in groups
            for line in application.configs
        )


def unread_checkpoints(problems: Iterable[CheckpointProblem]) -> list[str]:
    """Return which of Spark's checkpoints can't be read."""
    return [f"{one.checkpoint} of Spark: {one.why}" for one in problems]


def looking(looks: ClusterLooks) -> Look:
    """Return a function that reads the lag from a cluster."""
    return lambda: LookedAt(looks.look(Progress()))


def asking(service: ServiceClient) -> Look:
    """Return a function that requests the lag from a service."""
    return lambda: Asked(service)

"""The sources of ``caughtup top``: a service, or its own snapshots of the cluster.

Both give the page's state, and the lines of a group that is opened. Called by one thread only.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from caughtup.agents.cli.service_client import ServiceClient
from caughtup.agents.clock import now_ms
from caughtup.agents.looks.cluster import ClusterLooks
from caughtup.agents.process.health import Health
from caughtup.agents.process.turns import done_at_once
from caughtup.agents.progress import NoProgress
from caughtup.agents.settings import Settings
from caughtup.agents.web.page.parts import WholeView, whole_steps
from caughtup.models.shown.lag import Line, lag_lines
from caughtup.models.state.cluster import ClusterState


class Source(Protocol):
    """A service or a cluster. Every call raises UserError if there is no answer.

    ``where`` names it for people.
    """

    where: str

    def state(self) -> WholeView:
        """Return what the page shows, as it is now."""
        ...

    def lines(self, group: str) -> list[Line]:
        """Return the lines of a group, as of the last call of ``state`` or later."""
        ...

    def close(self) -> None:
        """Close the connections."""
        ...


class FromService:
    """The state that a service shows on its page."""

    def __init__(self, service: ServiceClient) -> None:
        self._service = service
        self.where = service.url

    def state(self) -> WholeView:
        """Return what the page shows."""
        return self._service.state()

    def lines(self, group: str) -> list[Line]:
        """Return the lines of a group."""
        return list(self._service.lag([group]))

    def close(self) -> None:
        """Do nothing: each request has a connection of its own."""


class FromLooks:
    """The state that the page would show, computed from repeated snapshots of a cluster."""

    def __init__(self, settings: Settings) -> None:
        """Raises UserError if the cluster cannot be reached."""
        self._settings = settings
        self._looks = ClusterLooks(settings, reassignments=True)
        self._state: ClusterState | None = None
        self.where = settings.bootstrap_servers

    def state(self) -> WholeView:
        """Take a snapshot of the cluster, and return what the page would show of it."""
        self._state = self._looks.look(NoProgress())
        health = Health(cluster_name=self._settings.cluster_name, ready=True, reader_lag=0)
        page = done_at_once(whole_steps(self._state, health, now_ms()))
        return msgspec.json.decode(msgspec.json.encode(page), type=WholeView)

    def lines(self, group: str) -> list[Line]:
        """Return the lines of a group, from the last snapshot."""
        return [] if self._state is None else list(lag_lines(self._state, group))

    def close(self) -> None:
        """Close the connections to the cluster."""
        self._looks.close()

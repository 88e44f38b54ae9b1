"""The processes of the Connect story, and what the service shows of the group."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from caughtup.demo.apps.streams import StreamsApplication
from caughtup.demo.connect.group_log import GroupLog, LoggedGeneration
from caughtup.demo.connect.workers import ConnectWorkers
from caughtup.demo.story.stage import DemoStage, View
from caughtup.models.connect.work import written
from caughtup.models.errors import CaughtupError

GROUP = "connect-demo"


class ConnectStage(DemoStage):
    """One broker, workers of one Connect cluster, and the service, which end with the context.

    ``max_delay_ms`` is the workers' ``scheduled.rebalance.max.delay.ms``.
    """

    def __init__(self, *, max_delay_ms: int, web_port: int = 0) -> None:
        super().__init__(nodes=1, web_port=web_port)
        self.workers = ConnectWorkers(self.cluster, GROUP, max_delay_ms=max_delay_ms)

    def start_cluster(self) -> None:
        """Start the broker."""
        self.cluster.start()

    def log(self) -> GroupLog:
        """Return a reader of the group's generations."""
        return GroupLog(self.cluster, GROUP)

    @property
    def applications(self) -> tuple[StreamsApplication, ...]:
        """No applications: the workers are no Kafka Streams application."""
        return ()


#: The allowed distance (ms) of a round from its forecast time.
NEAR_MS = 1_000
_SECONDS = 20.0
_POLL_SECONDS = 0.05


@dataclass(frozen=True)
class Foretold:
    """The service's forecast: which worker gets the unassigned work, and when (ms)."""

    generation: int
    goes_to: Mapping[str, str]
    at_ms: int | None

    def came(self, logged: LoggedGeneration) -> bool:
        """Return whether a round assigned the work so, within a second of the time."""
        workers = logged.generation.workers.values()
        owners = {item: one.client_id for one in workers for item in written(one.owns)}
        late_ms = self.late_ms(logged)
        return (
            bool(self.goes_to)
            and all(owners.get(item) == worker for item, worker in self.goes_to.items())
            and late_ms is not None
            and abs(late_ms) <= NEAR_MS
        )

    def late_ms(self, logged: LoggedGeneration) -> int | None:
        """Return by how much (ms) a round was later than forecast; None without a forecast."""
        return None if self.at_ms is None else logged.generation.as_of_ms - self.at_ms


@dataclass
class WatchedGroup:
    """A group on the service's page, which ``page`` returns.

    By generation: ``results``, the results of deciding it again; ``whys``, the reasons of those that
    are not matches; ``after_ms``, the time from its record to the service's decision, if awaited.
    """

    page: Callable[[], View]
    group: str
    results: dict[int, str] = field(default_factory=dict)
    whys: dict[int, str] = field(default_factory=dict)
    after_ms: dict[int, int] = field(default_factory=dict)

    def view(self) -> View | None:
        """Return the group's view on the page; None before there is one."""
        views: list[View] = self.page()["connect"]
        view = next((one for one in views if one["group"] == self.group), None)
        for past in view["history"] if view is not None else ():
            self.results[past["generation"]] = past["result"]
            if past["why"]:
                self.whys[past["generation"]] = past["why"]
        return view

    def heard(self, logged: LoggedGeneration) -> View:
        """Wait until the service has decided a generation, and return the group's view.

        Raises CaughtupError ``demo_failed`` after 20 s.
        """
        deadline = time.monotonic() + _SECONDS
        while time.monotonic() < deadline:
            view = self.view()
            if view is not None and logged.number in self.results:
                self.after_ms[logged.number] = int(time.time() * 1000) - logged.written_ms
                return view
            time.sleep(_POLL_SECONDS)
        raise CaughtupError("demo_failed", f"caughtup did not decide generation {logged.number}")

    def foretold(self, logged: LoggedGeneration) -> Foretold:
        """Wait until a generation is decided, and return the service's forecast."""
        view = self.heard(logged)
        names = {worker["worker"]: worker["client_id"] for worker in view["workers"]}
        waiting = [row for row in view["unassigned"] if "goes_to" in row and "at_ms" in row]
        return Foretold(
            view["generation"],
            {row["name"]: names[row["goes_to"]] for row in waiting},
            max((row["at_ms"] for row in waiting), default=None),
        )

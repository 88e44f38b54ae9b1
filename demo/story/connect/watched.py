"""What the service says of a Connect group, round by round, and whether it came as it said."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from caughtup.demo.connect.group_log import LoggedGeneration
from caughtup.models.connect.names import written
from caughtup.models.errors import CaughtupError

View = Mapping[str, Any]

#: How far (ms) a round may be from when the service said that it would be.
NEAR_MS = 1_000
_SECONDS = 20.0
_POLL_SECONDS = 0.05


@dataclass(frozen=True)
class Foretold:
    """What the service said while a delay ran: which worker gets what nobody has, and when (ms)."""

    generation: int
    goes_to: Mapping[str, str]
    at_ms: int | None

    def came(self, logged: LoggedGeneration) -> bool:
        """Return whether a round gave it all to these workers, within a second of then."""
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
        """Return how much later (ms) than said a round came, None if nothing was said."""
        return None if self.at_ms is None else logged.generation.as_of_ms - self.at_ms


@dataclass
class Watched:
    """A group as the service's page has it, asked with ``page``.

    ``results`` has what deciding each generation again came to, ``whys`` the reasons of those that
    aren't matches, and ``after_ms`` how long after a generation was in the log the service had
    decided it, where that was waited for.
    """

    page: Callable[[], View]
    group: str
    results: dict[int, str] = field(default_factory=dict)
    whys: dict[int, str] = field(default_factory=dict)
    after_ms: dict[int, int] = field(default_factory=dict)

    def view(self) -> View | None:
        """Return what the page has of the group, None before it has anything."""
        views: list[View] = self.page()["connect"]
        view = next((one for one in views if one["group"] == self.group), None)
        for past in view["history"] if view is not None else ():
            self.results[past["generation"]] = past["result"]
            if past["why"]:
                self.whys[past["generation"]] = past["why"]
        return view

    def heard(self, logged: LoggedGeneration) -> View:
        """Wait until the service has decided a generation, and return the group then.

        Raises CaughtupError ``demo_failed`` after 20 s.
        """
        deadline = time.monotonic() + _SECONDS
        while time.monotonic() < deadline:
            view = self.view()
            if view is not None and logged.number in self.results:
                self.after_ms[logged.number] = int(time.time() * 1000) - logged.written_ms
                return view
            time.sleep(_POLL_SECONDS)
        raise CaughtupError("demo_failed", f"caughtup never decided generation {logged.number}")

    def foretold(self, logged: LoggedGeneration) -> Foretold:
        """Wait until a generation is decided, and return what the service says will come of it."""
        view = self.heard(logged)
        names = {worker["worker"]: worker["client_id"] for worker in view["workers"]}
        waiting = [row for row in view["unassigned"] if "goes_to" in row and "at_ms" in row]
        return Foretold(
            view["generation"],
            {row["name"]: names[row["goes_to"]] for row in waiting},
            max((row["at_ms"] for row in waiting), default=None),
        )

"""An application's assignor parameters, under Kafka's own config names and defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

#: Kafka 4.3's defaults of the configs that decide an assignment (``StreamsConfig``).
DEFAULTS: Mapping[str, int] = {
    "acceptable.recovery.lag": 10_000,
    "max.warmup.replicas": 2,
    "num.standby.replicas": 0,
    "probing.rebalance.interval.ms": 600_000,
}
#: The least value that Kafka accepts for each.
MINIMUMS: Mapping[str, int] = {
    "acceptable.recovery.lag": 0,
    "max.warmup.replicas": 1,
    "num.standby.replicas": 0,
    "probing.rebalance.interval.ms": 60_000,
}
#: The config that names the client tags over which standbys are spread; empty unless given.
TAGS = "rack.aware.assignment.tags"
MOST_TAGS = 5
#: The config by which tasks are assigned by rack, and what that goes by.
STRATEGY = "rack.aware.assignment.strategy"
TRAFFIC_COST = "rack.aware.assignment.traffic_cost"
NON_OVERLAP_COST = "rack.aware.assignment.non_overlap_cost"
#: These two, of which each may be left to the assignor.
RackCosts = tuple[int | None, int | None]


@dataclass(frozen=True, slots=True)
class ApplicationParameters:
    """What the wire doesn't show of an application.

    ``config``: assignor configs by Kafka's names, those given only. ``changelogs``: subtopology →
    changelog topics; None where the operator didn't say, so that it is to be inferred. ``tags``
    are the ``rack.aware.assignment.tags``, ``assignor`` is what decides, as scenarios call it, and
    ``strategy`` the ``rack.aware.assignment.strategy``, None where the operator didn't say.
    ``costs`` are those of traffic and of what isn't where it was.
    """

    config: Mapping[str, int] = field(default_factory=dict)
    changelogs: Mapping[int, tuple[str, ...]] | None = None
    tags: tuple[str, ...] | None = None
    assignor: str | None = None
    strategy: str | None = None
    costs: RackCosts = (None, None)

    def value(self, name: str) -> int:
        """Return a config's value, or Kafka's default."""
        return self.config.get(name, DEFAULTS[name])

    def assumed(self, *, tagged: bool = False, racked: bool = False) -> tuple[str, ...]:
        """Name the configs that nobody gave, so that Kafka's defaults are assumed.

        Those of tags and racks are among them only where they could matter: where clients are
        ``tagged``, or all of them ``racked``.
        """
        assumed = [name for name in DEFAULTS if name not in self.config]
        if tagged and self.tags is None:
            assumed.append(TAGS)
        if racked and self.strategy is None:
            assumed.append(STRATEGY)
        return tuple(sorted(assumed))

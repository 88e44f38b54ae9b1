"""The configs of an application's assignor, by Kafka's names and with Kafka's defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

#: Kafka 4.3's defaults of the configs that affect an assignment (``StreamsConfig``).
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
#: The config with the client tags over which standbys are spread; empty by default.
TAGS = "rack.aware.assignment.tags"
MOST_TAGS = 5
#: The configs of rack-aware assignment.
STRATEGY = "rack.aware.assignment.strategy"
TRAFFIC_COST = "rack.aware.assignment.traffic_cost"
NON_OVERLAP_COST = "rack.aware.assignment.non_overlap_cost"
#: The traffic and the non-overlap cost; None for the assignor's default.
RackCosts = tuple[int | None, int | None]


@dataclass(frozen=True, slots=True)
class ApplicationParameters:
    """The configs of an application in the settings.

    ``config``: assignor configs by Kafka's names, only those that are set. ``changelogs``:
    subtopology → changelog topics; None if they have to be inferred. ``tags`` are the
    ``rack.aware.assignment.tags``, ``assignor`` is the assignor by its name in scenarios, and
    ``strategy`` the ``rack.aware.assignment.strategy``; None if not set. ``costs`` are the traffic
    and the non-overlap cost.
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
        """Return the configs that are not set, so that Kafka's defaults are assumed.

        Those of tags and racks are included only if they could matter: if clients are ``tagged``,
        or all of them ``racked``.
        """
        assumed = [name for name in DEFAULTS if name not in self.config]
        if tagged and self.tags is None:
            assumed.append(TAGS)
        if racked and self.strategy is None:
            assumed.append(STRATEGY)
        return tuple(sorted(assumed))

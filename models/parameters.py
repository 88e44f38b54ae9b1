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


@dataclass(frozen=True, slots=True)
class ApplicationParameters:
    """What the wire doesn't show of an application.

    ``config``: assignor configs by Kafka's names, those given only. ``changelogs``: subtopology →
    changelog topics; None where the operator didn't say, so that it is to be inferred.
    """

    config: Mapping[str, int] = field(default_factory=dict)
    changelogs: Mapping[int, tuple[str, ...]] | None = None

    def value(self, name: str) -> int:
        """Give a config's value, or Kafka's default."""
        return self.config.get(name, DEFAULTS[name])

    def assumed(self) -> tuple[str, ...]:
        """Name the configs that nobody gave, so that Kafka's defaults are assumed."""
        return tuple(name for name in sorted(DEFAULTS) if name not in self.config)

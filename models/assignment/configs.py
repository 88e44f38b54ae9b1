"""The configs and the release that an assignor decides by.

Releases of Kafka Streams are in families whose assignors decide alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import IntEnum

from caughtup.models.assignment import fields
from caughtup.models.errors import ScenarioError


class Release(IntEnum):
    """A family of releases whose assignors decide alike, in the order of their first releases.

    Later ones are greater. ``V3_5_2`` includes 3.6, whose rack-aware assignment 3.5.2 lacks.
    docs/design.md has a table of the differences.
    """

    V2_8 = 0
    V3_0 = 1
    V3_2 = 2
    V3_3 = 3
    V3_5_2 = 4
    V3_7 = 5

    @property
    def text(self) -> str:
        """The releases in words."""
        return _TEXTS[self]


_TEXTS: Mapping[Release, str] = {
    Release.V2_8: "2.8",
    Release.V3_0: "3.0 or 3.1",
    Release.V3_2: "3.2",
    Release.V3_3: "3.3 to 3.5.1",
    Release.V3_5_2: "3.5.2 or 3.6",
    Release.V3_7: "3.7 or later",
}
#: The newest one, up to Kafka 4.3.1.
NEWEST = Release.V3_7
#: The newest subscriptions that a release writes (``LATEST_SUPPORTED_VERSION``), by its family.
_VERSIONS: Mapping[Release, int] = {
    Release.V2_8: 9,
    Release.V3_0: 10,
    Release.V3_2: 11,
    Release.V3_3: 11,
    Release.V3_5_2: 11,
    Release.V3_7: 11,
}


def releases_of(version: int) -> tuple[Release, ...]:
    """Return the families whose newest subscription version is ``version``.

    Empty if none is modelled.
    """
    return tuple(release for release, latest in _VERSIONS.items() if latest == version)


_INT_MIN, _INT_MAX = -(1 << 31), (1 << 31) - 1
_LONG_MAX = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Configs:
    """The assignor's configs, in offsets, copies and milliseconds; the defaults are Kafka's.

    A cost of None stands for the task assignor's own default.
    """

    acceptable_recovery_lag: int = 10_000
    max_warmup_replicas: int = 2
    num_standby_replicas: int = 0
    probing_rebalance_interval_ms: int = 600_000
    rack_aware_assignment_tags: tuple[str, ...] = ()
    rack_aware_assignment_strategy: str = "none"
    rack_aware_assignment_traffic_cost: int | None = None
    rack_aware_assignment_non_overlap_cost: int | None = None


#: Config → its attribute above and the bounds that StreamsConfig accepts, both included.
_LIMITS = {
    "acceptable.recovery.lag": ("acceptable_recovery_lag", 0, _LONG_MAX),
    "max.warmup.replicas": ("max_warmup_replicas", 1, _INT_MAX),
    "num.standby.replicas": ("num_standby_replicas", 0, _INT_MAX),
    "probing.rebalance.interval.ms": ("probing_rebalance_interval_ms", 60_000, _LONG_MAX),
}
_TRAFFIC_COST = "rack.aware.assignment.traffic_cost"
_NON_OVERLAP_COST = "rack.aware.assignment.non_overlap_cost"
_STRATEGY = "rack.aware.assignment.strategy"
_STRATEGIES = ("none", "min_traffic", "balance_subtopology")
_TAGS = "rack.aware.assignment.tags"
#: The most tags that StreamsConfig accepts.
_MOST_TAGS = 5
_KNOWN = frozenset({*_LIMITS, _TRAFFIC_COST, _NON_OVERLAP_COST, _STRATEGY, _TAGS})


def read_configs(config: Mapping[str, object]) -> Configs:
    """Read configs by Kafka's names, as decoded from JSON.

    Raises ScenarioError: ``unknown_config``, or ``bad_field`` for a value that Kafka refuses.
    """
    for name in config:
        if name not in _KNOWN:
            close = get_close_matches(name[:80], _KNOWN, 1)
            meant = f"; did you mean {close[0]}?" if close else ""
            raise ScenarioError("unknown_config", f"config: {name!r:.80} is not known{meant}")
    strategy = config.get(_STRATEGY, "none")
    if strategy not in _STRATEGIES:
        known = ", ".join(_STRATEGIES)
        raise ScenarioError(
            "bad_field", f"config.{_STRATEGY}: {strategy!r:.80} is not among {known}"
        )
    tags = fields.array(config.get(_TAGS, ()), f"config.{_TAGS}")
    if len(tags) > _MOST_TAGS:
        raise ScenarioError("bad_field", f"config.{_TAGS}: has more than {_MOST_TAGS} tags")
    given = {
        attribute: fields.integer(config[name], f"config.{name}", least, greatest)
        for name, (attribute, least, greatest) in _LIMITS.items()
        if name in config
    }
    return Configs(
        **given,
        rack_aware_assignment_tags=tuple(fields.string(tag, f"config.{_TAGS}") for tag in tags),
        rack_aware_assignment_strategy=strategy,
        rack_aware_assignment_traffic_cost=_cost(config, _TRAFFIC_COST),
        rack_aware_assignment_non_overlap_cost=_cost(config, _NON_OVERLAP_COST),
    )


def _cost(config: Mapping[str, object], name: str) -> int | None:
    """Return a rack-aware cost; Kafka accepts any int, and None."""
    cost = config.get(name)
    return None if cost is None else fields.integer(cost, f"config.{name}", _INT_MIN, _INT_MAX)

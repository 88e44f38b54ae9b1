"""Ranges of configs that an application may have, and sets of such ranges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from caughtup.models.assignment.configs import NEWEST, Release
from caughtup.models.assignors.kafka.racks.rack_aware import Costs
from caughtup.models.offsets import LONG_MAX
from caughtup.models.parameters import DEFAULTS
from caughtup.models.records.learned_configs import MOST_RANGES

#: Java's ``Integer.MAX_VALUE``, the most standbys and warm-ups that Kafka accepts.
INT_MAX = (1 << 31) - 1
#: The assignors of Kafka Streams that are reproduced here, by their names in scenarios.
ASSIGNORS = ("high_availability", "sticky", "public_sticky", "fallback_prior")
STANDBYS, WARM_UPS, LAG = "num.standby.replicas", "max.warmup.replicas", "acceptable.recovery.lag"
#: Not a config: the family of releases of Kafka Streams that decides.
RELEASE = "release"


class IntSpan(NamedTuple):
    """Whole numbers from ``low`` to ``high``, both included."""

    low: int
    high: int

    def meet(self, other: IntSpan) -> IntSpan | None:
        """Return the numbers that are in both spans; None if there are none."""
        low, high = max(self.low, other.low), min(self.high, other.high)
        return IntSpan(low, high) if low <= high else None

    def within(self, other: IntSpan) -> bool:
        """Return whether the whole span is in another one."""
        return other.low <= self.low and self.high <= other.high

    def nearest(self, value: int) -> int:
        """Return the number in the span that is nearest to a value."""
        return min(max(value, self.low), self.high)


#: All values that Kafka accepts.
ANY: Mapping[str, IntSpan] = {
    STANDBYS: IntSpan(0, INT_MAX),
    WARM_UPS: IntSpan(1, INT_MAX),
    LAG: IntSpan(0, LONG_MAX),
}


#: All releases that are modelled.
ANY_RELEASE = IntSpan(min(Release), NEWEST)
#: The greatest span of each number in a range.
SPANS: Mapping[str, IntSpan] = {**ANY, RELEASE: ANY_RELEASE}


class Algorithm(NamedTuple):
    """An assignor by its name in scenarios, and those of its configs that aren't numbers.

    ``tags`` are its ``rack.aware.assignment.tags``, ``strategy`` its
    ``rack.aware.assignment.strategy`` and ``costs`` the costs of that strategy, None for the
    assignor's own. ``release`` is the one that decides; a range may have several.
    """

    assignor: str
    tags: tuple[str, ...] = ()
    strategy: str = "none"
    costs: Costs | None = None
    release: Release = NEWEST

    @property
    def releases(self) -> IntSpan:
        """The releases that have it: tags are of 3.2, racks of 3.6, public assignors of 3.8."""
        first = Release.V2_8
        if self.tags:
            first = Release.V3_2
        if self.strategy != "none":
            first = Release.V3_5_2 if self.strategy == "min_traffic" else Release.V3_7
        if self.assignor == "public_sticky":
            first = Release.V3_7
        return IntSpan(first, NEWEST)


@dataclass(frozen=True, slots=True)
class ConfigRange:
    """Every combination of the values in the spans, with one algorithm.

    ``lag`` is ``acceptable.recovery.lag`` in offsets, ``releases`` are families of Kafka Streams'
    releases.
    """

    algorithm: Algorithm
    standbys: IntSpan = ANY[STANDBYS]
    warm_ups: IntSpan = ANY[WARM_UPS]
    lag: IntSpan = ANY[LAG]
    releases: IntSpan = ANY_RELEASE

    def span(self, config: str) -> IntSpan:
        """Return the span of a config by Kafka's name, or of releases."""
        own = {STANDBYS: self.standbys, WARM_UPS: self.warm_ups, LAG: self.lag}
        return {**own, RELEASE: self.releases}[config]

    def with_span(self, config: str, span: IntSpan) -> ConfigRange:
        """Return the range with another span of a config."""
        return ConfigRange(
            self.algorithm,
            span if config == STANDBYS else self.standbys,
            span if config == WARM_UPS else self.warm_ups,
            span if config == LAG else self.lag,
            span if config == RELEASE else self.releases,
        )

    def meet(self, other: ConfigRange) -> ConfigRange | None:
        """Return the combinations in both ranges; None if there are none."""
        standbys = self.standbys.meet(other.standbys)
        warm_ups = self.warm_ups.meet(other.warm_ups)
        lag, releases = self.lag.meet(other.lag), self.releases.meet(other.releases)
        if self.algorithm != other.algorithm:
            return None
        if not (standbys and warm_ups and lag and releases):
            return None
        return ConfigRange(self.algorithm, standbys, warm_ups, lag, releases)


def distance(one: ConfigRange, standbys: int = DEFAULTS[STANDBYS]) -> tuple[int, ...]:
    """Return how far a range is from Kafka's defaults, to sort by: the likelier, the less.

    ``standbys`` is the likely number of standbys, instead of the default.
    """
    algorithm, likely = one.algorithm, {**DEFAULTS, STANDBYS: standbys}
    return (
        ASSIGNORS.index(algorithm.assignor),
        len(algorithm.tags) + (algorithm.strategy != "none") + (algorithm.costs is not None),
        *(abs(one.span(name).nearest(likely[name]) - likely[name]) for name in ANY),
    )


#: Disjoint ranges: a set of hypotheses.
Hypotheses = tuple[ConfigRange, ...]


def agreeing(hypotheses: Hypotheses, others: Hypotheses) -> Hypotheses:
    """Return the combinations that are in both sets."""
    met = (one.meet(other) for one in hypotheses for other in others)
    return tuple(one for one in met if one is not None)


def spans_of(hypotheses: Hypotheses, config: str) -> tuple[IntSpan, ...]:
    """Return a config's values in any of the hypotheses, as disjoint spans, sorted."""
    return united(one.span(config) for one in hypotheses)


def joined(ranges: Iterable[ConfigRange]) -> Hypotheses:
    """Return the same hypotheses in fewer ranges, united where only one config differs."""
    left, before = list(ranges), -1
    while len(left) != before:
        before = len(left)
        for config in (RELEASE, LAG, WARM_UPS, STANDBYS):
            groups: dict[ConfigRange, list[IntSpan]] = {}
            for one in left:
                groups.setdefault(one.with_span(config, SPANS[config]), []).append(one.span(config))
            left = [
                one.with_span(config, span)
                for one, spans in groups.items()
                for span in united(spans)
            ]
    return tuple(left)


def bounded(hypotheses: Hypotheses, most: int = MOST_RANGES) -> Hypotheses:
    """Return the hypotheses, or one range for each algorithm if there are more than ``most``."""
    if len(hypotheses) <= most:
        return hypotheses
    found: dict[Algorithm, ConfigRange] = {}
    for one in hypotheses:
        other = found.get(one.algorithm, one)
        for config in SPANS:
            low, high = zip(one.span(config), other.span(config), strict=True)
            other = other.with_span(config, IntSpan(min(low), max(high)))
        found[one.algorithm] = other
    return tuple(found.values())


def united(spans: Iterable[IntSpan]) -> tuple[IntSpan, ...]:
    """Return the same numbers in disjoint spans that don't touch, sorted."""
    found: list[IntSpan] = []
    for span in sorted(spans):
        if found and span.low <= found[-1].high + 1:
            found[-1] = IntSpan(found[-1].low, max(found[-1].high, span.high))
        else:
            found.append(span)
    return tuple(found)

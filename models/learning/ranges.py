"""Configs that an application may have: ranges of them, which assignor, and sets of such ranges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from caughtup.models.assignment.releases import NEWEST, Release
from caughtup.models.assignors.kafka.racks.rack_aware import Costs
from caughtup.models.offsets import LONG_MAX
from caughtup.models.records.learned_configs import MOST_RANGES

#: Java's ``Integer.MAX_VALUE``, the most standbys and warm-ups that Kafka accepts.
INT_MAX = (1 << 31) - 1
#: The assignors that Kafka Streams can be configured with and that are decided again here, as
#: scenarios call them.
ASSIGNORS = ("high_availability", "sticky", "public_sticky", "fallback_prior")
STANDBYS, WARM_UPS, LAG = "num.standby.replicas", "max.warmup.replicas", "acceptable.recovery.lag"
#: No config: which release of Kafka Streams decides, by its family.
RELEASE = "release"


class Span(NamedTuple):
    """Whole numbers from ``low`` to ``high``, both included."""

    low: int
    high: int

    def meet(self, other: Span) -> Span | None:
        """Return what is in both; None where nothing is."""
        low, high = max(self.low, other.low), min(self.high, other.high)
        return Span(low, high) if low <= high else None

    def within(self, other: Span) -> bool:
        """Return whether all of it is in another."""
        return other.low <= self.low and self.high <= other.high


#: All that Kafka accepts.
ANY: Mapping[str, Span] = {
    STANDBYS: Span(0, INT_MAX),
    WARM_UPS: Span(1, INT_MAX),
    LAG: Span(0, LONG_MAX),
}


#: All that is modelled.
ANY_RELEASE = Span(min(Release), NEWEST)
#: Whatever ranges have spans of.
SPANS: Mapping[str, Span] = {**ANY, RELEASE: ANY_RELEASE}


class Algorithm(NamedTuple):
    """An assignor by the name that scenarios have for it, and what it reads but for numbers.

    ``tags`` are its ``rack.aware.assignment.tags``, ``strategy`` its
    ``rack.aware.assignment.strategy`` and ``costs`` what that one goes by, None for the assignor's
    own. ``release`` is the one that is asked; a range may have several.
    """

    assignor: str
    tags: tuple[str, ...] = ()
    strategy: str = "none"
    costs: Costs | None = None
    release: Release = NEWEST

    @property
    def releases(self) -> Span:
        """Which releases have it: tags are of 3.2, racks of 3.6, a public assignor of 3.8."""
        first = Release.V2_8
        if self.tags:
            first = Release.V3_2
        if self.strategy != "none":
            first = Release.V3_5_2 if self.strategy == "min_traffic" else Release.V3_7
        if self.assignor == "public_sticky":
            first = Release.V3_7
        return Span(first, NEWEST)


@dataclass(frozen=True, slots=True)
class ConfigRange:
    """Every combination of the spans with one algorithm.

    ``lag`` is ``acceptable.recovery.lag`` in offsets, ``releases`` are families of Kafka Streams'.
    """

    algorithm: Algorithm
    standbys: Span = ANY[STANDBYS]
    warm_ups: Span = ANY[WARM_UPS]
    lag: Span = ANY[LAG]
    releases: Span = ANY_RELEASE

    def span(self, config: str) -> Span:
        """Return the span of a config by Kafka's name, or of releases."""
        own = {STANDBYS: self.standbys, WARM_UPS: self.warm_ups, LAG: self.lag}
        return {**own, RELEASE: self.releases}[config]

    def with_span(self, config: str, span: Span) -> ConfigRange:
        """Return it with another span of a config."""
        return ConfigRange(
            self.algorithm,
            span if config == STANDBYS else self.standbys,
            span if config == WARM_UPS else self.warm_ups,
            span if config == LAG else self.lag,
            span if config == RELEASE else self.releases,
        )

    def meet(self, other: ConfigRange) -> ConfigRange | None:
        """Return what is in both; None where nothing is."""
        standbys = self.standbys.meet(other.standbys)
        warm_ups = self.warm_ups.meet(other.warm_ups)
        lag, releases = self.lag.meet(other.lag), self.releases.meet(other.releases)
        if self.algorithm != other.algorithm:
            return None
        if not (standbys and warm_ups and lag and releases):
            return None
        return ConfigRange(self.algorithm, standbys, warm_ups, lag, releases)


#: Disjoint ranges: a set of hypotheses.
Hypotheses = tuple[ConfigRange, ...]


def agreeing(hypotheses: Hypotheses, others: Hypotheses) -> Hypotheses:
    """Return what is in both sets."""
    met = (one.meet(other) for one in hypotheses for other in others)
    return tuple(one for one in met if one is not None)


def spans_of(hypotheses: Hypotheses, config: str) -> tuple[Span, ...]:
    """Return which values a config has in any of the hypotheses, as disjoint spans, sorted."""
    return united(one.span(config) for one in hypotheses)


def joined(ranges: Iterable[ConfigRange]) -> Hypotheses:
    """Return the same hypotheses in fewer ranges, where neighbours differ in one config only."""
    left, before = list(ranges), -1
    while len(left) != before:
        before = len(left)
        for config in (RELEASE, LAG, WARM_UPS, STANDBYS):
            groups: dict[ConfigRange, list[Span]] = {}
            for one in left:
                groups.setdefault(one.with_span(config, SPANS[config]), []).append(one.span(config))
            left = [
                one.with_span(config, span)
                for one, spans in groups.items()
                for span in united(spans)
            ]
    return tuple(left)


def bounded(hypotheses: Hypotheses, most: int = MOST_RANGES) -> Hypotheses:
    """Return the same hypotheses, or one range for each algorithm where there are too many."""
    if len(hypotheses) <= most:
        return hypotheses
    found: dict[Algorithm, ConfigRange] = {}
    for one in hypotheses:
        other = found.get(one.algorithm, one)
        for config in SPANS:
            low, high = zip(one.span(config), other.span(config), strict=True)
            other = other.with_span(config, Span(min(low), max(high)))
        found[one.algorithm] = other
    return tuple(found.values())


def united(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Return the same numbers in disjoint spans that don't touch, sorted."""
    found: list[Span] = []
    for span in sorted(spans):
        if found and span.low <= found[-1].high + 1:
            found[-1] = Span(found[-1].low, max(found[-1].high, span.high))
        else:
            found.append(span)
    return tuple(found)

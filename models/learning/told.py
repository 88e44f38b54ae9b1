"""What the settings tell of an application's configs, and the hypotheses that agree with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from caughtup.models.assignors.kafka.high_availability import assignor as high_availability
from caughtup.models.assignors.kafka.racks.rack_aware import STRATEGIES, Costs
from caughtup.models.assignors.kafka.sticky import assignor as sticky
from caughtup.models.learning.ranges import (
    ANY,
    ASSIGNORS,
    LAG,
    STANDBYS,
    WARM_UPS,
    Algorithm,
    ConfigRange,
    Hypotheses,
    Span,
)
from caughtup.models.parameters import MOST_TAGS, ApplicationParameters, RackCosts

#: Costs of rack-aware assignment that are tried where an assignor's own don't explain what is seen:
#: hardly anybody sets any, and only their ratio counts.
OTHER_COSTS = (Costs(1, 0), Costs(1, 1), Costs(1, 10), Costs(10, 1))
#: The assignors' own, of those that assign by racks without being told any.
_OWN_COSTS: Mapping[str, Costs] = {
    "high_availability": high_availability.DEFAULT_COSTS,
    "sticky": sticky.DEFAULT_COSTS,
}


@dataclass(frozen=True, slots=True)
class Told:
    """What the operator told: configs by Kafka's names, the others as ``ApplicationParameters``."""

    configs: Mapping[str, int]
    tags: tuple[str, ...] | None = None
    assignor: str | None = None
    strategy: str | None = None
    costs: RackCosts = (None, None)

    @classmethod
    def of(cls, parameters: ApplicationParameters) -> Told:
        """Return what an application's settings tell.

        Whoever tells all three numbers, two of which only the high availability assignor reads,
        tells that it decides, unless they name another.
        """
        configs = dict(parameters.config)
        tags = None if parameters.tags is None else tuple(sorted(parameters.tags))
        assignor = parameters.assignor
        if assignor is None and configs.keys() >= ANY.keys():
            assignor = ASSIGNORS[0]
        return cls(configs, tags, assignor, parameters.strategy, parameters.costs)

    @property
    def tells_racks(self) -> bool:
        """Return whether it says by what strategy or costs tasks are assigned by racks."""
        return self.strategy is not None or self.costs != (None, None)

    def costs_of(self, assignor: str) -> Costs | None:
        """Return the costs that an assignor goes by, None for its own."""
        own = _OWN_COSTS.get(assignor)
        traffic, non_overlap = self.costs
        if own is not None:
            traffic = own.traffic if traffic is None else traffic
            non_overlap = own.non_overlap if non_overlap is None else non_overlap
        if traffic is None or non_overlap is None or (traffic, non_overlap) == own:
            return None
        return Costs(traffic, non_overlap)


#: Nothing is told.
UNTOLD = Told({})


def possible(
    told: Told, keys: Iterable[str], *, racked: bool = False, costs: Sequence[Costs] = ()
) -> Hypotheses:
    """Return all hypotheses that agree with what was told.

    ``keys`` are the client tags that all members have; Kafka refuses to start with others.
    ``racked``: all members have a rack; otherwise Kafka assigns nothing by racks. ``costs`` are
    those that may have been set besides the assignors' own, where none were told.
    """
    spans = {
        name: Span(told.configs[name], told.configs[name]) if name in told.configs else span
        for name, span in ANY.items()
    }
    tags = [told.tags] if told.tags is not None else _choices(sorted(keys))
    assignors = ASSIGNORS if told.assignor is None else (told.assignor,)
    algorithms = (
        Algorithm(assignor, own, *rack_aware)
        for assignor in assignors
        for own in (tags if assignor == "high_availability" else [()])
        for rack_aware in (_rack_aware(told, assignor, costs) if racked else [("none", None)])
    )
    return tuple(
        ConfigRange(one, spans[STANDBYS], spans[WARM_UPS], spans[LAG], one.releases)
        for one in algorithms
    )


def allowing(told: Told, hypotheses: Hypotheses) -> Hypotheses:
    """Return all hypotheses that agree with what was told, as far as others know what there is."""
    keys = {key for one in hypotheses for key in one.algorithm.tags}
    racked = any(one.algorithm.strategy != "none" for one in hypotheses)
    return possible(told, keys, racked=racked, costs=OTHER_COSTS)


def any_costs(told: Told) -> tuple[Costs, ...]:
    """Return the costs that are tried besides the assignors' own, and those that were told."""
    own = (told.costs_of(assignor) for assignor in ASSIGNORS)
    return tuple(dict.fromkeys((*OTHER_COSTS, *(costs for costs in own if costs is not None))))


def _rack_aware(
    told: Told, assignor: str, others: Sequence[Costs]
) -> Iterator[tuple[str, Costs | None]]:
    """Yield the strategies that an assignor may have, and their costs.

    One without costs of its own assigns nothing by racks unless it is told both, nor does the
    fallback assignor at all.
    """
    untold = (None, *others) if told.costs == (None, None) else (told.costs_of(assignor),)
    for strategy in ("none", *STRATEGIES) if told.strategy is None else (told.strategy,):
        if strategy == "none":
            yield strategy, None
            continue
        for costs in untold:
            counts = assignor in _OWN_COSTS or (assignor == "public_sticky" and costs is not None)
            if counts or told.strategy is not None:
                yield strategy, costs


def _choices(keys: Sequence[str]) -> list[tuple[str, ...]]:
    return [own for n in range(min(len(keys), MOST_TAGS) + 1) for own in combinations(keys, n)]

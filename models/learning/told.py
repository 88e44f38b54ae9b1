"""The configs in an application's settings, and the hypotheses that agree with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from caughtup.models.assignors.kafka import sticky
from caughtup.models.assignors.kafka.high_availability import assignor as high_availability
from caughtup.models.assignors.kafka.racks.rack_aware import STRATEGIES, Costs
from caughtup.models.learning.ranges import (
    ANY,
    ASSIGNORS,
    LAG,
    STANDBYS,
    WARM_UPS,
    Algorithm,
    ConfigRange,
    Hypotheses,
    IntSpan,
)
from caughtup.models.parameters import MOST_TAGS, ApplicationParameters, RackCosts

#: Costs of rack-aware assignment that are tried if an assignor's own don't explain a decision. They
#: are rarely configured, and only their ratio counts.
OTHER_COSTS = (Costs(1, 0), Costs(1, 1), Costs(1, 10), Costs(10, 1))
#: The default costs of the assignors that have any.
_OWN_COSTS: Mapping[str, Costs] = {
    "high_availability": high_availability.DEFAULT_COSTS,
    "sticky": sticky.DEFAULT_COSTS,
}


@dataclass(frozen=True, slots=True)
class ToldConfigs:
    """The configs in the settings: by Kafka's names, the others as in ``ApplicationParameters``."""

    configs: Mapping[str, int]
    tags: tuple[str, ...] | None = None
    assignor: str | None = None
    strategy: str | None = None
    costs: RackCosts = (None, None)

    @classmethod
    def of(cls, parameters: ApplicationParameters) -> ToldConfigs:
        """Return the configs in an application's settings.

        Settings with all three numbers, two of which only the high availability assignor reads,
        imply that assignor, unless they name another one.
        """
        configs = dict(parameters.config)
        tags = None if parameters.tags is None else tuple(sorted(parameters.tags))
        assignor = parameters.assignor
        if assignor is None and configs.keys() >= ANY.keys():
            assignor = ASSIGNORS[0]
        return cls(configs, tags, assignor, parameters.strategy, parameters.costs)

    @property
    def tells_racks(self) -> bool:
        """Whether the settings have a strategy or costs of rack-aware assignment."""
        return self.strategy is not None or self.costs != (None, None)

    def costs_of(self, assignor: str) -> Costs | None:
        """Return the costs that an assignor uses, None for its own."""
        own = _OWN_COSTS.get(assignor)
        traffic, non_overlap = self.costs
        if own is not None:
            traffic = own.traffic if traffic is None else traffic
            non_overlap = own.non_overlap if non_overlap is None else non_overlap
        if traffic is None or non_overlap is None or (traffic, non_overlap) == own:
            return None
        return Costs(traffic, non_overlap)


#: Settings without any config.
UNTOLD = ToldConfigs({})


def possible_hypotheses(
    told: ToldConfigs, keys: Iterable[str], *, racked: bool = False, costs: Sequence[Costs] = ()
) -> Hypotheses:
    """Return all hypotheses that agree with the settings.

    ``keys`` are the client tags that all members have; Kafka refuses to start with others.
    ``racked``: all members have a rack; otherwise Kafka doesn't assign by racks. ``costs`` are
    tried besides the assignors' own, if the settings have none.
    """
    spans = {
        name: IntSpan(told.configs[name], told.configs[name]) if name in told.configs else span
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


def consistent_hypotheses(told: ToldConfigs, hypotheses: Hypotheses) -> Hypotheses:
    """Return all hypotheses that agree with the settings, with the given ones' tags and racks."""
    keys = {key for one in hypotheses for key in one.algorithm.tags}
    racked = any(one.algorithm.strategy != "none" for one in hypotheses)
    return possible_hypotheses(told, keys, racked=racked, costs=OTHER_COSTS)


def any_costs(told: ToldConfigs) -> tuple[Costs, ...]:
    """Return the costs that are tried besides the assignors' own, and those in the settings."""
    own = (told.costs_of(assignor) for assignor in ASSIGNORS)
    return tuple(dict.fromkeys((*OTHER_COSTS, *(costs for costs in own if costs is not None))))


def _rack_aware(
    told: ToldConfigs, assignor: str, others: Sequence[Costs]
) -> Iterator[tuple[str, Costs | None]]:
    """Yield the strategies that an assignor may have, and their costs.

    An assignor without default costs doesn't assign by racks unless the settings have both costs,
    and the fallback assignor never does.
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

"""The configs that a played application really has, drawn as operators set them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from caughtup.models.assignment.configs import NEWEST, Configs, Release
from caughtup.models.assignors.kafka.racks.rack_aware import Costs
from caughtup.models.learning.ranges import Algorithm, ConfigRange, Hypotheses, IntSpan


@dataclass(frozen=True)
class Truth:
    """The configs that an application really has."""

    assignor: str = "high_availability"
    tags: tuple[str, ...] = ()
    standbys: int = 0
    warm_ups: int = 2
    lag: int = 10_000
    probing_ms: int = 600_000
    release: Release = NEWEST
    strategy: str = "none"
    costs: Costs | None = None

    def is_among(self, hypotheses: Hypotheses) -> bool:
        """Return whether it is one of the hypotheses; what its assignor doesn't read may be any."""
        reads = self.assignor == "high_availability"
        by_racks = reads or self.assignor == "sticky"
        own = ConfigRange(
            Algorithm(
                self.assignor,
                self.tags if reads else (),
                *((self.strategy, self.costs) if by_racks else ("none", None)),
            ),
            IntSpan(self.standbys, self.standbys),
            *(
                (IntSpan(self.warm_ups, self.warm_ups), IntSpan(self.lag, self.lag))
                if reads
                else ()
            ),
            releases=IntSpan(self.release, self.release),
        )
        return any(own.meet(one) for one in hypotheses)

    def configs(self) -> Configs:
        costs = self.costs or (None, None)
        numbers = self.lag, self.warm_ups, self.standbys, self.probing_ms
        return Configs(*numbers, self.tags, self.strategy, *costs)


def draw_truth(
    rng: random.Random,
    keys: tuple[str, ...] = (),
    *,
    racked: bool = False,
    releases: Sequence[Release] = (NEWEST,),
) -> Truth:
    """Draw configs that one of the releases accepts."""
    release = rng.choice(releases) if len(releases) > 1 else releases[0]
    assignor = rng.choice(["high_availability"] * 8 + ["sticky", "public_sticky", "fallback_prior"])
    strategies = ["none", "min_traffic", "balance_subtopology"] if racked else ["none"]
    if release < NEWEST:
        assignor = "sticky" if assignor == "public_sticky" else assignor
        strategies = strategies[: 2 if release == Release.V3_5_2 else 1]
    if release < Release.V3_2:
        keys = ()
    return Truth(
        assignor,
        tuple(sorted(rng.sample(keys, rng.randint(0, len(keys))))),
        rng.choice([0, 0, 1, 1, 1, 2, 3]),
        rng.randint(1, 8),
        rng.choice([0, 10, 100, 1_000, 10_000, 10_000, 100_000, rng.randint(0, 100_000)]),
        rng.choice([60_000, 120_000, 600_000, 600_000, 90_500]),
        release,
        rng.choice(strategies) if racked else "none",
    )

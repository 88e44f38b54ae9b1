"""The scenario that a recommendation is decided from: by what is learned, and never against it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from caughtup.models.assignors.kafka.racks.rack_aware import Costs
from caughtup.models.learning.evidence import seen_standbys
from caughtup.models.learning.known_inputs import with_known_configs
from caughtup.models.learning.learned import Learned
from caughtup.models.learning.provenance import chosen
from caughtup.models.learning.ranges import LAG, STANDBYS, WARM_UPS, spans_of
from caughtup.models.learning.told import ToldConfigs
from caughtup.models.parameters import NON_OVERLAP_COST, STRATEGY, TAGS, TRAFFIC_COST
from tests.models.learning.applications import Application
from tests.models.learning.playing import steps
from tests.support.sizes import daily


@pytest.mark.parametrize("seed", range(daily(5, 50)))
def test_nothing_is_recommended_under_what_decisions_have_ruled_out(seed: int) -> None:
    """What is assumed beside what is learned is among the hypotheses, all of it together.

    But for warm-ups: as many as by default, or as few as any that is left allows.
    """
    app = Application(f"known inputs {seed}", racked=seed % 2 == 0)
    for step in steps(app, generations=12):
        inputs = with_known_configs(step.played.inputs, step.played.generation, step.after)
        config, left = inputs.scenario.config, step.after.possible
        one = chosen(left, seen_standbys(step.played.generation))
        assert (config[STANDBYS], config[LAG]) == (one.standbys.low, one.lag.low)
        together = replace(one, warm_ups=spans_of(left, WARM_UPS)[0]._replace(high=1 << 30))
        assert any(together.meet(other) for other in left)
        same = [own for own in left if own.algorithm.assignor == one.algorithm.assignor]
        may_be_default = any(own.warm_ups.low <= 2 <= own.warm_ups.high for own in same)
        fewest = min(own.warm_ups.low for own in same)
        assert config[WARM_UPS] == (2 if may_be_default else fewest)
        for known in inputs.configs:
            assert (known.as_if_default is True) <= (known.values != str(known.value))
        assert config.get(TAGS, []) == list(one.algorithm.tags)
        assert config.get(STRATEGY, "none") == one.algorithm.strategy
        if all(own.algorithm.strategy == "min_traffic" for own in left):
            assert config[STRATEGY] == "min_traffic"
            assert inputs.scenario.expanded().racks is not None


def test_a_strategy_and_costs_that_are_told_are_what_is_recommended_by() -> None:
    app = Application("told costs", doubts=0, failures=0, racked=True)
    app.truth = replace(
        app.truth, assignor="high_availability", strategy="min_traffic", costs=Costs(3, 1)
    )
    told = ToldConfigs({}, (), "high_availability", "min_traffic", (3, None))
    for step in steps(app, Learned(told), 6):
        inputs = with_known_configs(step.played.inputs, step.played.generation, step.after)
        config = inputs.scenario.config
        assert (config[STRATEGY], config[TRAFFIC_COST]) == ("min_traffic", 3)
        assert config[NON_OVERLAP_COST] == 1
        assert inputs.scenario.expanded().racks is not None


@pytest.mark.parametrize("seed", range(12))
def test_the_first_generation_seen_shows_how_many_standbys_tasks_have(seed: int) -> None:
    """One look at a cluster sees one generation: its members say what nobody told."""
    app = Application(f"standbys {seed}")
    generation = next(steps(app, generations=1)).played.generation
    assert seen_standbys(generation) == min(app.truth.standbys, len(generation.clients) - 1)

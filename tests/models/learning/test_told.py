"""What settings tell of racks, costs and assignors, and what a leader without end offsets is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from caughtup.models.assignors.kafka.racks.rack_aware import Costs
from caughtup.models.learning.learned import Learned, with_settings
from caughtup.models.learning.provenance import known_configs
from caughtup.models.learning.ranges import ASSIGNORS, Algorithm
from caughtup.models.learning.told import (
    OTHER_COSTS,
    UNTOLD,
    ToldConfigs,
    any_costs,
    possible_hypotheses,
)
from caughtup.models.parameters import (
    NON_OVERLAP_COST,
    STRATEGY,
    TRAFFIC_COST,
    ApplicationParameters,
    RackCosts,
)
from caughtup.models.records.recommendations import KnownConfigRecord
from tests.models.learning.applications import Application
from tests.models.learning.playing import Step, steps
from tests.models.learning.test_groups import check_truth
from tests.support.sizes import daily

AVAILABLE = "high_availability"
FEW = daily(3, 12)


def racked_application(seed: object, strategy: str, costs: Costs | None = None) -> Application:
    app = Application(f"told racks {seed}", doubts=0, failures=0, racked=True)
    app.truth = replace(app.truth, assignor=AVAILABLE, strategy=strategy, costs=costs)
    return app


def rack_aware(told: ToldConfigs, **others: object) -> set[tuple[str, str, Costs | None]]:
    algorithms = (one.algorithm for one in possible_hypotheses(told, (), racked=True, **others))  # type: ignore[arg-type]
    return {(one.assignor, one.strategy, one.costs) for one in algorithms}


def configs(learned: Learned) -> dict[str, KnownConfigRecord]:
    return {one.name: one for one in known_configs(learned)}


def test_a_strategy_that_is_told_is_the_only_one() -> None:
    told = ToldConfigs({}, assignor=AVAILABLE, strategy="min_traffic")
    assert rack_aware(told) == {(AVAILABLE, "min_traffic", None)}
    assert rack_aware(told, costs=OTHER_COSTS) == {
        (AVAILABLE, "min_traffic", costs) for costs in (None, *OTHER_COSTS)
    }
    assert rack_aware(replace(told, strategy="none")) == {(AVAILABLE, "none", None)}
    (unracked,) = possible_hypotheses(told, ())
    assert unracked.algorithm == Algorithm(AVAILABLE), "without racks nothing goes by them"


@pytest.mark.parametrize(
    ("given", "assignor", "costs"),
    [
        ((3, 7), AVAILABLE, Costs(3, 7)),
        ((3, None), AVAILABLE, Costs(3, 1)),
        ((3, None), "sticky", Costs(3, 10)),
        ((10, 1), AVAILABLE, None),
        ((10, None), AVAILABLE, None),
        ((1, 10), "sticky", None),
        ((1, 10), "public_sticky", Costs(1, 10)),
        ((1, None), "public_sticky", None),
        ((None, None), AVAILABLE, None),
    ],
)
def test_a_cost_that_is_not_told_is_the_assignors_own(
    given: RackCosts, assignor: str, costs: Costs | None
) -> None:
    assert ToldConfigs({}, costs=given).costs_of(assignor) == costs


def test_who_assigns_nothing_by_racks_is_one_hypothesis() -> None:
    """The fallback assignor never does, and the public one not without costs."""
    every = rack_aware(UNTOLD)
    assert {own for own in every if own[0] == "fallback_prior"} == {
        ("fallback_prior", "none", None)
    }
    assert {own for own in every if own[0] == "public_sticky"} == {("public_sticky", "none", None)}
    assert {own[0] for own in every} == {*ASSIGNORS}
    assert Costs(3, 7) in any_costs(ToldConfigs({}, costs=(3, 7)))


@pytest.mark.parametrize("strategy", ["none", "min_traffic", "balance_subtopology"])
@pytest.mark.parametrize("costs", [None, Costs(3, 7)])
def test_true_settings_of_racks_are_never_contradicted(strategy: str, costs: Costs | None) -> None:
    """Costs among none that are tried are as good as others once they are told."""
    given: RackCosts = (None, None) if costs is None else (costs.traffic, costs.non_overlap)
    for seed in range(FEW):
        own = None if strategy == "none" else costs
        app = racked_application(seed, strategy, own)
        parameters = ApplicationParameters(strategy=strategy, costs=given)
        for step in steps(app, Learned(ToldConfigs.of(parameters)), 12):
            check_truth(seed, step)


def test_a_change_beside_costs_that_are_told_is_no_contradiction_of_the_settings() -> None:
    """Everything that explains it is asked under the costs that were told, too."""
    changed = 0
    for seed in range(4):
        app = racked_application(seed, "min_traffic", Costs(3, 7))
        before = replace(app.truth, standbys=0, lag=100_000)
        now = replace(before, standbys=1)
        told = ToldConfigs({}, assignor=AVAILABLE, strategy="min_traffic", costs=(3, 7))
        for step in steps(app, Learned(told), 20, lambda n, a=before, b=now: a if n < 8 else b):
            assert step.verdict.result != "mismatch", (seed, step.number, step.verdict.why)
            changed += bool(step.verdict.doubted)
    assert changed


def test_a_false_strategy_in_the_settings_is_named_within_five_contradictions() -> None:
    for seed in daily((17,), (13, 17)):  # elsewhere racks hardly matter
        app = racked_application(seed, "none")
        told = ToldConfigs({}, (), AVAILABLE, "min_traffic")
        found = [s for s in steps(app, Learned(told)) if s.verdict.result == "mismatch"]
        assert any(step.verdict.doubted == (STRATEGY,) for step in found[:5]), seed


def test_what_is_told_of_racks_is_said_to_be_told() -> None:
    told = ToldConfigs({}, strategy="min_traffic", costs=(3, None))
    *_, last = steps(racked_application(1, "min_traffic", Costs(3, 1)), Learned(told), 6)
    for learned in (Learned(told), last.after):
        found = configs(learned)
        for name, value in ((STRATEGY, "min_traffic"), (TRAFFIC_COST, 3)):
            one = found[name]
            assert (one.value, one.values, one.provenance) == (value, str(value), "told")
        assert NON_OVERLAP_COST not in found
    assert STRATEGY not in configs(Learned())


def test_costs_that_decisions_tell_are_shown_with_what_else_they_may_be() -> None:
    for seed in range(60):
        app = racked_application(f"costs {seed}", "min_traffic", Costs(1, 10))
        *_, last = steps(app, generations=25)
        found = configs(last.after)
        if TRAFFIC_COST in found:
            assert found[TRAFFIC_COST].provenance == "learned"
            assert "ratio" in found[TRAFFIC_COST].would_tell
            assert "cost" not in found[STRATEGY].values
            return
    pytest.fail("no decision told that costs aren't the assignor's own")


def test_settings_of_racks_that_come_later_narrow_what_was_learned() -> None:
    *_, last = steps(racked_application(1, "min_traffic"), generations=6)
    left = with_settings(last.after, ToldConfigs({}, strategy="min_traffic")).hypotheses
    assert left
    assert {one.algorithm.strategy for one in left} == {"min_traffic"}
    told = replace(last.after, told=ToldConfigs({}, strategy="min_traffic"))
    assert with_settings(told, UNTOLD) == Learned(), "what they ruled out is possible again"
    assert (
        with_settings(
            replace(told, told=ToldConfigs({}, costs=(1, 2))), ToldConfigs({}, costs=(1, 3))
        ).since
        is None
    )


def without_ends(seed: int) -> list[Step]:
    """Play an application whose leader gets no end offsets for 12 generations, and then does."""
    app = Application(f"without ends {seed}", doubts=0, failures=1)
    app.truth = replace(app.truth, assignor=AVAILABLE, standbys=1, tags=(), lag=10)
    found = list(steps(app, generations=12))
    app.failures = 0
    return [*found, *steps(app, found[-1].after, 20)]


def test_a_leader_that_never_gets_end_offsets_counts_as_the_assignor_that_it_gives_way_to() -> None:
    """After four generations that nothing else explains; it is noticed when that ends."""
    settled = mended = 0
    for seed in range(2 * FEW):
        found = without_ends(seed)
        assert all(step.verdict.result != "mismatch" for step in found), seed
        left = found[11].after.hypotheses or ()
        if {one.algorithm.assignor for one in left} == {"fallback_prior"}:
            settled += 1
            first = next(step for step in found if step.after.without_ends == 4)
            assert all(one.after.hypotheses != left for one in found[: first.number])
            assert any(step.verdict.result == "match" for step in found[:12])
            mended += found[-1].played.truth.is_among(found[-1].after.possible)
    assert settled > FEW
    assert mended == settled


def test_who_only_sometimes_gets_no_end_offsets_is_not_taken_for_that() -> None:
    for seed in range(2 * FEW):
        app = Application(f"sometimes {seed}", doubts=0, failures=0.4)
        app.truth = replace(app.truth, assignor=AVAILABLE, standbys=1, tags=(), lag=10)
        for step in steps(app):
            if step.after.without_ends >= 4:
                break  # that often by chance
            check_truth(seed, step)

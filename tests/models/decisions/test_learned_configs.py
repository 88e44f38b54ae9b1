"""Configs that nobody told, through the state: learned, kept over a restart, said where they differ."""

from __future__ import annotations

import pytest

from caughtup.models.learning.learned import Learned
from caughtup.models.learning.probing_interval import PROBING
from caughtup.models.learning.ranges import (
    LAG,
    STANDBYS,
    WARM_UPS,
)
from caughtup.models.learning.told import ToldConfigs
from caughtup.models.parameters import TAGS
from tests.models.learning.applications import GROUP, Application
from tests.models.learning.truths import Truth
from tests.support.decisions import decided_generation
from tests.support.learning import (
    TRUTH,
    a_state,
    an_application,
    learned,
    live,
    restarted,
    see,
)
from tests.support.sizes import daily


def test_without_a_setting_decisions_are_matched_once_a_few_were_seen() -> None:
    results = []
    for seed in range(10):
        app = an_application(seed)
        results += [decided.exact.leader.result for decided in live(a_state(app), app, 15)][5:]
    assert results.count("match") >= 0.95 * len(results)
    assert "mismatch" not in results


def test_what_a_decision_was_made_with_is_what_is_known_of_it() -> None:
    app = an_application()
    state = a_state(app)
    *_, decided = live(state, app, 15)
    config = decided.inputs.scenario.config
    assert config[STANDBYS] == 1
    assert {one.name: one.value for one in decided.inputs.configs if one.name in config} == {
        name: value for name, value in config.items() if name != TAGS
    }
    assert {one.provenance for one in decided.inputs.configs if one.name == STANDBYS} == {"learned"}


@pytest.mark.parametrize("seed", range(daily(3, 8)))
def test_a_restart_loses_nothing_and_counts_no_generation_twice(seed: int) -> None:
    """A twin that never restarted knows the same, generation by generation."""
    app = Application(f"restart {seed}")
    state, twin = a_state(app), a_state(app)
    for number in range(16):
        played = app.rebalance()
        see(state, played)
        see(twin, played)
        if number % 5 == 4:
            state = restarted(state, app)
            see(state, played)  # its recommendation was not written: it is decided once more
            assert decided_generation(state).learned is None
        assert learned(state) == learned(twin), number
        result, of_twin = (decided_generation(one).exact.leader.result for one in (state, twin))
        # What was decided once more is held against what is left since.
        assert result == of_twin or (number % 5 == 4 and result == "match")
        app.live()


def test_a_group_without_members_is_not_forgotten() -> None:
    app = an_application()
    state = a_state(app)
    list(live(state, app, 8))
    before = learned(state)
    state.applications.apply_generation(GROUP, None, app.now_ms)
    assert learned(state) == before
    assert before.explained


def test_what_was_learned_of_a_group_that_is_gone_is_withdrawn() -> None:
    app = an_application()
    state = a_state(app)
    list(live(state, app, 2))
    assert state.applications.groups_with_records() == {GROUP}
    assert state.applications.forget_records([GROUP]) == [GROUP]
    assert learned(state) == Learned(ToldConfigs({}))


@pytest.mark.parametrize(
    ("name", "wrong"), [(STANDBYS, 0), (STANDBYS, 2), (WARM_UPS, 1), (LAG, 1_000_000)]
)
def test_a_false_setting_is_named_within_five_generations_that_contradict_it(
    name: str, wrong: int
) -> None:
    right = {STANDBYS: TRUTH.standbys, WARM_UPS: 2, LAG: TRUTH.lag, PROBING: TRUTH.probing_ms}
    for seed in range(12):
        app = an_application(seed)
        state = a_state(app, config={**right, name: wrong}, tags=())
        contradicting = [d for d in live(state, app, 20) if d.exact.leader.result == "mismatch"]
        if contradicting:
            lines = [line for one in contradicting[:5] for line in one.inputs.contradicted]
            found = [
                line for line in lines if line.startswith(f"{name}: {wrong} in the settings, ")
            ]
            assert found, (seed, lines)
            recommended = contradicting[-1].recommendation
            assert recommended is not None
            assert recommended.inputs.scenario.config[name] == wrong, "the settings' word counts"
            return
    pytest.fail("no group contradicts it")


def test_true_settings_are_contradicted_by_nothing() -> None:
    app = an_application()
    state = a_state(
        app, config={STANDBYS: 1, WARM_UPS: 2, LAG: 1_000, PROBING: TRUTH.probing_ms}, tags=()
    )
    for decided in live(state, app, 20):
        assert decided.inputs.contradicted == ()
        assert decided.exact.leader.result == "match"
        assert {one.provenance for one in decided.inputs.configs} == {"told"}


def test_another_probing_interval_than_the_settings_tell_is_said() -> None:
    lines = set()
    for seed in range(6):
        app = an_application(seed, Truth(standbys=1, lag=10))
        state = a_state(app, config={PROBING: 120_000})
        lines |= {line for one in live(state, app, 12) for line in one.inputs.contradicted}
    assert any(line.startswith(f"{PROBING}: 120000 in the settings, ") for line in lines)


def test_a_rolling_deployment_is_said_and_learned_anew() -> None:
    app = an_application(truth=Truth(standbys=0, lag=100_000))
    state = a_state(app)
    list(live(state, app, 10))
    app.truth = Truth(standbys=1, lag=100_000)
    whys = [decided.exact.leader.why for decided in live(state, app, 20)]
    assert any(f"{STANDBYS} was 0, now 1" in why for why in whys)
    assert whys[-1] == ""
    assert decided_generation(state).inputs.scenario.config[STANDBYS] == 1


@pytest.mark.parametrize("seed", range(6))
def test_a_recommendation_has_no_more_warm_ups_than_the_default_or_the_fewest_left(
    seed: int,
) -> None:
    app = Application(f"within {seed}")
    state = a_state(app)
    for decided in live(state, app, 15):
        recommended = decided.recommendation
        assert recommended is not None
        left = [
            one.warm_ups.low
            for one in learned(state).possible
            if one.algorithm.assignor == "high_availability"
        ]
        warm_ups = sum(len(given.warmup) for given in recommended.assignment.values())
        assert warm_ups <= max(2, min(left, default=1))

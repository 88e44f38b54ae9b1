"""Applications with drawn configs, played for 20 generations: what is learned is never wrong."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from caughtup.models.assignment.configs import Release
from caughtup.models.learning.learned import Learned
from caughtup.models.learning.ranges import LAG, STANDBYS, WARM_UPS
from caughtup.models.learning.told import ToldConfigs
from tests.models.learning.applications import Application
from tests.models.learning.playing import Step, Tables, altered, steps, told_of
from tests.models.learning.truths import draw_truth
from tests.support.sizes import daily

#: Groups are played in so many tests, which may run side by side.
PARTS = 4
GROUPS = daily(20, 2_000)
#: Of what takes as long but shows less.
FEWER = daily(8, 400)
#: Of false settings only some are contradicted.
CONTRADICTING = daily(16, 400)
#: The releases that are tried before a decision contradicts them.
LIKELY = [release for release in Release if release != Release.V3_2]


def seeds(part: int, count: int) -> range:
    """Return a part's seeds, and print them."""
    found = range(part, count, PARTS)
    print(f"seeds {found}")
    return found


def check_truth(seed: int, step: Step) -> None:
    """What an application has is always among the hypotheses, and nothing is a mismatch."""
    hypotheses = step.after.hypotheses
    assert hypotheses is not None
    at = f"seed {seed}, generation {step.number}, {step.played.truth}, {step.verdict}"
    assert step.played.truth.is_among(hypotheses), at
    assert step.verdict.result != "mismatch", at
    assert not step.verdict.doubted, at
    probing = step.after.probing
    assert probing is None or probing.low <= step.played.truth.probing_ms <= probing.high, at


@pytest.mark.parametrize("part", range(PARTS))
def test_no_wrong_value_is_learned_of_what_nobody_told(part: int) -> None:
    tables = Tables()
    for seed in seeds(part, GROUPS):
        group = list(steps(Application(seed)))
        for step in group:
            check_truth(seed, step)
        tables.add(group)
    print(tables.text())


@pytest.mark.parametrize("part", range(PARTS))
def test_no_wrong_value_is_learned_of_any_release_and_with_racks(part: int) -> None:
    """Each wire version has its releases; of those that share one, decisions have to tell."""
    tables = Tables()
    for seed in seeds(part, FEWER):
        app = Application(f"released {seed}", releases=LIKELY, racked=seed % 3 == 0)
        group = list(steps(app, generations=12))
        for step in group:
            check_truth(seed, step)
        tables.add(group)
    print(tables.text())


@pytest.mark.parametrize("part", range(PARTS))
def test_3_2_is_tried_once_the_later_releases_are_contradicted(part: int) -> None:
    begun = 0
    for seed in seeds(part, FEWER):
        app = Application(f"3.2 {seed}", releases=(Release.V3_2,))
        for step in steps(app):
            assert step.verdict.result != "mismatch", (seed, step.number)
            if step.after.since != step.before.since and step.before.since is not None:
                begun += 1
                assert app.truth.is_among(step.after.possible), (seed, step.number)
    print(f"{begun} begun anew")


@pytest.mark.parametrize("part", range(PARTS))
def test_true_settings_are_never_contradicted(part: int) -> None:
    for seed in seeds(part, FEWER):
        app = Application(f"told {seed}")
        told = told_of(app.truth, random.Random(seed))
        for step in steps(app, Learned(told)):
            check_truth(seed, step)


@pytest.mark.parametrize("part", range(PARTS))
def test_false_settings_are_named_within_five_generations_that_contradict_them(part: int) -> None:
    contradicted = alone = 0
    for seed in seeds(part, CONTRADICTING):
        rng = random.Random(seed)
        app = Application(f"false {seed}")
        app.truth = replace(app.truth, assignor="high_availability")
        name = rng.choice([STANDBYS, WARM_UPS, LAG])
        _, wrong = altered(app.truth, name, rng)
        told = told_of(app.truth, rng, **{name: wrong})
        told = ToldConfigs(told.configs, app.truth.tags, "high_availability")
        contradicting = [s for s in steps(app, Learned(told)) if s.verdict.result == "mismatch"]
        if contradicting:
            contradicted += 1
            doubted = [step.verdict.doubted for step in contradicting[:5]]
            assert any(name in names for names in doubted), (seed, name, told, doubted)
            alone += (name,) in doubted
    print(f"{contradicted} contradicted, of which {alone} with no other config named beside")
    assert contradicted
    assert alone > 0.9 * contradicted


@pytest.mark.parametrize("part", range(PARTS))
def test_a_change_of_configs_is_noticed_and_learned_anew(part: int) -> None:
    """What is begun again after two contradictions has the new configs among it."""
    noticed = 0
    for seed in seeds(part, FEWER):
        app = Application(f"change {seed}")
        before, after = app.truth, draw_truth(random.Random(seed), app.keys)
        for step in steps(app, change=lambda n, a=before, b=after: a if n < 10 else b):
            assert step.verdict.result != "mismatch", (seed, step.number)
            if step.number < 10:
                check_truth(seed, step)
            elif step.after.since != step.before.since:
                noticed += 1
                assert after.is_among(step.after.possible), (seed, step.number, after)
    print(f"{noticed} noticed")
    assert noticed


@pytest.mark.parametrize("part", range(PARTS))
def test_a_leader_with_an_assignor_of_its_own_is_over_once_it_is_over(part: int) -> None:
    """Its generation may fit some hypotheses by chance; then two contradictions mend that."""
    odd = 0
    for seed in seeds(part, FEWER):
        app = Application(f"odd {seed}")
        truth, own = app.truth, replace(app.truth, assignor="minimal_movement")
        fitted = False
        for step in steps(app, change=lambda n, a=truth, b=own: b if n == 8 else a, generations=25):
            assert step.verdict.result != "mismatch", (seed, step.number)
            hypotheses = step.after.hypotheses
            assert hypotheses is not None
            if step.number == 8:
                fitted = not truth.is_among(hypotheses)
                odd += step.verdict.result == "undetermined" and not fitted
            fitted = fitted and step.after.since == step.before.since
            assert fitted or truth.is_among(hypotheses), (seed, step.number)
    print(f"{odd} seen")
    assert odd


@pytest.mark.parametrize("part", range(PARTS))
def test_half_a_rolling_deployment_is_over_once_it_is_over(part: int) -> None:
    """While leaders of old and new configs take turns, what explains both may be neither."""
    known = groups = 0
    for seed in seeds(part, FEWER):
        rng = random.Random(seed)
        app = Application(f"rolling {seed}")
        old, new = app.truth, draw_truth(rng, app.keys)
        turns = [old] * 8 + [rng.choice([old, new]) for _ in range(8)] + [new] * 20
        over = 0
        for step in steps(app, change=turns.__getitem__, generations=len(turns)):
            assert step.verdict.result != "mismatch", (seed, step.number)
            if step.number == 16:
                over = step.played.generation.generation
            since = step.after.since
            if over and since is not None and since >= over:
                assert new.is_among(step.after.possible), (seed, step.number)
        groups += 1
        known += new.is_among(step.after.possible)
    print(f"{known} of {groups} have the new configs among what is possible in the end")
    assert known > 0.7 * groups

"""What is left of hypotheses is what trying all of them leaves."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from caughtup.models.assignment.configs import NEWEST, Release
from caughtup.models.learning.elimination import sift
from caughtup.models.learning.evidence import Evidence
from caughtup.models.learning.learned import leaders_releases, tag_keys, under_releases
from caughtup.models.learning.ranges import Algorithm, ConfigRange, Hypotheses, IntSpan
from caughtup.models.learning.sifter import Judgement
from caughtup.models.learning.told import UNTOLD, possible_hypotheses
from tests.models.learning.applications import Application
from tests.support.sizes import daily

AVAILABLE = Algorithm("high_availability")


def is_among(algorithm: Algorithm, configs: tuple[int, int, int], hypotheses: Hypotheses) -> bool:
    standbys, warm_ups, lag = (IntSpan(number, number) for number in configs)
    release = IntSpan(algorithm.release, algorithm.release)
    one = ConfigRange(algorithm._replace(release=NEWEST), standbys, warm_ups, lag, release)
    return any(one.meet(other) for other in hypotheses)


def played(seed: int, generations: int) -> list[Evidence]:
    """Return the last generations of a group, in which nothing is unknown."""
    app = Application(f"elimination {seed}", doubts=0, failures=0)
    app.truth = replace(app.truth, assignor="high_availability")
    found = list(app.play(generations + 2))[2:]
    return [Evidence(one.generation, one.inputs) for one in found]


@pytest.mark.parametrize("seed", range(daily(8, 24)))
def test_what_is_left_is_what_decides_the_same(seed: int) -> None:
    rng = random.Random(seed)
    for evidence in played(seed, 3):
        by_itself = Evidence(evidence.generation, evidence._inputs)
        releases = leaders_releases(evidence.generation)
        everything = under_releases(
            possible_hypotheses(UNTOLD, tag_keys(evidence.generation)), releases, releases
        )
        available = [
            one.algorithm._replace(release=Release(number))
            for one in everything
            if one.algorithm.assignor == AVAILABLE.assignor
            for number in range(releases.low, releases.high + 1)
        ]
        left = sift(everything, evidence, most=100_000).left
        spared = Judgement.UNSURE in sift(everything, evidence, most=100_000).findings
        lags = sorted({lag for c in evidence._scenario.clients for lag in c.lags.values()})
        near = [lag + step for lag in lags for step in (-1, 0, 1) if lag + step >= 0]
        for _ in range(40):
            configs = rng.randint(0, 4), rng.randint(1, 9), rng.choice([0, 10_000, *near])
            algorithm = rng.choice(available)
            differences = by_itself.differences(algorithm, *configs)
            agrees = not any(one.certain for one in differences)
            assert agrees <= is_among(algorithm, configs, left), (seed, configs, differences)
            if not spared:
                assert agrees == is_among(algorithm, configs, left), (seed, configs, differences)


@pytest.mark.parametrize("seed", range(12))
def test_more_standbys_than_others_are_no_more(seed: int) -> None:
    """As the decisions themselves have it, that is: what is asked is the same by construction."""
    for evidence in played(seed, 2):
        for algorithm in (AVAILABLE, Algorithm("sticky")):
            most = evidence.clients - 1
            decided = [evidence._decide(algorithm, n, 2, 10_000) for n in (most, most + 1, 50)]
            assert decided[0] == decided[1] == decided[2]


@pytest.mark.parametrize("seed", range(12))
def test_who_runs_what_under_the_public_sticky_assignor_is_no_matter_of_standbys(
    seed: int,
) -> None:
    for evidence in played(seed, 2):
        decided = [evidence._decide(Algorithm("public_sticky"), n, 1, 0) for n in range(4)]
        active = [{p: one.active for p, one in made.clients.items()} for made in decided]
        assert active.count(active[0]) == len(active)


def test_what_isnt_decided_for_lack_of_decisions_stays() -> None:
    for seed in range(6):
        for evidence in played(seed, 2):
            everything = possible_hypotheses(UNTOLD, ())
            few = sift(everything, evidence, most=2)
            all_ = sift(everything, evidence, most=100_000)
            for one in all_.left:
                assert any(one.meet(other) for other in few.left)
            assert evidence.decisions >= 2


def test_one_hypothesis_takes_one_decision() -> None:
    app = Application("one", doubts=0, failures=0)
    app.truth = replace(app.truth, assignor="high_availability", tags=())
    truth = app.truth
    one = ConfigRange(
        AVAILABLE,
        IntSpan(truth.standbys, truth.standbys),
        IntSpan(truth.warm_ups, truth.warm_ups),
        IntSpan(truth.lag, truth.lag),
        IntSpan(NEWEST, NEWEST),
    )
    for played_one in app.play(10):
        evidence = Evidence(played_one.generation, played_one.inputs)
        assert sift((one,), evidence).findings == {Judgement.MATCH}
        assert evidence.decisions == 1

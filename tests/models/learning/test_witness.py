"""Inputs within all bounds that explain a decision: found where there are any, and rarely elsewhere."""

from __future__ import annotations

import os
import random
from collections import Counter
from dataclasses import replace

import pytest

from caughtup.models.assignment.configs import NEWEST
from caughtup.models.histories.offset_sums import EndOffsetSum
from caughtup.models.learning.evidence import Evidence
from caughtup.models.learning.learned import Learned, learn
from tests.models.learning.applications import Application
from tests.models.learning.changed import KINDS, changes
from tests.models.learning.figures import all_told
from tests.models.learning.playing import Step, steps
from tests.models.learning.test_groups import LIKELY
from tests.support.sizes import daily

SEEDS = range(int(os.environ.get("WITNESS_GROUPS", daily("4", "8"))))
#: Of each kind of change, for each generation.
CHANGES = int(os.environ.get("WITNESS_CHANGES", "2"))


@pytest.fixture(scope="module")
def played() -> list[Step]:
    """Groups of whose tasks a half has end offsets that are known within up to 1,000 offsets."""
    return [step for seed in SEEDS for step in steps(loaded(seed), generations=12)]


def loaded(seed: int) -> Application:
    app = Application(
        f"loaded {seed}",
        doubts=1.0,
        failures=0.0,
        missing=0.0,
        releases=LIKELY,
        racked=seed % 3 == 0,
    )
    app.growth = 3_000
    return app


def test_nearly_every_decision_under_load_is_a_match_or_consistent(played: list[Step]) -> None:
    found = Counter(step.verdict.result for step in played if step.number >= 5)
    print(found)
    assert found["consistent"] > found.total() / 4
    assert found["match"] + found["consistent"] >= 0.9 * found.total()
    assert not found["mismatch"]


def test_a_witness_is_within_the_bounds_and_decides_what_the_leader_decided(
    played: list[Step],
) -> None:
    count = 0
    for step in played:
        witness = step.verdict.witness
        assert (witness is not None) == (step.verdict.result == "consistent")
        if witness is None:
            continue
        count += 1
        one, bounds = witness.config, step.played.inputs.ends
        algorithm = one.algorithm._replace(release=NEWEST)  # ranges have it in their releases
        among = replace(one, algorithm=algorithm)
        assert any(among.meet(left) for left in step.after.possible)
        for task, end in witness.ends.items():
            assert (bound := bounds[task]) is not None
            assert bound.low <= end <= bound.high
        asked = one.algorithm, one.standbys.low, one.warm_ups.low, one.lag.low
        exactly = Evidence(step.played.generation, step.played.inputs).with_ends(witness.ends)
        assert not exactly.inexact
        assert exactly.judged_differences(*asked) == []
    assert count


def test_what_is_known_exactly_needs_no_witness(played: list[Step]) -> None:
    for step in played:
        ends = step.played.inputs.ends.values()
        if all(end is not None and end.low == end.high for end in ends):
            assert step.verdict.result != "consistent" or step.verdict.open


@pytest.mark.heavy
def test_a_changed_decision_is_hardly_ever_consistent(played: list[Step]) -> None:
    found: Counter[tuple[str, str]] = Counter()
    sizes: dict[str, Counter[str]] = {}
    rng = random.Random("changes")
    for step in played:
        if step.number < 5 or step.verdict.result not in ("match", "consistent"):
            continue
        for kind, generation in changes(step.played.generation, rng, CHANGES):
            inputs, seen_ms = step.played.inputs, step.played.seen_ms
            _, verdict = learn(step.before, generation, inputs, seen_ms)
            found[kind, verdict.result] += 1
            tasks = len(step.played.inputs.scenario.tasks)
            size = "under 10 tasks" if tasks < 10 else "10 to 19" if tasks < 20 else "20 or more"
            sizes.setdefault(size, Counter())[verdict.result] += 1
    print(found, sizes)
    consistent = sum(count for (_, result), count in found.items() if result == "consistent")
    assert {kind for kind, _ in found} == {*KINDS}
    assert consistent <= 0.02 * found.total()


def test_bounds_of_a_lag_include_those_of_every_end_within_its_bounds() -> None:
    for offset_sum in (0, 5, 10, 15, 20, 25, -2, -3):
        low, high = EndOffsetSum(10, 20).lags(offset_sum)
        for end in range(10, 21):
            exact = EndOffsetSum(end, end).lags(offset_sum)
            assert low <= exact[0] == exact[1] <= high


@pytest.mark.parametrize("failures", [0.0, 0.2])
def test_what_no_end_offsets_within_their_bounds_explain_is_a_mismatch(failures: float) -> None:
    """Of applications whose configs are all told; their leaders' own decisions never are."""
    found: Counter[tuple[str, str]] = Counter()
    for seed in SEEDS:
        app = loaded(seed)
        app.failures = failures
        rng = random.Random(f"refuted {seed}")
        for step in steps(app, Learned(all_told(app.truth)), generations=8):
            found["kept", step.verdict.result] += 1
            for kind, generation in changes(step.played.generation, rng, CHANGES):
                inputs, seen_ms = step.played.inputs, step.played.seen_ms
                found[kind, learn(step.before, generation, inputs, seen_ms)[1].result] += 1
    print(found)
    assert not found["kept", "mismatch"]
    assert found["exchange", "mismatch"] > found["exchange", "undetermined"]
    assert not any(result == "consistent" for kind, result in found if kind != "kept")

"""What is kept of learned configs: narrowed, bounded, written and read back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from caughtup.models.decisions.learned_configs import (
    LearnedConfigs,
    LearnedUntil,
    learned_record,
    read_learned,
)
from caughtup.models.learning.learned import Learned, with_settings
from caughtup.models.learning.probing_interval import PROBING
from caughtup.models.learning.ranges import (
    LAG,
    STANDBYS,
    WARM_UPS,
    Algorithm,
    ConfigRange,
    IntSpan,
    bounded,
)
from caughtup.models.learning.told import ToldConfigs, possible_hypotheses
from caughtup.models.parameters import STRATEGY, ApplicationParameters
from caughtup.models.records.keys import encode_group
from caughtup.models.records.learned_configs import FORMAT, MOST_RANGES
from tests.models.learning.applications import GROUP, Application
from tests.support.learning import (
    a_state,
    kept,
    learned,
    live,
    restarted,
)

HYPOTHESES = possible_hypotheses(ToldConfigs({}), ("zone",))
KNOWN = Learned(ToldConfigs({}), HYPOTHESES, since=3, explained=4)


@pytest.mark.parametrize(
    ("before", "told", "after"),
    [
        pytest.param(KNOWN, ToldConfigs({}), KNOWN, id="the same"),
        pytest.param(
            KNOWN,
            ToldConfigs({STANDBYS: 2}),
            replace(
                KNOWN,
                told=ToldConfigs({STANDBYS: 2}),
                hypotheses=tuple(replace(one, standbys=IntSpan(2, 2)) for one in HYPOTHESES),
            ),
            id="more",
        ),
        pytest.param(
            replace(KNOWN, told=ToldConfigs({STANDBYS: 2})),
            ToldConfigs({}),
            Learned(ToldConfigs({})),
            id="less",
        ),
        pytest.param(
            replace(KNOWN, told=ToldConfigs({STANDBYS: 2})),
            ToldConfigs({STANDBYS: 1}),
            Learned(ToldConfigs({STANDBYS: 1})),
            id="something else",
        ),
        pytest.param(
            replace(KNOWN, hypotheses=(ConfigRange(Algorithm("sticky"), IntSpan(1, 1)),)),
            ToldConfigs({STANDBYS: 0}),
            Learned(ToldConfigs({STANDBYS: 0})),
            id="what was ruled out",
        ),
        pytest.param(
            Learned(ToldConfigs({})),
            ToldConfigs({}, ()),
            Learned(ToldConfigs({}, ())),
            id="nothing yet",
        ),
    ],
)
def test_other_settings_narrow_what_was_learned_or_begin_it_anew(
    before: Learned, told: ToldConfigs, after: Learned
) -> None:
    assert with_settings(before, told) == after


def test_too_many_ranges_are_taken_together() -> None:
    many = tuple(
        ConfigRange(Algorithm(name), IntSpan(n, n), lag=IntSpan(n, 2 * n))
        for name in ("sticky", "high_availability")
        for n in range(1, MOST_RANGES)
    )
    assert bounded(many[:MOST_RANGES]) == many[:MOST_RANGES]
    last = MOST_RANGES - 1
    assert bounded(many) == (
        ConfigRange(Algorithm("sticky"), IntSpan(1, last), lag=IntSpan(1, 2 * last)),
        ConfigRange(Algorithm("high_availability"), IntSpan(1, last), lag=IntSpan(1, 2 * last)),
    )


def test_of_too_many_groups_nothing_more_is_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("caughtup.models.decisions.learned_configs.MOST_GROUPS", 2)
    known, one = LearnedConfigs(), LearnedUntil(KNOWN, 7, 1_000)
    assert known.restore("a", one)
    assert known.restore("b", one)
    assert not known.restore("c", one)
    assert known.restore("a", one._replace(generation=8))
    assert known.restore("a", None)
    assert known.restore("c", one)
    assert known.groups() == {"b", "c"}


def test_parameters_that_tell_all_numbers_tell_of_the_assignor_that_reads_them() -> None:
    numbers = {STANDBYS: 0, WARM_UPS: 2, LAG: 10_000}
    assert ToldConfigs.of(ApplicationParameters(numbers)).assignor == "high_availability"
    assert ToldConfigs.of(ApplicationParameters({STANDBYS: 0})).assignor is None
    assert ToldConfigs.of(ApplicationParameters(numbers, assignor="sticky")).assignor == "sticky"


def test_what_is_written_is_what_is_read_back() -> None:
    suspected = (ConfigRange(Algorithm("high_availability", ("zone",)), IntSpan(1, 2)),)
    learned = replace(
        KNOWN,
        told=ToldConfigs({PROBING: 120_000}, ("zone",), "sticky", "min_traffic", (3, None)),
        without_ends=2,
        suspected=suspected,
        suspected_since=5,
        probing=IntSpan(119_000, 121_000),
    )
    for one in (
        LearnedUntil(learned, 7, 1_000, {"orders-a-changelog": 1}),
        LearnedUntil(Learned(), 0, -1),
    ):
        value = FORMAT.encode(learned_record(GROUP, one))
        assert read_learned(encode_group(GROUP), value, 2_000) == (GROUP, one)


@pytest.mark.parametrize("strategy", ["none", "min_traffic", "balance_subtopology"])
def test_racks_are_learned_by_and_what_is_recommended_keeps_to_them(strategy: str) -> None:
    """Through the state, whose replicas' racks somebody has looked up."""
    results, known = [], set()
    for seed in range(3):
        app = Application(f"racked {seed}", doubts=0, failures=0, racked=True)
        app.truth = replace(app.truth, assignor="high_availability", strategy=strategy, costs=None)
        state = a_state(app)
        state.replicas = app.replicas
        found = list(live(state, app, 12))
        results += [decided.exact.leader.result for decided in found[5:]]
        assert app.truth.is_among(learned(state).possible)
        for decided in found:
            (one,) = [c for c in decided.inputs.configs if c.name == STRATEGY] or [None]
            config = decided.inputs.scenario.config
            assert config.get(STRATEGY, "none") == (one.value if one else "none")
            if STRATEGY in config:
                assert decided.inputs.scenario.expanded().racks is not None
                assert decided.recommendation is not None
            known.add(one and one.values)
        value = kept(state)
        assert learned(restarted(state, app)) == learned(state)
        assert FORMAT.decode(value)
    assert "mismatch" not in results
    assert results.count("match") >= 0.9 * len(results)
    # That nothing goes by racks is seldom ruled in: often they would change nothing.
    assert strategy in known or strategy == "none"

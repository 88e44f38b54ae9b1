"""The same decisions as the published assignors' for groups with racks."""

from __future__ import annotations

from collections import Counter

import pytest

from caughtup.models.assignment.scenario import parse_scenario
from caughtup.models.assignors.kafka.racks import rack_aware
from caughtup.models.assignors.kafka.racks.min_cost_flow import FlowNetwork
from caughtup.models.assignors.kafka.standbys import TagAwareStandbyAssignor
from caughtup.models.assignors.registry import decide
from tests.oracle.comparison import assert_same_decisions
from tests.oracle.generated.racks import COSTS, STRATEGY, generate_large, generate_racked
from tests.support.oracles import Oracle


@pytest.mark.parametrize("strategy", ["min_traffic", "balance_subtopology"])
def test_larger_groups_are_decided_as_the_published_assignor_decides_them(
    assignor_oracle: Oracle, strategy: str
) -> None:
    assert_same_decisions(assignor_oracle, [generate_large(seed, strategy) for seed in range(2)])


@pytest.mark.heavy
def test_the_generator_reaches_what_it_has_to_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or else agreement over its scenarios would prove little."""
    seen: Counter[object] = Counter()
    scenarios = [generate_racked(seed) for seed in range(500)]
    parsed = [parse_scenario(scenario) for scenario in scenarios]
    for scenario, known in zip(scenarios, parsed, strict=True):
        config, clients = scenario["config"], scenario["clients"].values()
        seen[config[STRATEGY], known.racks is not None] += 1
        for cost in COSTS:
            seen[cost, config.get(cost, "left out")] += 1
        seen["standbys", config["num.standby.replicas"]] += 1
        seen["client without a rack"] += any(one.get("rack") is None for one in clients)
        seen["broker without a rack"] += None in scenario["brokers"].values()
        seen["partition without replicas"] += [] in scenario["replicas"].values()
        seen["unequal threads"] += len({one["capacity"] for one in clients}) > 1
        seen["negative UUID"] += any(name[0] in "89abcdef" for name in scenario["clients"])
        seen["several subtopologies"] += len({task[0] for task in known.stateful}) > 1
        seen["stateful and stateless"] += bool(known.stateful and known.stateless)
        seen["ten partitions or more"] += len(known.stateful) >= 10
        if known.racks is None and config["num.standby.replicas"]:
            config = {**config, "num.standby.replicas": 0}
            changelogs = parse_scenario({**scenario, "config": config}).racks is not None
            seen["off because of changelogs"] += changelogs
        for racks in known.racks.partitions.values() if known.racks else ():
            seen["replicas in several racks"] += len(racks) > 1
    wanted = {(strategy, on) for strategy in rack_aware.STRATEGIES for on in (True, False)}
    wanted |= {("standbys", n) for n in range(3)}
    assert wanted <= seen.keys()
    assert not {what: count for what, count in seen.items() if count < 5}

    right = [decide(scenario) for scenario in parsed]

    def differences(owner: object, name: str, wrong: object) -> int:
        """Count the decisions that come out otherwise with a rule broken."""
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, wrong)
            return sum(decide(one) != known for one, known in zip(parsed, right, strict=True))

    assignor = rack_aware.RackAwareAssignor
    assert differences(assignor, "optimise_stateful", lambda _: None) >= 50
    assert differences(assignor, "optimise_standbys", lambda *_: None) >= 20
    assert differences(assignor, "optimise_stateless", lambda _: None) >= 20
    assert differences(TagAwareStandbyAssignor, "may_exchange", lambda *_: True) >= 3
    assert differences(rack_aware, "MOST_ROUNDS", 1) >= 2
    assert differences(FlowNetwork, "minimise_cost", lambda _: None) >= 50

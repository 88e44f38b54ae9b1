"""A decision that differs from Kafka's is told with a small scenario that shows it."""

from __future__ import annotations

import json

import pytest

from caughtup.models.assignors.kafka.stickiness import TaskPairs
from tests.oracle.comparison import assert_same_decisions
from tests.oracle.generated.scenarios import generate
from tests.oracle.generated.sticky import generate_sticky
from tests.oracle.shrinking import shrink
from tests.support.oracles import Oracle


def test_a_rule_that_is_broken_shows_in_a_scenario_of_a_few_tasks(
    assignor_oracle: Oracle, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds = range(20)
    assert assert_same_decisions(assignor_oracle, map(generate_sticky, seeds)) == 20
    monkeypatch.setattr(TaskPairs, "has_new", lambda self, place, companions: True)
    with pytest.raises(pytest.fail.Exception, match=r"sticky seed \d+ is") as failed:
        assert_same_decisions(assignor_oracle, map(generate_sticky, seeds))
    least = json.loads(str(failed.value).splitlines()[1])
    assert len(least["tasks"]) <= 5
    assert len(least["clients"]) <= 4
    monkeypatch.undo()
    assert assert_same_decisions(assignor_oracle, [least]) == 1


def test_a_scenario_that_kafka_refuses_is_no_agreement(assignor_oracle: Oracle) -> None:
    scenario = generate(3) | {"assignor": "nobody's"}
    with pytest.raises(pytest.fail.Exception, match="no assignor is called nobody's"):
        assert_same_decisions(assignor_oracle, [scenario])


def test_shrinking_leaves_what_the_failure_needs_and_nothing_else() -> None:
    scenario = generate(12)
    process = list(scenario["clients"])[-1]
    task = list(scenario["tasks"])[-1]
    scenario["clients"][process]["capacity"] = 7
    least = shrink(
        scenario,
        lambda one: (
            task in one["tasks"]
            and one["clients"].get(process, {}).get("capacity") == 7
            and one["config"]["num.standby.replicas"] == scenario["config"]["num.standby.replicas"]
        ),
    )
    assert list(least["tasks"]) == [task]
    assert list(least["clients"]) == [process]
    assert least["clients"][process]["capacity"] == 7
    assert least["clients"][process]["previous_active"] == []
    assert least["config"] == {
        "acceptable.recovery.lag": 0,
        "max.warmup.replicas": 1,
        "num.standby.replicas": scenario["config"]["num.standby.replicas"],
        "probing.rebalance.interval.ms": 600_000,
    }

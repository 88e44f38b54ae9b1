"""The generated stories reach every rule, and a rule that is broken is told by a short story."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from caughtup.models.connect import assignors
from caughtup.models.connect.assign_line import decide_rounds, parse_rounds
from caughtup.models.connect.decision import Assigned, ConnectDecision, Delayed, Memory, Revoked
from tests.oracle.connect.comparison import assert_same_rounds
from tests.oracle.generated.connect_stories import (
    generate_faulty_story,
    generate_large_story,
    generate_story,
)
from tests.support.oracles import Oracle

#: They share one JVM.
pytestmark = pytest.mark.xdist_group("connect oracle")


@pytest.mark.heavy
def test_the_generators_reach_every_reason_and_what_is_rare() -> None:
    seen: Counter[str] = Counter()
    for seed in range(150):
        for generate in (generate_story, generate_faulty_story, generate_large_story):
            story = generate(seed)
            for decision in decide_rounds(parse_rounds(story)):
                seen.update(_seen(decision))
            seen["failed generation"] += any("previous_gen" in key for key in _keys(story))
            seen["another leader"] += len({one["leader"] for one in story["rounds"]}) > 1
    every = {f"{kind.__name__} {one}" for kind in (Assigned, Revoked, Delayed) for one in kind}
    assert every - {"Assigned eager"} <= seen.keys()
    rare = {what: count for what, count in seen.items() if count < 5}
    assert not rare


def _keys(story: dict[str, Any]) -> set[str]:
    return {key for one in story["rounds"] for key in one}


def _seen(decision: ConnectDecision) -> set[str]:
    seen = {f"Assigned {reason}" for reason in decision.assigned_because.values()}
    seen |= {f"Revoked {reason}" for reason in decision.revoked_because.values()}
    if decision.delayed:
        seen.add(f"Delayed {decision.delayed}")
        if not decision.unassigned:
            seen.add("a delay without lost work")
        if decision.assigned_because:
            seen.add("new work during a delay")
    if len(decision.candidates) > 1:
        seen.add("several candidates")
    if decision.delay_ms in (40, 1_600, 64_000, 999):
        seen.add(f"back-off {decision.delay_ms}")
    return seen


def test_a_rule_that_is_broken_shows_in_a_story_of_a_few_rounds(
    connect_oracle: Oracle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Candidates that a delay forgets."""

    def forgetting(*arguments: Any) -> assignors.LostWork:
        found = unbroken(*arguments)
        memory: Memory = found.memory
        return found._replace(memory=replace(memory, candidates=memory.candidates[:1]))

    unbroken = assignors._wait
    seeds = range(40)
    assert assert_same_rounds(connect_oracle, map(generate_story, seeds)) == 40
    monkeypatch.setattr(assignors, "_wait", forgetting)
    with pytest.raises(pytest.fail.Exception, match=r"connect seed \d+ is decided") as failed:
        assert_same_rounds(connect_oracle, map(generate_story, seeds))
    least = json.loads(str(failed.value).splitlines()[1])
    # Somebody leaves, two come, and the delay ends: all in rounds with a worker or two more.
    assert len(least["rounds"]) <= 4
    assert max(len(one["workers"]) for one in least["rounds"]) <= 4
    monkeypatch.undo()
    assert assert_same_rounds(connect_oracle, [least]) == 1


def test_a_story_that_kafka_refuses_is_no_agreement(connect_oracle: Oracle) -> None:
    story = generate_story(3)
    story["rounds"][0]["leader"] = "nobody"
    with pytest.raises(pytest.fail.Exception, match="NullPointerException"):
        assert_same_rounds(connect_oracle, [story])

"""The follower in Java and its model in Python decide every rebalance alike."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from caughtup.models.assignment.scenario import parse_scenario
from caughtup.models.assignors.following.follower import FollowerDecision, Patience, follow
from caughtup.models.assignors.following.recommendation import (
    Objection,
    read_followed,
    require_bounded,
)
from caughtup.models.errors import CaughtupError
from caughtup.models.records.topics import APPLICATION_STATES, MOST_RECOMMENDATION_BYTES
from tests.followers.generated_questions import GROUP, generate_question
from tests.models.assignors.building import client, described
from tests.models.assignors.following.test_follower import one_runs_all, record
from tests.support.groups.streams import process
from tests.support.oracles import Oracle
from tests.support.sizes import daily
from tests.support.topics.validation import problems

SEEDS = daily(200, 3_000)
BLOCK = 500


def expected(question: dict[str, Any]) -> FollowerDecision:
    """Decide as the model does."""
    newest: Any = Objection("no_recommendation", "there is none")
    if question["record"] is not None:
        try:
            require_bounded(question["record"].encode())
            newest = read_followed(json.loads(question["record"]), GROUP)
        except json.JSONDecodeError:
            newest = Objection("malformed", "not JSON")
        except CaughtupError as malformed:
            newest = Objection(malformed.code, malformed.message)
    return follow(
        parse_scenario(question["scenario"]),
        newest,
        age_ms=question["age_ms"],
        waited=question["waited"],
        repeated=question["repeated"],
        patience=Patience(*question["patience"]),
    )


@pytest.mark.parametrize("first", range(0, SEEDS, BLOCK))
def test_both_decide_alike_and_kafka_accepts_it(follower_oracle: Oracle, first: int) -> None:
    reasons: Counter[str] = Counter()
    for seed in range(first, first + BLOCK):
        question = generate_question(seed)
        answer = follower_oracle.ask(question)
        outcome = answer["outcome"]
        decision = expected(question)
        reasons[decision.reason] += 1
        assert answer["error"] == "NONE", f"seed {seed}"
        assert (outcome["reason"], outcome.get("followed"), outcome.get("follow_up_ms")) == (
            decision.reason,
            decision.decision_id,
            decision.follow_up_ms,
        ), f"seed {seed}, {question['kind']}: {outcome['message']}"
        assert outcome["assignment"] == {
            str(process): {
                "active": [str(task) for task in decision.active[process]],
                "standby": [str(task) for task in decision.standby[process]],
            }
            for process in decision.active
        }, f"seed {seed}, {question['kind']}"
        check_what_kafka_is_given(question, answer, f"seed {seed}")
        if seed % 10 == 0:
            check_what_is_published(answer["state"], f"seed {seed}")
    # Otherwise the seeds say little.
    assert {"followed", "given_up", "malformed", "no_recommendation"} <= reasons.keys()
    assert {"other_processes", "unknown_task", "missing_task", "other_configs"} <= reasons.keys()
    assert {"moved_since", "not_caught_up", "too_old", "too_many_copies"} <= reasons.keys()
    assert {"too_few_standbys", "loses_standby", "too_many_actives"} <= reasons.keys()


def test_it_decides_alike_on_the_oldest_kafka_streams(
    follower_oracle: Oracle, oldest_oracle: Oracle
) -> None:
    for seed in range(100):
        question = generate_question(seed)
        answers = [oracle.ask(question) for oracle in (follower_oracle, oldest_oracle)]
        for answer in answers:
            del answer["ms"]
        assert answers[0] == answers[1], f"seed {seed}"


def test_both_balance_at_once_what_is_nowhere_and_nobody_has(
    follower_oracle: Oracle,
) -> None:
    scenario = described(
        client(active=("1_0", "1_1")), client(), stateful=("0_0", "0_1"), stateless=("1_0", "1_1")
    )
    question = {
        "scenario": scenario,
        "record": None,
        "age_ms": 0,
        "waited": 3,
        "repeated": 0,
        "patience": [5_000, 900_000, 3],
    }
    outcome = follower_oracle.ask(question)["outcome"]
    decision = expected(question)
    assert outcome["reason"] == decision.reason == "given_up"
    assert [given["active"] for given in outcome["assignment"].values()] == [
        list(map(str, tasks)) for tasks in decision.active.values()
    ]
    assert "0_0" in outcome["assignment"][str(process(1))]["active"]


@pytest.mark.parametrize(
    ("padding", "reason"),
    [
        (lambda: "x" * 1_000_000, "followed"),
        (lambda: "x" * (MOST_RECOMMENDATION_BYTES - 2_000), "followed"),
        (lambda: "x" * MOST_RECOMMENDATION_BYTES, "malformed"),
        (lambda: [0] * 1_000_000, "followed"),
        (lambda: [0] * 1_100_000, "malformed"),
        (lambda: [[]] * 550_000, "malformed"),
        (lambda: {str(number): 0 for number in range(1_100_000)}, "malformed"),
    ],
    ids=["string", "long string", "too long", "array", "too large", "too many arrays", "object"],
)
def test_both_refuse_what_would_take_too_much_memory(
    follower_oracle: Oracle, padding: Callable[[], Any], reason: str
) -> None:
    found = one_runs_all(lag=7)
    newest = record(found, {1: (("0_0",), ()), 2: (("0_1",), ())}, padding=padding())
    question = {
        "scenario": found,
        "record": json.dumps(newest),
        "age_ms": 0,
        "waited": 0,
        "repeated": 0,
        "patience": [5_000, 900_000, 3],
    }
    assert follower_oracle.ask(question)["outcome"]["reason"] == reason
    assert expected(question).reason == reason


def check_what_is_published(state: dict[str, Any], where: str) -> None:
    """Hold what the follower in Java writes to the schema, but for what its shell knows."""
    written = {name: of for name, of in state.items() if name != "follower"}
    value = json.dumps(written).encode()
    assert problems(APPLICATION_STATES, GROUP.encode(), value) == [], where


def check_what_kafka_is_given(question: dict[str, Any], answer: dict[str, Any], where: str) -> None:
    """Hold what Kafka Streams gets against the outcome, and against what it must have."""
    outcome, clients = answer["outcome"], answer["clients"]
    assert clients.keys() == question["scenario"]["clients"].keys(), where
    actives = [t for given in clients.values() for t, kind in given.items() if kind == "ACTIVE"]
    assert sorted(actives) == sorted(question["scenario"]["tasks"]), where
    for name, given in outcome["assignment"].items():
        kinds = dict.fromkeys(given["active"], "ACTIVE") | dict.fromkeys(
            given["standby"], "STANDBY"
        )
        assert clients[name] == kinds, where
    assert answer["follow_ups"] == ("follow_up_ms" in outcome), where
    if "follow_up_ms" in outcome:
        assert answer["follow_up_at_ms"] == 1_000 + outcome["follow_up_ms"], where
        # The leader's own process is the one that reads the clock.
        assert answer["prober"] == answer["prober"].lower() in clients, where

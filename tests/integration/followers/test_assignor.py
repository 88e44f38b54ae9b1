"""A real Kafka Streams application follows recommendations, and runs on whatever it is sent."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.models.assignment.scenario import parse_scenario
from caughtup.models.assignors.following.follower import FOLLOWED, Patience, follow
from caughtup.models.assignors.following.recommendation import Objection, read_followed
from caughtup.models.ids import TaskId
from caughtup.models.records.topics import APPLICATION_STATES, TASK_POSITIONS
from tests.support.followers.bad_recommendations import BAD, spoiled
from tests.support.followers.streams_application import (
    FOLLOW_UP_MS,
    SECONDS,
    Following,
    assert_nothing_failed,
    newest,
    recommend,
    scenario_of,
    start_with_state,
)
from tests.support.kafka.topics import whole_topic
from tests.support.service import wait_for
from tests.support.topics.published import require_valid

HOUR_MS = 3_600_000


@pytest.fixture(scope="module")
def following(cluster: EmbeddedCluster, jar: Path) -> Iterator[Following]:
    """Two instances with state, and a third that came later and waits for a recommendation."""
    with Following(cluster, jar) as following:
        start_with_state(cluster, following, "one", "two")
        following.application.start_instance("three")
        following.wait_state("three are there", lambda state: len(state["clients"]) == 3)
        yield following
        assert_nothing_failed(following, "one", "two", "three")


def spread(state: dict[str, Any]) -> list[int]:
    assignment = state["outcome"]["assignment"]
    return sorted(len(given["active"]) for given in assignment.values())


def without(state: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in state.items() if name not in names}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_recommendation_moves_nothing(following: Following, name: str) -> None:
    before = newest(following)
    record, reason = spoiled(name, before)
    following.publish(record)
    state = following.wait_reason(reason)
    assert "followed" not in state["outcome"]
    assert state["outcome"]["assignment"] == before["outcome"]["assignment"]
    assert state["outcome"]["follow_up_ms"] == FOLLOW_UP_MS
    assert spread(state)[0] == 0, "the third instance has nothing yet"


def test_a_withdrawn_recommendation_is_none(following: Following) -> None:
    following.publish(recommend(newest(following), decided_at_ms=1))
    following.publish(None)
    following.wait_reason("no_recommendation")


def test_another_group_s_recommendation_is_not_read(following: Following) -> None:
    following.publish(recommend(newest(following)), key="somebody-else")
    assert newest(following)["outcome"]["reason"] == "no_recommendation"


@pytest.mark.parametrize("hours", [-1, 1])
def test_clocks_that_are_an_hour_off_change_nothing(following: Following, hours: int) -> None:
    state = newest(following)
    now_ms = int(time.time() * 1000) + hours * HOUR_MS
    record = recommend(state, decided_at_ms=now_ms)
    for process, client in state["clients"].items():
        # Nothing moves, or the tests after this one would find no idle instance.
        kept = {"active": client["previous_active"], "standby": client["previous_standby"]}
        record["assignment"][process] = kept
    record["probing_rebalance"] = {"needed": True, "worthwhile_at_ms": now_ms + 700}
    following.publish(record, timestamp_ms=now_ms)
    followed = following.wait_reason(FOLLOWED)
    assert followed["outcome"]["followed"] == record["decision_id"]
    assert followed["outcome"]["follow_up_ms"] == 700 << followed["follower"]["repeated"]
    following.publish(None)
    following.wait_reason("no_recommendation")


def test_recommendations_are_followed_until_tasks_are_balanced(following: Following) -> None:
    published: dict[str, dict[str, Any]] = {}
    count = len(following.states())
    state = newest(following)
    while spread(state) != [2, 2, 2] or "follow_up_ms" in state["outcome"]:
        record = recommend(state)
        published[record["decision_id"]] = record
        following.publish(record)
        decision_id = record["decision_id"]
        state = following.wait_state(
            "it is followed",
            lambda s, wanted=decision_id: s["outcome"].get("followed") == wanted,
            after=len(following.states()),
        )
    for state in following.states()[count:]:
        assert_as_the_model_decides(state, published)
    following.application.wait_caught_up()
    names = ("one", "two", "three")
    wait_for(
        "each runs two",
        lambda: [len(actives(following, name)) for name in names] == [2, 2, 2],
        SECONDS,
    )
    assert {task for name in names for task in actives(following, name)} == {
        TaskId.parse(task) for task in state["tasks"]
    }


def actives(following: Following, name: str) -> list[TaskId]:
    threads = following.application.threads(name).values()
    return sorted(task for thread in threads for task in thread.active)


def assert_as_the_model_decides(
    state: dict[str, Any], published: dict[str, dict[str, Any]]
) -> None:
    """Hold what a rebalance came to against the model, from what was published of it."""
    outcome, told = state["outcome"], state["follower"]
    newest: Any = Objection(outcome["reason"], outcome["message"])
    if told.get("newest") in published:
        newest = read_followed(published[told["newest"]], state["group"])
    decision = follow(
        parse_scenario(scenario_of(state)),
        newest,
        age_ms=told.get("age_ms", 0),
        waited=told["waited"],
        repeated=told.get("repeated", 0),
        patience=Patience(told["follow_up_ms"], told["max_age_ms"], told["follow_ups"]),
    )
    assert (decision.reason, decision.decision_id, decision.follow_up_ms) == (
        outcome["reason"],
        outcome.get("followed"),
        outcome.get("follow_up_ms"),
    )
    assert outcome["assignment"] == {
        str(process): {
            "active": [str(task) for task in decision.active[process]],
            "standby": [str(task) for task in decision.standby[process]],
        }
        for process in decision.active
    }


def test_the_published_state_is_what_kafka_streams_says_itself(
    following: Following, cluster: EmbeddedCluster
) -> None:
    application = following.application
    state = following.states()[-1]
    assert without(
        state, "published_at_ms", "state_id", "clients", "follower", "outcome", "greatest_lags"
    ) == {
        "schema": 1,
        "group": following.group,
        "config": {
            "acceptable.recovery.lag": 10,
            "max.warmup.replicas": 2,
            "num.standby.replicas": 0,
            "probing.rebalance.interval.ms": 60_000,
            "rack.aware.assignment.tags": [],
            "rack.aware.assignment.strategy": "none",
            "rack.aware.assignment.traffic_cost": None,
            "rack.aware.assignment.non_overlap_cost": None,
        },
        "tasks": {
            f"{subtopology}_{partition}": {
                "stateful": True,
                "stores": list(stores),
                "source_partitions": [
                    [application.source, partition]
                    if subtopology == 0
                    else [f"{following.group}-by-customer-repartition", partition]
                ],
                "changelog_partitions": [
                    [f"{following.group}-{store}-changelog", partition] for store in stores
                ],
            }
            for subtopology, stores in application.subtopology_stores("one").items()
            for partition in range(3)
        },
    }
    for name in ("one", "two", "three"):
        client = state["clients"][str(application.process_id(name))]
        assert client["capacity"] == 1
        (member,) = client["client_ids"]
        assert member.startswith(f"{name}-StreamThread-1-consumer-")


def test_the_follow_up_is_on_the_process_whose_clock_it_was_set_by(following: Following) -> None:
    log = "".join(following.log(name) for name in ("one", "two", "three"))
    leaders = {
        name for name in ("one", "two", "three") if "caughtup: followed-" in following.log(name)
    }
    assert leaders
    for line in log.splitlines():
        if "followup rebalance be scheduled by" in line.lower():
            assert any(f"{leader}-StreamThread-1-consumer" in line for leader in leaders), line


def test_copies_are_reported_while_they_are_restored_and_taken_back_after(
    following: Following, cluster: EmbeddedCluster
) -> None:
    state = following.states()[-1]
    three = str(following.application.process_id("three"))
    deadline = time.monotonic() + 150
    while True:
        last: dict[str, Any] = {}
        seen: dict[str, list[dict[str, Any]]] = {}
        for message in whole_topic(cluster, following.prefix + "task-positions"):
            key = message.key().decode()
            last[key] = message.value()
            if message.value() is not None:
                seen.setdefault(key, []).append(json.loads(message.value()))
        if all(value is None for value in last.values()) or time.monotonic() > deadline:
            break
    assert all(value is None for value in last.values()), "everything runs, nothing is restored"
    for task in state["outcome"]["assignment"][three]["active"]:
        records = seen[json.dumps([following.group, three, task], separators=(",", ":"))]
        standby = [record for record in records if record["role"] == "standby"]
        assert standby, "it warmed up first"
        assert standby[-1]["lag"] == 0
        (changelog,) = [topic for topic, _ in state["tasks"][task]["changelog_partitions"]]
        assert list(standby[-1]["lags"]) == [changelog]
        assert standby[-1]["leads"][changelog] > 0
        assert standby[-1]["client_id"] == "three"


def test_every_record_that_it_publishes_is_as_its_topic_s_schema_says(
    following: Following, cluster: EmbeddedCluster
) -> None:
    topics = (APPLICATION_STATES, TASK_POSITIONS)
    kinds = require_valid(cluster, topics, following.prefix)
    assert kinds == {"ApplicationStateRecord", "PositionRecord"}

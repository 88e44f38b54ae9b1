"""The same decisions as the published assignors for groups whose clients have tags."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caughtup.models.assignment.client_state import ClientState
from caughtup.models.assignment.scenario import Client, parse_scenario
from caughtup.models.assignors.java import hash_map
from caughtup.models.assignors.kafka import standbys
from caughtup.models.assignors.kafka.standbys import TagAwareStandbyAssignor
from caughtup.models.assignors.registry import decide
from caughtup.models.ids import TaskId
from tests.oracle.generated.tags import (
    generate_tagged,
    generate_tagged_and_racked,
    generate_tagged_fleet,
)
from tests.support.groups.streams import process
from tests.support.sizes import daily

TASK = TaskId(0, 0)


@pytest.mark.heavy
def test_the_generators_reach_what_they_have_to_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or else agreement over their scenarios would prove little."""
    scenarios = [generate_tagged(seed) for seed in range(120)]
    fleets = [generate_tagged_fleet(seed) for seed in range(40)]
    seen: Counter[object] = Counter()
    for scenario in scenarios + fleets:
        config, clients = scenario["config"], scenario["clients"].values()
        keys = config["rack.aware.assignment.tags"]
        tags = [client.get("tags", {}) for client in clients]
        seen["keys", len(keys)] += 1
        seen["standbys", config["num.standby.replicas"]] += 1
        seen["hundreds of tasks"] += len(scenario["tasks"]) >= 200
        seen["unequal threads"] += len({client["capacity"] for client in clients}) > 1
        seen["no tags"] += {} in tags
        seen["tags that some lack"] += any(
            0 < sum(k in own for own in tags) < len(tags) for k in keys
        )
        seen["tags that all lack"] += any(all(k not in own for own in tags) for k in keys)
        seen["tags not asked for"] += any(own.keys() - set(keys) for own in tags)
        for key in keys:
            values = [own[key] for own in tags if key in own]
            seen["values", min(len(set(values)), 4)] += 1
            seen["all different"] += len(set(values)) == len(values) > 2
    assert {("keys", n) for n in (1, 2, 3)} <= seen.keys()
    assert {("standbys", n) for n in range(4)} <= seen.keys()
    assert {("values", n) for n in range(1, 5)} <= seen.keys()
    assert not {what: count for what, count in seen.items() if count < 5}

    both = [generate_tagged_and_racked(seed) for seed in range(120)]
    parsed = [parse_scenario(scenario) for scenario in scenarios + fleets + both]
    right = [decide(scenario) for scenario in parsed]

    def differences(owner: object, name: str, wrong: object) -> int:
        """Count the decisions that come out otherwise with a rule broken."""
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, wrong)
            return sum(decide(one) != known for one, known in zip(parsed, right, strict=True))

    rules = TagAwareStandbyAssignor
    assert differences(rules, "may_move", lambda *_: True) >= 20
    assert differences(rules, "may_move", lambda *_: False) >= 5
    assert differences(rules, "may_exchange", lambda *_: True) >= 3
    assert differences(rules, "_spread", lambda *_: 0) >= 20
    assert differences(standbys, "task_hash_code", lambda _: 0) >= 10
    assert differences(hash_map, "_TREE_FROM", 1 << 31) >= 3


CLIENTS = st.lists(
    st.tuples(
        st.dictionaries(st.sampled_from("zch"), st.sampled_from("abc")),
        st.sampled_from(["active", "standby", "nothing", "nothing"]),
    ),
    min_size=2,
    max_size=7,
)


@settings(max_examples=daily(20, 60), deadline=None, print_blob=True)
@given(CLIENTS)
def test_moves_and_exchanges_are_allowed_where_kafka_allows_them(
    jvm: Any, drawn: list[tuple[dict[str, str], str]]
) -> None:
    may_move, may_exchange = _kafkas_rules(jvm)
    kafka_task = jvm.org.apache.kafka.streams.processor.TaskId(TASK.subtopology, TASK.partition)
    kafka_states = jvm.java.util.TreeMap()
    states = []
    for number, (tags, role) in enumerate(drawn, 1):
        state, kafka_state = _state(number), _kafka_state(jvm, number, tags)
        if role == "active":
            state.active.add(TASK)
            kafka_state.assignActive(kafka_task)
        elif role == "standby":
            state.standby.add(TASK)
            kafka_state.assignStandby(kafka_task)
        states.append(state)
        kafka_states.put(_kafka_process(jvm, number), kafka_state)
    ours = TagAwareStandbyAssignor([tags for tags, _ in drawn], ["z"])
    kafkas = list(kafka_states.values())
    for source, destination in permutations(range(len(drawn)), 2):
        pair = kafkas[source], kafkas[destination]
        assert ours.may_move(source, destination) == may_move(*pair)
        assert ours.may_exchange(states, source, destination, TASK) == may_exchange(
            *pair, kafka_task, kafka_states
        )


def _state(number: int) -> ClientState:
    return ClientState(Client(process(number), 1, frozenset(), frozenset(), {}))


def _kafka_process(jvm: Any, number: int) -> Any:
    return jvm.org.apache.kafka.streams.processor.assignment.ProcessId(
        jvm.java.util.UUID(0, number)
    )


def _kafka_state(jvm: Any, number: int, tags: dict[str, str]) -> Any:
    kafka_tags = jvm.java.util.HashMap()
    for key, value in tags.items():
        kafka_tags.put(key, value)
    return jvm.org.apache.kafka.streams.processor.internals.assignment.ClientState(
        _kafka_process(jvm, number), kafka_tags
    )


def _kafkas_rules(jvm: Any) -> tuple[Callable[..., bool], Callable[..., bool]]:
    """Find the two rules about movements in a class that Kafka keeps to itself."""
    internals = "org.apache.kafka.streams.processor.internals.assignment"
    kind = jvm.java.lang.Class.forName(f"{internals}.ClientTagAwareStandbyTaskAssignor")
    (constructor,) = (c for c in kind.getDeclaredConstructors() if not c.getParameterCount())
    constructor.setAccessible(True)
    assignor = constructor.newInstance(jvm.java.util.ArrayList().toArray())

    def rule(parameters: int) -> Callable[..., bool]:
        (method,) = (
            method
            for method in kind.getDeclaredMethods()
            if method.getName() == "isAllowedTaskMovement"
            and method.getParameterCount() == parameters
        )
        method.setAccessible(True)

        def call(*given: object) -> bool:
            arguments = jvm.java.util.ArrayList()
            for one in given:
                arguments.add(one)
            return bool(method.invoke(assignor, arguments.toArray()))

        return call

    return rule(2), rule(4)

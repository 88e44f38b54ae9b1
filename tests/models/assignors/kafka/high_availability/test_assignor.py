"""HighAvailabilityTaskAssignor: the published jar's own answers, and what always holds."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caughtup.models.assignment.decision import Decision
from caughtup.models.assignment.scenario import parse_scenario
from caughtup.models.assignors.registry import decide
from caughtup.models.errors import ScenarioError
from caughtup.models.ids import TaskId
from tests.models.assignors.building import client, described, scenario, task
from tests.models.assignors.published import assert_reproduced, each_of, examples
from tests.support.groups.streams import process
from tests.support.sizes import daily

EXAMPLES = examples("high_availability")
PARTITIONS = tuple(f"0_{partition}" for partition in range(11))


@each_of(EXAMPLES)
def test_the_published_assignors_decision_is_reproduced(example: dict[str, Any]) -> None:
    assert_reproduced(example)


def test_clients_and_tasks_may_be_listed_in_any_order() -> None:
    for example in EXAMPLES:
        shuffled = dict(example["scenario"])
        for field in ("tasks", "clients"):
            items = list(shuffled[field].items())
            random.Random(7).shuffle(items)
            shuffled[field] = dict(items)
        assert decide(parse_scenario(shuffled)) == decide(parse_scenario(example["scenario"]))


def test_a_new_client_warms_up_before_it_gets_the_active() -> None:
    tasks = ("0_0", "0_1")
    first = decide(scenario(client(active=tasks), client(), stateful=tasks))
    assert first.probing_rebalance_needed
    assert first.clients[process(1)].active == (task("0_0"), task("0_1"))
    assert first.clients[process(2)].warmup == (task("0_1"),)

    warm = client({"0_1": 100}, standby=("0_1",))
    second = decide(scenario(client(active=tasks), warm, stateful=tasks))
    assert not second.probing_rebalance_needed
    assert second.clients[process(2)].active == (task("0_1"),)
    assert second.clients[process(2)].standby == ()


def test_no_more_than_the_allowed_warm_ups_are_handed_out() -> None:
    decision = decide(scenario(client(active=PARTITIONS), client(), stateful=PARTITIONS))
    assert sum(len(c.warmup) for c in decision.clients.values()) == 2
    assert sum(m.kind == "waiting" for m in decision.movements) == 3


def test_a_standby_that_waits_is_a_warm_up_too() -> None:
    """Client 2 has the standby by rights, client 3 is caught up: both have it for now."""
    decision = decide(
        scenario(
            client(active=("0_0",)),
            client(),
            client({"0_0": 5}, standby=("0_0",)),
            stateful=("0_0",),
            standbys=1,
        )
    )
    assert decision.probing_rebalance_needed
    assert decision.clients[process(2)].warmup == (task("0_0"),)
    assert decision.clients[process(3)].standby == (task("0_0"),)
    assert decision.clients[process(3)].warmup == ()


def test_an_assignor_that_is_not_known_is_refused_by_name() -> None:
    data = described(client(), stateful=("0_0",))
    known = "'mine' is not among fallback_prior, high_availability, minimal_movement, public_sticky"
    with pytest.raises(ScenarioError, match=known) as raised:
        decide(parse_scenario({**data, "assignor": "mine"}))
    assert raised.value.code == "unsupported"


@settings(max_examples=daily(20, 40), deadline=None, print_blob=True)
@given(
    clients=st.integers(1, 7),
    tasks=st.integers(0, 15),
    stateless=st.integers(0, 5),
    standbys=st.integers(0, 2),
    warmups=st.integers(1, 4),
    changes=st.lists(st.sampled_from([-1, 1]), max_size=3),
)
def test_each_decision_is_valid_and_probing_ends_after_any_change(
    clients: int, tasks: int, stateless: int, standbys: int, warmups: int, changes: list[int]
) -> None:
    stateful = tuple(f"0_{partition}" for partition in range(tasks))
    others = tuple(f"1_{partition}" for partition in range(stateless))
    had: dict[int, tuple[set[TaskId], set[TaskId]]] = {n: (set(), set()) for n in range(clients)}
    for change in [0, *changes]:
        if change > 0:
            had[max(had) + 1] = (set(), set())
        elif change < 0 and len(had) > 1:
            del had[min(had)]
        for _round in range(2 * (tasks + tasks * standbys) + 2):
            described_clients = {str(process(n)): _after(n, had, stateful) for n in had}
            data = described(
                stateful=stateful, stateless=others, standbys=standbys, warmups=warmups
            )
            decision = decide(parse_scenario({**data, "clients": described_clients}))
            _assert_valid(decision, stateful + others, standbys, warmups, tasks, len(had))
            had = {
                n: (
                    set(decision.clients[process(n)].active),
                    set(decision.clients[process(n)].standby),
                )
                for n in had
            }
            if not decision.probing_rebalance_needed:
                break
        else:
            pytest.fail("probing rebalances never end")


def _after(
    number: int, had: dict[int, tuple[set[TaskId], set[TaskId]]], stateful: tuple[str, ...]
) -> dict[str, Any]:
    """Return a client in the next round: whatever it had a copy of is caught up by then."""
    active, standby = had[number]
    lags = dict.fromkeys(stateful, 100_000) | {str(t): 0 for t in standby}
    lags |= {str(t): -2 for t in active if str(t) in lags}
    return {
        "capacity": 1 + number % 3,
        "previous_active": [str(t) for t in active],
        "previous_standby": [str(t) for t in standby],
        "lags": lags,
    }


def _assert_valid(
    decision: Decision, tasks: tuple[str, ...], standbys: int, warmups: int, stateful: int, n: int
) -> None:
    actives = [t for c in decision.clients.values() for t in c.active]
    assert sorted(map(str, actives)) == sorted(tasks)
    copies = 0
    for given_to in decision.clients.values():
        assert not set(given_to.active) & set(given_to.standby)
        assert set(given_to.warmup) <= set(given_to.standby)
        copies += len(given_to.standby)
    assert copies <= stateful * min(standbys, n - 1) + warmups
    assert sum(len(c.warmup) for c in decision.clients.values()) <= warmups

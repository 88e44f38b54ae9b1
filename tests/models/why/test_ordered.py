"""Which link comes first: what explains the others, then what holds back more of the lag."""

from __future__ import annotations

import itertools
import random

import pytest

from caughtup.models.rebalances.rebalance import SURENESS, Sureness
from caughtup.models.why.explain import ordered
from caughtup.models.why.links import Kind, Link
from tests.models.why.scenes import NOW_MS, ONE, asked, held_back, kinds, link_of, scene
from tests.models.why.test_kinds import moving, rebalanced
from tests.support.states import open_transaction


def a_link(kind: Kind, lag: int = 0, sure: Sureness = "certain") -> Link:
    return Link(kind=kind, sure=sure, text=f"{kind} {lag}", evidence=[], lag=lag)


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("open_transaction", "slow_consumer"),
        ("no_leader", "slow_consumer"),
        ("rebalance_storm", "no_progress"),
        ("poll_interval_exceeded", "rebalance_storm"),
        ("broker_gone", "no_leader"),
        ("recent_rebalance", "no_members"),
        ("no_members", "partition_without_member"),
        ("connect_task_failed", "no_members"),
        ("hot_partition", "slow_consumer"),
        ("slow_consumer", "retention_ahead"),
    ],
)
def test_what_explains_another_comes_first_whatever_they_hold_back(first: Kind, then: Kind) -> None:
    found = ordered([a_link(then, 1_000), a_link(first, 1)])
    assert [link.kind for link in found] == [first, then]


def test_partitions_that_wait_behind_a_hot_one_come_after_it() -> None:
    standing, hot = a_link("no_progress", 100), a_link("hot_partition", 900)
    assert ordered([standing, hot]) == [hot, standing]
    with_it = a_link("no_progress", 1_000)
    assert ordered([hot, with_it, a_link("slow_consumer", 1_000)])[:2] == [with_it, hot]


def test_of_two_causes_the_one_that_holds_back_more_comes_first() -> None:
    more, less = a_link("open_transaction", 900), a_link("no_members", 100)
    assert ordered([less, more]) == [more, less]
    assert ordered([a_link("no_members", 1_000), more])[0].kind == "no_members"


def test_what_is_only_possible_explains_nothing() -> None:
    possible, sure = a_link("broker_gone", 0, "possible"), a_link("slow_consumer", 5)
    assert ordered([possible, sure]) == [sure, possible]


def test_a_late_poll_comes_first_even_if_its_times_fit_another_timeout_too() -> None:
    late = a_link("poll_interval_exceeded", 0, "possible")
    assert ordered([a_link("no_progress", 9), late])[0] is late


def test_two_causes_at_once_are_both_there() -> None:
    state = scene({0: 10, 1: 10}, until=60)
    rebalanced(state, 2_000, times=5)
    held_back(state, ONE, offsets=5_000)
    state.transactions.apply([open_transaction("payments-1", [ONE])], NOW_MS)
    moving(state, leader=None, leader_epoch=3, isr=())
    found = asked(state)
    at = {kind: kinds(found).index(kind) for kind in kinds(found)}
    assert {"no_leader", "rebalance_storm", "no_progress", "open_transaction"} <= at.keys()
    assert max(at["no_leader"], at["rebalance_storm"]) < at["no_progress"]
    first, second = link_of(found, "rebalance_storm"), link_of(found, "no_leader")
    assert isinstance(first.lag, int)
    assert isinstance(second.lag, int)
    assert first.lag > second.lag
    assert at["rebalance_storm"] < at["no_leader"]


def test_any_links_can_be_ordered_and_none_is_lost() -> None:
    seed = random.randrange(2**32)
    print("seed", seed)
    drawn = random.Random(seed)
    kinds_of_all = Kind.__args__  # type: ignore[attr-defined]
    for _ in range(300):
        links = [
            a_link(drawn.choice(kinds_of_all), drawn.randrange(3), drawn.choice(SURENESS))
            for _ in range(drawn.randrange(12))
        ]
        found = ordered(links)
        assert sorted(map(id, found)) == sorted(map(id, links))


def test_the_order_does_not_depend_on_the_order_of_finding() -> None:
    links = [
        a_link("slow_consumer", 7),
        a_link("open_transaction", 3, "likely"),
        a_link("broker_gone", 0, "possible"),
        a_link("rebalance_storm", 9, "likely"),
    ]
    every = {
        tuple(one.kind for one in ordered(list(some))) for some in itertools.permutations(links)
    }
    assert every == {("rebalance_storm", "open_transaction", "slow_consumer", "broker_gone")}

"""Which rebalances were probes, and which of them were needless, read from the wire."""

from __future__ import annotations

from dataclasses import replace

import pytest

from caughtup.models.copies.probing_history import PROBES_IN_VAIN, PROBES_KEPT, Probe
from tests.support.groups.records import START_MS
from tests.support.groups.streams import HANDED_OVER, RUNNING, WARMING, Member
from tests.support.simulation.warmups import WARMUP, Service

INTERVAL_MS = 600_000


def warming(round_: int, offset_sum: int | None = None) -> tuple[Member, Member]:
    """The warm-up is at an offset sum, and is observed again an interval later."""
    leader = replace(WARMING[0], probe_at_ms=START_MS + (round_ + 1) * INTERVAL_MS)
    sums = {} if offset_sum is None else {"0_1": offset_sum}
    return leader, replace(WARMING[1], sums=sums)


def probe(service: Service, round_: int, *members: Member) -> None:
    """The members rebalance when their time comes."""
    service.rebalance(*members, at_ms=START_MS + round_ * INTERVAL_MS + 500)


def test_a_probe_that_promotes_a_warm_up_was_worth_it() -> None:
    service = Service()
    service.rebalance(*warming(0))
    probe(service, 1, *HANDED_OVER)
    assert list(service.probing.probes) == [
        Probe(2, START_MS + INTERVAL_MS + 500, (WARMUP,), nearer=True)
    ]
    assert (service.probing.fired, service.probing.needless) == (1, 0)


def test_a_probe_that_finds_a_warm_up_nearer_but_not_there_was_needless_and_not_in_vain() -> None:
    service = Service()
    service.rebalance(*warming(0))
    probe(service, 1, *warming(1, 20_000))
    assert list(service.probing.probes) == [Probe(2, START_MS + INTERVAL_MS + 500, (), nearer=True)]
    assert (service.probing.needless, service.probing.in_vain) == (1, 0)


def test_probes_that_find_no_warm_up_nearer_are_endless_after_three() -> None:
    service = Service()
    service.rebalance(*warming(0))
    for round_ in range(1, PROBES_IN_VAIN + 1):
        assert not service.probing.endless
        probe(service, round_, *warming(round_))
    assert service.probing.endless
    assert (service.probing.fired, service.probing.needless) == (3, 3)
    probe(service, 4, *warming(4, 1_000))
    assert not service.probing.endless


def test_a_probe_is_no_judge_of_lags_that_are_not_known() -> None:
    service = Service()
    service.rebalance(*warming(0))
    probe(service, 1, *warming(1, -3))
    (probed,) = service.probing.probes
    assert probed.nearer is None
    assert not probed.needless
    assert (service.probing.fired, service.probing.needless) == (1, 0)


def test_a_rebalance_of_other_members_is_no_probe() -> None:
    service = Service()
    service.rebalance(*warming(0))
    probe(service, 1, *warming(1), Member("c", 3))
    assert service.probing.fired == 0


def test_a_rebalance_before_its_time_is_no_probe_but_clocks_may_differ() -> None:
    early, nearly = Service(), Service()
    for service, before_ms in ((early, 10_001), (nearly, 10_000)):
        service.rebalance(*warming(0))
        service.rebalance(*warming(1), at_ms=START_MS + INTERVAL_MS - before_ms)
    assert (early.probing.fired, nearly.probing.fired) == (0, 1)


@pytest.mark.parametrize("probe_at_ms", [None, 0])
def test_what_follows_at_once_or_was_not_scheduled_is_no_probe(probe_at_ms: int | None) -> None:
    service = Service()
    service.rebalance(replace(WARMING[0], probe_at_ms=probe_at_ms), WARMING[1])
    probe(service, 1, *warming(1))
    assert service.probing.fired == 0


def test_a_generation_that_was_missed_leaves_nothing_to_compare_with() -> None:
    service = Service()
    service.rebalance(*warming(0))
    service.number += 1
    probe(service, 1, *warming(1))
    assert service.probing.fired == 0


def test_a_generation_told_twice_counts_once() -> None:
    service = Service()
    service.rebalance(*warming(0))
    probe(service, 1, *warming(1))
    service.refresh()
    assert service.probing.fired == 1


def test_a_new_member_ends_a_row_of_probes_in_vain() -> None:
    service = Service()
    service.rebalance(*warming(0))
    for round_ in (1, 2):
        probe(service, round_, *warming(round_))
    assert service.probing.in_vain == 2
    probe(service, 3, *warming(3), Member("c", 3))
    assert service.probing.in_vain == 0


def test_the_time_of_the_next_rebalance_is_the_wires() -> None:
    service = Service()
    assert service.probing.due_ms is None
    service.rebalance(*warming(0))
    assert service.probing.due_ms == START_MS + INTERVAL_MS
    probe(service, 1, *HANDED_OVER)
    assert service.probing.due_ms is None


def test_a_probe_without_any_warm_up_is_needless_and_in_vain() -> None:
    service = Service()
    alone = Member("a", 1, ("0_0",), {"0_0": RUNNING}, ("0_0",))
    service.rebalance(replace(alone, probe_at_ms=START_MS + INTERVAL_MS))
    probe(service, 1, alone)
    assert (service.probing.needless, service.probing.in_vain) == (1, 1)


def test_the_probes_that_are_kept_are_bounded_and_the_counts_are_not() -> None:
    service = Service()
    service.rebalance(*warming(0))
    for round_ in range(1, PROBES_KEPT + 11):
        probe(service, round_, *warming(round_))
    assert len(service.probing.probes) == PROBES_KEPT
    assert service.probing.fired == PROBES_KEPT + 10

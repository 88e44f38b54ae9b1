"""Whether a probing rebalance is worth it, when, and how long a plan takes."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caughtup.models.copies.probing import (
    PROBES_IN_VAIN,
    PROBES_KEPT,
    Probe,
    Probing,
    assess_probing,
)
from tests.support.groups.records import START_MS
from tests.support.groups.streams import HANDED_OVER, RUNNING, WARMING, Member
from tests.support.simulation.probed import SECOND, assess, scheduled, warmup
from tests.support.simulation.warmups import WARMUP, Service
from tests.support.states import TOLD

INTERVAL_MS = 600_000


def test_a_warm_up_that_is_caught_up_makes_a_probe_worth_it_now() -> None:
    probing = assess(warmup(1, "caught_up", eta=0, caught_up=60), warmup(2, "stalled"), second=61)
    assert probing.worthwhile_now
    assert probing.worthwhile_at_ms == START_MS + 60 * SECOND
    assert probing.reason == (
        "1 of 2 warm-ups (0_1) caught up; a rebalance would promote it; "
        "the next rebalance is due in 9 min"
    )


def test_otherwise_a_probe_is_worth_it_when_the_first_warm_up_gets_there() -> None:
    probing = assess(warmup(1, eta=300), warmup(2, eta=40), second=60)
    assert not probing.worthwhile_now
    assert probing.worthwhile_at_ms == START_MS + 100 * SECOND
    assert probing.reason == (
        "1 of 2 warm-ups (0_2) caught up in 40 s; the next rebalance is due in 9 min"
    )


def test_a_probe_waits_for_another_warm_up_that_comes_soon_after_the_first() -> None:
    probing = assess(warmup(1, eta=60), warmup(2, eta=40), second=60)
    assert probing.worthwhile_at_ms == START_MS + 120 * SECOND
    assert probing.reason.startswith("2 of 2 warm-ups (0_1, 0_2) caught up in 60 s")
    later = assess(warmup(1, eta=66), warmup(2, eta=40), second=60)
    assert later.worthwhile_at_ms == START_MS + 100 * SECOND


def test_warm_ups_are_named_in_the_order_of_their_tasks() -> None:
    probing = assess(warmup(10, eta=40), warmup(2, eta=60), second=60)
    assert probing.reason.startswith("2 of 2 warm-ups (0_2, 0_10) caught up in 60 s")


def test_a_probe_that_would_promote_nothing_is_not_worth_it_at_any_time() -> None:
    probing = assess(warmup(1, "chasing", eta=math.inf), warmup(2, "stalled", eta=5))
    assert (probing.worthwhile_now, probing.worthwhile_at_ms) == (False, None)
    assert probing.reason == (
        "no warm-up is known to catch up: 0_1 chasing, 0_2 stalled; the next rebalance is due in 10 min"
    )


def test_standbys_have_no_say_in_it() -> None:
    probing = assess(warmup(1, "caught_up", caught_up=0, is_warmup=False))
    assert (probing.needed, probing.worthwhile_now) == (True, False)
    assert probing.reason == ("there is no warm-up to promote; the next rebalance is due in 10 min")


def test_without_warm_up_and_schedule_no_probe_is_needed() -> None:
    probing = assess(history=scheduled(None))
    assert (probing.needed, probing.due_ms, probing.overdue_ms) == (False, None, None)
    assert probing.reason == "there is no warm-up, and no rebalance is scheduled"
    assert probing.plan_seconds == 0
    assert probing.plan_seconds_worthwhile == 0


def test_a_rebalance_is_overdue_a_minute_after_its_time() -> None:
    assert assess(second=660).overdue_ms is None
    overdue = assess(warmup(1, "stranded", caught_up=100, eta=0), second=661)
    assert overdue.overdue_ms == 61 * SECOND
    assert overdue.reason.endswith("the next rebalance was due 61 s ago")


def test_probes_that_lead_nowhere_are_named() -> None:
    history = scheduled()
    history.in_vain = 4
    probing = assess(warmup(1, "chasing"), history=history)
    assert probing.endless
    assert probing.reason.endswith("no warm-up's lag had fallen at the last 4 probing rebalances")


@settings(print_blob=True, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["warming", "caught_up", "chasing", "stalled", "unknown", "waiting"]),
            st.floats(0, 1e5) | st.none() | st.just(math.inf),
        ),
        max_size=8,
    ),
    st.integers(0, 10_000),
)
def test_a_probe_is_worth_it_only_when_a_warm_up_gets_there(
    warmups: list[tuple[str, float | None]], second: int
) -> None:
    copies = [
        warmup(index, verdict, eta=eta, caught_up=second if verdict == "caught_up" else None)
        for index, (verdict, eta) in enumerate(warmups)
    ]
    probing = assess(*copies, second=second)
    arrivals = [
        0.0 if verdict == "caught_up" else eta
        for verdict, eta in warmups
        if verdict == "caught_up" or (verdict == "warming" and eta not in (None, math.inf))
    ]
    assert (probing.worthwhile_at_ms is None) == (not arrivals)
    if probing.worthwhile_at_ms is not None:
        first = min(arrival for arrival in arrivals if arrival is not None)
        wait = (probing.worthwhile_at_ms - START_MS) / SECOND - second
        assert first - 0.01 <= wait <= first + 0.25 * (second + first) + 0.01
        assert probing.worthwhile_now == (probing.worthwhile_at_ms <= START_MS + second * SECOND)


def test_an_application_from_the_wire_is_told_when_to_rebalance() -> None:
    """An instance joins; its warm-up restores 1,000 offsets a second and has 40,000 to go."""
    service = Service()
    leader = replace(WARMING[0], probe_at_ms=START_MS + INTERVAL_MS)
    service.rebalance(leader, WARMING[1])

    def probing(second: float) -> Probing:
        copies = service.assess(second).values()
        return assess_probing(
            service.probing,
            copies,
            TOLD,
            START_MS + round(second * SECOND),
            (50_000,),
            service.table.paces,
        )

    early = probing(1)
    assert (early.worthwhile_at_ms, early.plan_seconds_worthwhile) == (None, None)
    for second in range(5, 45, 5):
        service.see(1_000 * second, second)
    later = probing(40)
    assert later.worthwhile_now
    assert later.due_ms == START_MS + INTERVAL_MS
    assert later.plan_seconds == 600
    assert later.plan_seconds_worthwhile == 40
    service.rebalance(*HANDED_OVER, at_ms=START_MS + 41 * SECOND)
    done = probing(45)
    assert (done.needed, done.fired, done.due_ms) == (False, 0, None)


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

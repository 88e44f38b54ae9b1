"""Whether a probing rebalance is worth it, when, and how long a plan takes."""

from __future__ import annotations

import math
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from caughtup.models.copies.probing import Probing, assess_probing
from tests.support.groups.records import START_MS
from tests.support.groups.streams import HANDED_OVER, WARMING
from tests.support.simulation.probed import SECOND, assess, scheduled, warmup
from tests.support.simulation.warmups import Service
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
    assert probing.reason.endswith("the last 4 probes found no warm-up nearer")


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

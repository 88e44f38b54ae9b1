"""Verdicts on reassignments, each from observations that a person can follow."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from caughtup.models.reassignments import verdict as reassignment_verdict
from caughtup.models.records.reassignments import ReassignmentRecord
from caughtup.models.verdicts import REASSIGNMENTS
from tests.support.reassignments.one_reassignment import (
    BYTES,
    CLUSTER,
    HEAD,
    PACE,
    an_observation,
    copying,
    judged,
    observations,
    throttled,
)


def test_nothing_is_said_from_fewer_than_three_observations() -> None:
    for count in (1, 2):
        verdict, _ = judged(
            observations(count, lambda step: an_observation(step, {4: 0, 5: 0}, offline=(5,)))
        )
        assert (verdict.verdict, verdict.cause, verdict.advice) == ("measuring", None, None)


def test_copies_that_grow_are_moving_with_an_eta() -> None:
    verdict, figures = judged(
        observations(11, lambda step: an_observation(step, dict.fromkeys((4, 5), copying(step))))
    )
    assert verdict.verdict == "moving"
    assert verdict.cause is None
    assert verdict.evidence["waits_for"] == [4, 5]
    assert figures.offsets_remaining == HEAD - 10 * PACE
    assert figures.bytes_remaining == 2 * (HEAD - 10 * PACE) * BYTES
    assert figures.rate_offsets == pytest.approx(PACE / 10)
    assert figures.rate_bytes == pytest.approx(2 * PACE / 10 * BYTES)
    assert figures.eta is not None
    assert figures.eta.seconds == pytest.approx(400)
    assert figures.age_seconds == 100
    assert figures.idle_seconds == 0


def test_what_the_leader_gets_meanwhile_counts() -> None:
    def at(step: int) -> ReassignmentRecord:
        head = HEAD + step * PACE // 2
        return an_observation(step, dict.fromkeys((4, 5), copying(step)), head=head)

    _, figures = judged([at(step) for step in range(11)])
    assert figures.eta is not None
    assert figures.eta.seconds == pytest.approx((HEAD - 10 * PACE // 2) / (PACE / 10 / 2))


def test_a_copy_that_never_moved_is_measured_until_it_is_overdue() -> None:
    def at(count: int) -> str:
        return judged(observations(count, lambda step: an_observation(step, {4: 5, 5: 5})))[
            0
        ].verdict

    assert at(6) == "measuring"
    assert at(7) == "stalled"


def test_a_controller_that_does_not_complete_it_is_named_after_half_a_minute() -> None:
    def at(step: int) -> ReassignmentRecord:
        return an_observation(step, {}, isr=(1, 2, 3, 4, 5))

    assert judged([at(step) for step in range(3)])[0].verdict == "completing"
    verdict, _ = judged([at(step) for step in range(5)])
    assert (verdict.verdict, verdict.cause) == ("stalled", "controller-slow")


def test_another_controller_gets_a_minute_but_takes_nothing_back() -> None:
    seen = observations(5, lambda step: an_observation(step, {}, isr=(1, 2, 3, 4, 5)))
    verdict, _ = judged(seen, quorum_changed_ms=20_000)
    assert (verdict.verdict, verdict.cause) == ("completing", "controller-failover")
    stopped = observations(
        12, lambda step: an_observation(step, {4: copying(step), 5: copying(min(step, 3))})
    )
    assert judged(stopped, quorum_changed_ms=100_000)[0].verdict == "stalled"
    assert judged(stopped, quorum_changed_ms=80_000)[0].verdict == "moving"


def test_without_a_leader_there_is_no_source() -> None:
    seen = observations(9, lambda step: an_observation(step, {4: 5, 5: 5}, isr=(1,), leader=None))
    assert judged(seen[:6])[0].verdict == "measuring"
    verdict, _ = judged(seen)
    assert (verdict.verdict, verdict.cause) == ("no source", "leader-missing")
    assert "an in-sync replica: 1;" in (verdict.advice or "")


@pytest.mark.parametrize(
    ("growth", "rate", "cause"),
    [(0, None, "copy-slow"), (PACE * 3 // 5, None, "write-rate"), (0, 400_000, "throttle-slow")],
)
def test_a_move_that_takes_longer_than_it_may_is_slow(
    growth: int, rate: int | None, cause: str
) -> None:
    cluster = CLUSTER if rate is None else throttled(rate)
    seen = observations(
        15, lambda s: an_observation(s, dict.fromkeys((4, 5), copying(s)), head=HEAD + growth * s)
    )
    assert judged(seen, cluster, budget_seconds=3600)[0].verdict == "moving"
    verdict, _ = judged(seen, cluster, budget_seconds=60)
    assert (verdict.verdict, verdict.cause) == ("slow", cause)
    assert verdict.advice


def test_a_move_that_nobody_observes_any_more_is_unknown() -> None:
    seen = observations(9, lambda step: an_observation(step, dict.fromkeys((4, 5), copying(step))))
    verdict, _ = judged(seen, later_ms=90_000)
    assert (verdict.verdict, verdict.cause) == ("unknown", "not-looked-at")
    assert judged(seen, later_ms=20_000)[0].verdict == "moving"


def test_a_replica_that_nobody_tells_of_is_unknown_and_makes_nothing_stalled() -> None:
    seen = observations(20, lambda step: an_observation(step, {}, unanswered=(4, 5)))
    verdict, figures = judged(seen)
    assert (verdict.verdict, verdict.cause) == ("unknown", "replica-unanswered")
    assert figures.offsets_remaining is None
    assert figures.eta is None


def test_an_older_end_of_the_leader_still_proves_that_a_copy_stands() -> None:
    def at(step: int) -> ReassignmentRecord:
        observation = an_observation(step, {4: 9, 5: 9})
        ends = {b: end for b, end in observation.log_ends.items() if b != 1 or step < 2}
        return replace(observation, log_ends=ends, sizes={})

    verdict, figures = judged([at(step) for step in range(9)])
    assert verdict.verdict == "stalled"
    assert figures.offsets_remaining is None


def test_without_an_observation_at_the_cluster_verdicts_rest_on_the_partition() -> None:
    seen = observations(
        9, lambda step: an_observation(step, {4: copying(step)}, offline=(5,), unanswered=(5,))
    )
    verdict, _ = judged(seen, None)
    assert (verdict.verdict, verdict.cause) == ("dead target", "destination-broker-down")


def test_without_replicas_nothing_is_known() -> None:
    empty = observations(
        5, lambda step: replace(an_observation(step, {}), replicas=(), adding=(), removing=())
    )
    assert judged(empty)[0].verdict == "unknown"


def test_the_table_of_rules_names_every_verdict() -> None:
    rules = (reassignment_verdict.__doc__ or "").split("=============  ")[1].splitlines()[1:]
    assert {line[:13].strip() for line in rules} - {""} == set(REASSIGNMENTS.words)


def test_a_verdict_can_be_written_as_json() -> None:
    verdict, _ = judged(observations(9, lambda step: an_observation(step, {4: 9, 5: 9})))
    assert json.loads(json.dumps(verdict.evidence, allow_nan=False)) == verdict.evidence

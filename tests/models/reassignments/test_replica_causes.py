"""Why a copy isn't in sync: each cause from observations that a person can follow."""

from __future__ import annotations

import math

import pytest
from msgspec.structs import replace

from caughtup.models.records.reassignments import (
    BrokerRecord,
    ReassignmentRecord,
    ThrottleRecord,
)
from tests.support.reassignments.one_reassignment import (
    BROKERS,
    CLUSTER,
    HEAD,
    PACE,
    an_observation,
    copying,
    judged,
    observations,
    throttled,
)


def test_a_copy_that_stops_is_stalled_after_a_minute() -> None:
    def at(step: int, stops: int = 5) -> ReassignmentRecord:
        return an_observation(step, {4: copying(step), 5: copying(min(step, stops))})

    verdict, figures = judged([at(step) for step in range(11)])
    assert verdict.verdict == "moving"
    verdict, figures = judged([at(step) for step in range(12)])
    assert (verdict.verdict, verdict.cause) == ("stalled", "copy-stopped")
    assert verdict.evidence["replica"] == 5
    assert verdict.evidence["stood_seconds"] == 60
    assert "brokers 5 and 1" in (verdict.advice or "")
    assert figures.eta is not None
    assert math.isinf(figures.eta.seconds)
    assert math.isfinite((figures.replicas[4].eta or figures.eta).seconds)


@pytest.mark.parametrize("missing", ["throttles of topics: missing", "throttles of broker 5: gone"])
def test_where_throttles_are_not_known_a_copy_may_stand_for_five_minutes(missing: str) -> None:
    cluster = replace(CLUSTER, missing=(missing,))
    seen = observations(
        34, lambda step: an_observation(step, {4: copying(step), 5: copying(min(step, 3))})
    )
    assert judged(seen[:-1], cluster)[0].verdict == "moving"
    assert judged(seen, cluster)[0].verdict == "stalled"
    others = replace(CLUSTER, missing=("throttles of broker 55: gone", "sizes on broker 5: gone"))
    assert judged(seen[:-1], others)[0].verdict == "stalled"


def test_a_full_disk_is_named() -> None:
    brokers = BROKERS | {5: BrokerRecord(fenced=False, usable_bytes=4096)}
    verdict, _ = judged(
        observations(8, lambda step: an_observation(step, {4: copying(step), 5: 9})),
        replace(CLUSTER, brokers=brokers),
    )
    assert (verdict.verdict, verdict.cause) == ("stalled", "disk-full")
    assert "broker 5 (4.1 kB left)" in (verdict.advice or "")


def test_a_replica_that_is_never_created_is_named() -> None:
    verdict, _ = judged(
        observations(8, lambda step: an_observation(step, {4: copying(step)}, not_hosted=(5,)))
    )
    assert (verdict.verdict, verdict.cause) == ("stalled", "replica-not-created")


@pytest.mark.parametrize(
    ("brokers", "cause"),
    [
        (BROKERS | {5: BrokerRecord(fenced=True)}, "destination-broker-down"),
        (
            {one: observation for one, observation in BROKERS.items() if one != 5},
            "destination-broker-down",
        ),
        (
            BROKERS | {5: BrokerRecord(fenced=False, offline_directories=("/data",))},
            "directory-offline",
        ),
    ],
)
def test_a_destination_that_is_away_is_told_at_once_and_is_a_dead_target_after_a_minute(
    brokers: dict[int, BrokerRecord], cause: str
) -> None:
    def at(step: int) -> ReassignmentRecord:
        if step < 4:
            return an_observation(step, {4: copying(step), 5: copying(step)})
        return an_observation(step, {4: copying(step)}, offline=(5,), unanswered=(5,))

    cluster = replace(CLUSTER, brokers=brokers)
    verdict, _ = judged([at(step) for step in range(10)], cluster)
    assert (verdict.verdict, verdict.cause) == ("moving", cause)
    verdict, figures = judged([at(step) for step in range(11)], cluster)
    assert (verdict.verdict, verdict.cause) == ("dead target", cause)
    assert verdict.evidence["away_seconds"] == 60
    assert "broker 5" in (verdict.advice or "")
    assert figures.eta is not None
    assert math.isinf(figures.eta.seconds)


def test_a_destination_that_was_away_whenever_it_was_observed_is_not_called_moving() -> None:
    gone = replace(CLUSTER, brokers=BROKERS | {5: BrokerRecord(fenced=True)})

    def at(step: int, copies: dict[int, int], isr: tuple[int, ...]) -> ReassignmentRecord:
        return an_observation(step, copies, isr=isr, offline=(5,), unanswered=(5,))

    alone = [at(step, {}, (1, 2, 3, 4)) for step in range(7)]
    verdict, _ = judged(alone[:3], gone)
    assert (verdict.verdict, verdict.cause) == ("measuring", "destination-broker-down")
    assert "start broker 5" in (verdict.advice or "")
    assert judged(alone, gone)[0].verdict == "dead target"
    # Another copy moves: so does the partition, and the cause is named all the same.
    verdict, _ = judged([at(step, {4: copying(step)}, (1, 2, 3)) for step in range(3)], gone)
    assert (verdict.verdict, verdict.cause) == ("moving", "destination-broker-down")


def test_a_fenced_destination_is_dead_though_it_copies() -> None:
    fenced = replace(CLUSTER, brokers=BROKERS | {5: BrokerRecord(fenced=True)})
    seen = observations(
        8, lambda step: an_observation(step, dict.fromkeys((4, 5), copying(step)), offline=(5,))
    )
    verdict, _ = judged(seen, fenced)
    assert (verdict.verdict, verdict.cause) == ("dead target", "destination-broker-fenced")


def test_a_broker_that_only_older_metadata_calls_offline_is_not_dead_while_it_copies() -> None:
    seen = observations(
        12, lambda step: an_observation(step, dict.fromkeys((4, 5), copying(step)), offline=(5,))
    )
    verdict, _ = judged(seen)
    assert (verdict.verdict, verdict.cause) == ("moving", None)


def test_a_replica_that_stays_and_is_down_blocks_where_the_release_waits_for_it() -> None:
    old = replace(CLUSTER, software=(4, 1))

    def at(step: int) -> ReassignmentRecord:
        isr = (1, 3) if copying(step) < HEAD else (1, 3, 4, 5)
        copies = {} if 4 in isr else dict.fromkeys((4, 5), copying(step))
        return an_observation(step, copies, isr=isr, offline=(2,), unanswered=(2,))

    verdict, _ = judged([at(step) for step in range(20)], old)
    assert (verdict.verdict, verdict.cause) == ("moving", "retained-replica-down")
    verdict, _ = judged([at(step) for step in range(60)], old)
    assert (verdict.verdict, verdict.cause) == ("blocked", "retained-replica-down")
    assert "start broker 2" in (verdict.advice or "")
    verdict, _ = judged([at(step) for step in range(51)])
    assert verdict.verdict == "completing"


def test_a_removal_waits_for_the_replica_that_stays() -> None:
    def at(step: int) -> ReassignmentRecord:
        observation = an_observation(step, {2: 5 if step > 3 else 4}, isr=(1, 3))
        return replace(observation, replicas=(2, 3, 1), adding=(), removing=(1,))

    verdict, _ = judged([at(step) for step in range(12)], replace(CLUSTER, software=(4, 1)))
    assert (verdict.verdict, verdict.cause) == ("blocked", "removal-blocked")


def test_copies_at_the_end_are_the_tail_and_blocked_when_they_stay_out() -> None:
    full = dict.fromkeys((4, 5), HEAD)
    assert judged(observations(3, lambda step: an_observation(step, full)))[0].verdict == "tail"
    verdict, _ = judged(observations(5, lambda step: an_observation(step, full)))
    assert (verdict.verdict, verdict.cause) == ("blocked", "cannot-join-isr")


def test_writes_that_use_the_throttle_up_throttle_a_move_out() -> None:
    def at(step: int) -> ReassignmentRecord:  # 2 followers in sync x 1,000 offsets/s x 100 bytes
        return an_observation(step, {4: 9, 5: 9}, head=HEAD + 10_000 * step)

    cluster = throttled(200_000)
    verdict, _ = judged([at(step) for step in range(8)], cluster)
    assert (verdict.verdict, verdict.cause) == ("throttled out", "throttle-starved")
    assert verdict.evidence["in_sync_bytes_per_second"] == 200_000
    assert "--entity-name 1 --alter --add-config leader.replication" in (verdict.advice or "")
    cluster = throttled(300_000)
    verdict, _ = judged([at(step) for step in range(8)], cluster)
    assert verdict.verdict == "measuring"


def test_a_throttled_copy_may_stand_for_its_share() -> None:
    def at(step: int) -> ReassignmentRecord:
        return an_observation(step, dict.fromkeys((4, 5), 10_000 * (step // 7)))

    alone = judged([at(step) for step in range(28)])[0]
    assert alone.verdict == "stalled"
    verdict, _ = judged([at(step) for step in range(28)], throttled(300_000))
    assert verdict.verdict == "moving"


def test_a_throttle_that_lists_other_replicas_changes_nothing() -> None:
    seen = observations(
        12, lambda step: an_observation(step, dict.fromkeys((4, 5), copying(min(step, 3))))
    )
    cluster = throttled(100_000, ThrottleRecord("1:1", "none"))
    verdict, _ = judged(seen, cluster)
    assert (verdict.verdict, verdict.cause) == ("stalled", "copy-stopped")


def test_a_copy_that_gets_less_than_its_leader_diverges() -> None:
    seen = observations(
        20, lambda s: an_observation(s, dict.fromkeys((4, 5), copying(s)), head=HEAD + 2 * PACE * s)
    )
    assert judged(seen[:9])[0].verdict == "moving"
    verdict, figures = judged(seen)
    assert (verdict.verdict, verdict.cause) == ("diverging", "leader-outruns-copy")
    assert figures.eta is not None
    assert math.isinf(figures.eta.seconds)


def test_a_copy_that_is_lost_again_and_again_is_a_restart_loop() -> None:
    seen = observations(16, lambda s: an_observation(s, {4: copying(s), 5: PACE * (s % 3)}))
    verdict, _ = judged(seen)
    assert (verdict.verdict, verdict.cause) == ("stalled", "restart-loop")


def test_one_truncation_is_no_loop() -> None:
    seen = observations(
        16, lambda s: an_observation(s, {4: copying(s), 5: copying(s if s < 6 else s - 3)})
    )
    assert judged(seen)[0].verdict == "moving"


def test_a_broker_in_both_lists_blocks() -> None:
    def at(step: int) -> ReassignmentRecord:
        observation = an_observation(step, {4: 5, 5: 5})
        return replace(observation, replicas=(1, 2, 3, 4, 5), removing=(4, 5))

    verdict, _ = judged([at(step) for step in range(4)])
    assert (verdict.verdict, verdict.cause) == ("blocked", "in-both-lists")


def test_where_cancelling_would_not_bring_the_original_back_the_advice_says_so() -> None:
    def at(step: int) -> ReassignmentRecord:
        observation = an_observation(step, {4: 5, 5: 5, 6: 5})
        if step < 2:
            return observation
        return replace(observation, replicas=(2, 6, 1, 3, 4, 5), adding=(6,), removing=(1, 3, 4, 5))

    verdict, _ = judged([at(step) for step in range(12)])
    assert "leaves it on brokers 2, 1, 3, 4, 5, not on 2, 1, 3 as before" in (verdict.advice or "")
    verdict, _ = judged(observations(12, lambda step: an_observation(step, {4: 5, 5: 5})))
    assert "cancel it" in (verdict.advice or "")
    assert "leaves" not in (verdict.advice or "")

"""Verdicts on movements, each from looks that a person can follow."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from caughtup.models.reassignment_look import (
    BrokerLook,
    ClusterLook,
    PartitionLook,
    TopicThrottle,
)
from caughtup.models.reassignment_verdict import VERDICTS
from tests.support.movements import (
    BROKERS,
    BYTES,
    CLUSTER,
    HEAD,
    PARTITION,
    a_look,
    judged,
    looks,
)

#: A copy of 20,000 offsets a look: 50 of them for all.
PACE = 20_000


def copying(step: int) -> int:
    return min(HEAD, PACE * step)


def test_nothing_is_said_from_fewer_than_three_looks() -> None:
    for count in (1, 2):
        verdict, _ = judged(looks(count, lambda step: a_look(step, {4: 0, 5: 0}, offline=(5,))))
        assert (verdict.verdict, verdict.cause, verdict.advice) == ("measuring", None, None)


def test_copies_that_grow_are_moving_with_an_eta() -> None:
    verdict, figures = judged(
        looks(11, lambda step: a_look(step, dict.fromkeys((4, 5), copying(step))))
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
    def at(step: int) -> PartitionLook:
        head = HEAD + step * PACE // 2
        return a_look(step, dict.fromkeys((4, 5), copying(step)), head=head)

    _, figures = judged([at(step) for step in range(11)])
    assert figures.eta is not None
    assert figures.eta.seconds == pytest.approx((HEAD - 10 * PACE // 2) / (PACE / 10 / 2))


def test_a_copy_that_never_moved_is_measured_until_it_is_overdue() -> None:
    def at(count: int) -> str:
        return judged(looks(count, lambda step: a_look(step, {4: 5, 5: 5})))[0].verdict

    assert at(6) == "measuring"
    assert at(7) == "stalled"


def test_a_copy_that_stops_is_stalled_after_a_minute() -> None:
    def at(step: int, stops: int = 5) -> PartitionLook:
        return a_look(step, {4: copying(step), 5: copying(min(step, stops))})

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


@pytest.mark.parametrize("untold", ["throttles of topics: missing", "throttles of broker 5: gone"])
def test_where_throttles_are_not_known_a_copy_may_stand_for_five_minutes(untold: str) -> None:
    cluster = replace(CLUSTER, missing=(untold,))
    seen = looks(34, lambda step: a_look(step, {4: copying(step), 5: copying(min(step, 3))}))
    assert judged(seen[:-1], cluster)[0].verdict == "moving"
    assert judged(seen, cluster)[0].verdict == "stalled"
    others = replace(CLUSTER, missing=("throttles of broker 55: gone", "sizes on broker 5: gone"))
    assert judged(seen[:-1], others)[0].verdict == "stalled"


def test_a_full_disk_is_named() -> None:
    brokers = BROKERS | {5: BrokerLook(fenced=False, usable_bytes=4096)}
    verdict, _ = judged(
        looks(8, lambda step: a_look(step, {4: copying(step), 5: 9})),
        replace(CLUSTER, brokers=brokers),
    )
    assert (verdict.verdict, verdict.cause) == ("stalled", "disk-full")
    assert "broker 5 (4096 bytes left)" in (verdict.advice or "")


def test_a_replica_that_is_never_created_is_named() -> None:
    verdict, _ = judged(looks(8, lambda step: a_look(step, {4: copying(step)}, not_hosted=(5,))))
    assert (verdict.verdict, verdict.cause) == ("stalled", "replica-not-created")


@pytest.mark.parametrize(
    ("brokers", "cause"),
    [
        (BROKERS | {5: BrokerLook(fenced=True)}, "destination-broker-down"),
        ({one: look for one, look in BROKERS.items() if one != 5}, "destination-broker-down"),
        (
            BROKERS | {5: BrokerLook(fenced=False, offline_directories=("/data",))},
            "directory-offline",
        ),
    ],
)
def test_a_destination_that_is_away_is_told_at_once_and_is_a_dead_target_after_a_minute(
    brokers: dict[int, BrokerLook], cause: str
) -> None:
    def at(step: int) -> PartitionLook:
        if step < 4:
            return a_look(step, {4: copying(step), 5: copying(step)})
        return a_look(step, {4: copying(step)}, offline=(5,), unanswered=(5,))

    cluster = replace(CLUSTER, brokers=brokers)
    verdict, _ = judged([at(step) for step in range(10)], cluster)
    assert (verdict.verdict, verdict.cause) == ("moving", cause)
    verdict, figures = judged([at(step) for step in range(11)], cluster)
    assert (verdict.verdict, verdict.cause) == ("dead target", cause)
    assert verdict.evidence["away_seconds"] == 60
    assert "broker 5" in (verdict.advice or "")
    assert figures.eta is not None
    assert math.isinf(figures.eta.seconds)


def test_a_fenced_destination_is_dead_though_it_copies() -> None:
    fenced = replace(CLUSTER, brokers=BROKERS | {5: BrokerLook(fenced=True)})
    seen = looks(8, lambda step: a_look(step, dict.fromkeys((4, 5), copying(step)), offline=(5,)))
    verdict, _ = judged(seen, fenced)
    assert (verdict.verdict, verdict.cause) == ("dead target", "destination-broker-fenced")


def test_a_broker_that_only_older_metadata_calls_offline_is_not_dead_while_it_copies() -> None:
    seen = looks(12, lambda step: a_look(step, dict.fromkeys((4, 5), copying(step)), offline=(5,)))
    verdict, _ = judged(seen)
    assert (verdict.verdict, verdict.cause) == ("moving", None)


def test_a_replica_that_stays_and_is_down_blocks_where_the_release_waits_for_it() -> None:
    old = replace(CLUSTER, software=(4, 1))

    def at(step: int) -> PartitionLook:
        isr = (1, 3) if copying(step) < HEAD else (1, 3, 4, 5)
        copies = {} if 4 in isr else dict.fromkeys((4, 5), copying(step))
        return a_look(step, copies, isr=isr, offline=(2,), unanswered=(2,))

    verdict, _ = judged([at(step) for step in range(20)], old)
    assert (verdict.verdict, verdict.cause) == ("moving", "retained-replica-down")
    verdict, _ = judged([at(step) for step in range(60)], old)
    assert (verdict.verdict, verdict.cause) == ("blocked", "retained-replica-down")
    assert "start broker 2" in (verdict.advice or "")
    verdict, _ = judged([at(step) for step in range(51)])
    assert verdict.verdict == "completing"


def test_a_removal_waits_for_the_replica_that_stays() -> None:
    def at(step: int) -> PartitionLook:
        look = a_look(step, {2: 5 if step > 3 else 4}, isr=(1, 3))
        return replace(look, replicas=(2, 3, 1), adding=(), removing=(1,))

    verdict, _ = judged([at(step) for step in range(12)], replace(CLUSTER, software=(4, 1)))
    assert (verdict.verdict, verdict.cause) == ("blocked", "removal-blocked")


def test_copies_at_the_end_are_the_tail_and_blocked_when_they_stay_out() -> None:
    full = dict.fromkeys((4, 5), HEAD)
    assert judged(looks(3, lambda step: a_look(step, full)))[0].verdict == "tail"
    verdict, _ = judged(looks(5, lambda step: a_look(step, full)))
    assert (verdict.verdict, verdict.cause) == ("blocked", "cannot-join-isr")


def test_a_controller_that_does_not_complete_it_is_named_after_half_a_minute() -> None:
    def at(step: int) -> PartitionLook:
        return a_look(step, {}, isr=(1, 2, 3, 4, 5))

    assert judged([at(step) for step in range(3)])[0].verdict == "completing"
    verdict, _ = judged([at(step) for step in range(5)])
    assert (verdict.verdict, verdict.cause) == ("stalled", "controller-slow")


def test_another_controller_gets_a_minute_but_takes_nothing_back() -> None:
    seen = looks(5, lambda step: a_look(step, {}, isr=(1, 2, 3, 4, 5)))
    verdict, _ = judged(seen, quorum_changed_ms=20_000)
    assert (verdict.verdict, verdict.cause) == ("completing", "controller-failover")
    stopped = looks(12, lambda step: a_look(step, {4: copying(step), 5: copying(min(step, 3))}))
    assert judged(stopped, quorum_changed_ms=100_000)[0].verdict == "stalled"
    assert judged(stopped, quorum_changed_ms=80_000)[0].verdict == "moving"


def test_without_a_leader_there_is_no_source() -> None:
    seen = looks(9, lambda step: a_look(step, {4: 5, 5: 5}, isr=(1,), leader=None))
    assert judged(seen[:6])[0].verdict == "measuring"
    verdict, _ = judged(seen)
    assert (verdict.verdict, verdict.cause) == ("no source", "leader-missing")
    assert "in sync: 1;" in (verdict.advice or "")


def throttled(rate: int, topic: TopicThrottle | None = None) -> ClusterLook:
    brokers = {
        one: replace(look, leader_rate=rate, follower_rate=rate) for one, look in BROKERS.items()
    }
    listed = topic or TopicThrottle("0:1,0:2,0:3", "0:4,0:5")
    return replace(CLUSTER, brokers=brokers, throttles={PARTITION.topic: listed})


def test_writes_that_use_the_throttle_up_throttle_a_move_out() -> None:
    def at(step: int) -> PartitionLook:  # 2 followers in sync x 1,000 offsets/s x 100 bytes
        return a_look(step, {4: 9, 5: 9}, head=HEAD + 10_000 * step)

    cluster = throttled(200_000)
    verdict, _ = judged([at(step) for step in range(8)], cluster)
    assert (verdict.verdict, verdict.cause) == ("throttled out", "throttle-starved")
    assert verdict.evidence["in_sync_bytes_per_second"] == 200_000
    assert "--entity-name 1 --alter --add-config leader.replication" in (verdict.advice or "")
    cluster = throttled(300_000)
    verdict, _ = judged([at(step) for step in range(8)], cluster)
    assert verdict.verdict == "measuring"


def test_a_throttled_copy_may_stand_for_its_share() -> None:
    def at(step: int) -> PartitionLook:
        return a_look(step, dict.fromkeys((4, 5), 10_000 * (step // 7)))

    alone = judged([at(step) for step in range(28)])[0]
    assert alone.verdict == "stalled"
    verdict, _ = judged([at(step) for step in range(28)], throttled(300_000))
    assert verdict.verdict == "moving"


def test_a_throttle_that_lists_other_replicas_changes_nothing() -> None:
    seen = looks(12, lambda step: a_look(step, dict.fromkeys((4, 5), copying(min(step, 3)))))
    cluster = throttled(100_000, TopicThrottle("1:1", "none"))
    verdict, _ = judged(seen, cluster)
    assert (verdict.verdict, verdict.cause) == ("stalled", "copy-stopped")


def test_a_copy_that_gets_less_than_its_leader_diverges() -> None:
    seen = looks(
        20, lambda s: a_look(s, dict.fromkeys((4, 5), copying(s)), head=HEAD + 2 * PACE * s)
    )
    assert judged(seen[:9])[0].verdict == "moving"
    verdict, figures = judged(seen)
    assert (verdict.verdict, verdict.cause) == ("diverging", "leader-outruns-copy")
    assert figures.eta is not None
    assert math.isinf(figures.eta.seconds)


@pytest.mark.parametrize(
    ("growth", "rate", "cause"),
    [(0, None, "copy-slow"), (PACE * 3 // 5, None, "write-rate"), (0, 400_000, "throttle-slow")],
)
def test_a_move_that_takes_longer_than_it_may_is_slow(
    growth: int, rate: int | None, cause: str
) -> None:
    cluster = CLUSTER if rate is None else throttled(rate)
    seen = looks(15, lambda s: a_look(s, dict.fromkeys((4, 5), copying(s)), head=HEAD + growth * s))
    assert judged(seen, cluster, budget_seconds=3600)[0].verdict == "moving"
    verdict, _ = judged(seen, cluster, budget_seconds=60)
    assert (verdict.verdict, verdict.cause) == ("slow", cause)
    assert verdict.advice


def test_a_copy_that_is_lost_again_and_again_is_a_restart_loop() -> None:
    seen = looks(16, lambda s: a_look(s, {4: copying(s), 5: PACE * (s % 3)}))
    verdict, _ = judged(seen)
    assert (verdict.verdict, verdict.cause) == ("stalled", "restart-loop")


def test_one_truncation_is_no_loop() -> None:
    seen = looks(16, lambda s: a_look(s, {4: copying(s), 5: copying(s if s < 6 else s - 3)}))
    assert judged(seen)[0].verdict == "moving"


def test_a_broker_in_both_lists_blocks() -> None:
    def at(step: int) -> PartitionLook:
        look = a_look(step, {4: 5, 5: 5})
        return replace(look, replicas=(1, 2, 3, 4, 5), removing=(4, 5))

    verdict, _ = judged([at(step) for step in range(4)])
    assert (verdict.verdict, verdict.cause) == ("blocked", "in-both-lists")


def test_where_cancelling_would_not_bring_the_original_back_the_advice_says_so() -> None:
    def at(step: int) -> PartitionLook:
        look = a_look(step, {4: 5, 5: 5, 6: 5})
        if step < 2:
            return look
        return replace(look, replicas=(2, 6, 1, 3, 4, 5), adding=(6,), removing=(1, 3, 4, 5))

    verdict, _ = judged([at(step) for step in range(12)])
    assert "leaves brokers 2, 1, 3, 4, 5, where 2, 1, 3 had it" in (verdict.advice or "")
    verdict, _ = judged(looks(12, lambda step: a_look(step, {4: 5, 5: 5})))
    assert "cancel it" in (verdict.advice or "")
    assert "leaves" not in (verdict.advice or "")


def test_a_move_that_nobody_looks_at_any_more_is_unknown() -> None:
    seen = looks(9, lambda step: a_look(step, dict.fromkeys((4, 5), copying(step))))
    verdict, _ = judged(seen, later_ms=90_000)
    assert (verdict.verdict, verdict.cause) == ("unknown", "not-looked-at")
    assert judged(seen, later_ms=20_000)[0].verdict == "moving"


def test_a_replica_that_nobody_tells_of_is_unknown_and_makes_nothing_stalled() -> None:
    seen = looks(20, lambda step: a_look(step, {}, unanswered=(4, 5)))
    verdict, figures = judged(seen)
    assert (verdict.verdict, verdict.cause) == ("unknown", "replica-unanswered")
    assert figures.offsets_remaining is None
    assert figures.eta is None


def test_an_older_end_of_the_leader_still_proves_that_a_copy_stands() -> None:
    def at(step: int) -> PartitionLook:
        look = a_look(step, {4: 9, 5: 9})
        ends = {b: end for b, end in look.log_ends.items() if b != 1 or step < 2}
        return replace(look, log_ends=ends, sizes={})

    verdict, figures = judged([at(step) for step in range(9)])
    assert verdict.verdict == "stalled"
    assert figures.offsets_remaining is None


def test_without_a_look_at_the_cluster_verdicts_rest_on_the_partition() -> None:
    seen = looks(9, lambda step: a_look(step, {4: copying(step)}, offline=(5,), unanswered=(5,)))
    verdict, _ = judged(seen, None)
    assert (verdict.verdict, verdict.cause) == ("dead target", "destination-broker-down")


def test_without_replicas_nothing_is_known() -> None:
    empty = looks(5, lambda step: replace(a_look(step, {}), replicas=(), adding=(), removing=()))
    assert judged(empty)[0].verdict == "unknown"


def test_every_verdict_of_the_table_is_listed() -> None:
    assert len(VERDICTS) == len(set(VERDICTS)) == 12


def test_a_verdict_can_be_written_as_json() -> None:
    verdict, _ = judged(looks(9, lambda step: a_look(step, {4: 9, 5: 9})))
    assert json.loads(json.dumps(verdict.evidence, allow_nan=False)) == verdict.evidence

"""A small simulation of replication between brokers, for what only much time can show.

Leaders grow, out-of-sync replicas copy: without a throttle at their broker's pace, with one in
chunks of a mebibyte while the quotas of both brokers have something left, as Kafka's windows of
eleven seconds count it. What in-sync replicas fetch counts and is never delayed. Brokers fail and
come back, controllers change, and the observer gets views of different age with gaps.
"""

from __future__ import annotations

import random
from collections import deque

from caughtup.models.ids import TopicPartition
from caughtup.models.reassignments.controllers import missing_from_isr
from caughtup.models.records.reassignments import (
    BrokerRecord,
    ClusterRecord,
    ReassignmentRecord,
    ThrottleRecord,
)
from tests.simulation.brokers import CHUNK, RECORD, TICK_MS, Broker, Reassignment

#: After that a broker that is gone is fenced; an unclean change of controllers takes so long (ms).
SESSION_MS = 9_000


class Cluster:
    """Brokers, controllers and reassignments; ``step`` lets half a second pass."""

    def __init__(self, chance: random.Random, brokers: int, software: tuple[int, int]) -> None:
        self.chance = chance
        self.brokers = {one: Broker(chance.uniform(4e6, 20e6)) for one in range(1, brokers + 1)}
        self.reassignments: list[Reassignment] = []
        self.now_ms = 0
        self.software = software
        self.epoch = 1
        self.frozen_until_ms = 0
        self._wobble: dict[int, float] = {}
        self._seen: deque[dict[TopicPartition, ReassignmentRecord]] = deque(maxlen=5)

    @property
    def ongoing(self) -> list[Reassignment]:
        return [
            reassignment for reassignment in self.reassignments if reassignment.ended_ms is None
        ]

    def throttle(self, rate: int) -> None:
        for broker in self.brokers.values():
            broker.leader_quota.rate = broker.follower_quota.rate = rate

    def stop(self, broker: int) -> None:
        self.brokers[broker].up, self.brokers[broker].down_since_ms = False, self.now_ms

    def start(self, broker: int, lost: float = 0.0) -> None:
        """Start a broker again; ``lost``: bytes of its copies that it has to copy anew."""
        self.brokers[broker].up, self.brokers[broker].fenced = True, False
        for reassignment in self.ongoing:
            if broker in reassignment.ends and broker not in reassignment.isr:
                reassignment.ends[broker] = max(0.0, reassignment.ends[broker] - lost)
                reassignment.joins_ms.pop(broker, None)

    def fail_over(self) -> None:
        self.epoch += 1
        self.frozen_until_ms = self.now_ms + self.chance.randint(500, 8_000)

    def step(self) -> None:
        self.now_ms += TICK_MS
        if self.now_ms % 10_000 == 0:
            self._wobble = {one: self.chance.uniform(0.8, 1.2) for one in self.brokers}
        self._control()
        for reassignment in self.ongoing:
            self._write(reassignment)
            for replica, every_ms in reassignment.loses_copy_every_ms.items():
                if self.now_ms % every_ms == 0:
                    reassignment.ends[replica] = 0.0
        for number in self.chance.sample(sorted(self.brokers), len(self.brokers)):
            if self.brokers[number].up and not self.brokers[number].disk_full:
                self._copy(number, self.brokers[number])
        self._complete()
        self._seen.append(
            {
                reassignment.partition: self._true_observation(reassignment)
                for reassignment in self.ongoing
            }
        )

    def _control(self) -> None:
        for broker in self.brokers.values():
            if not broker.up and self.now_ms - broker.down_since_ms >= SESSION_MS:
                broker.fenced = True
        if self.now_ms < self.frozen_until_ms:
            return
        away = {one for one, broker in self.brokers.items() if broker.fenced}
        for reassignment in self.ongoing:
            if reassignment.leader in away or (
                reassignment.leader is None and reassignment.isr - away
            ):
                if reassignment.leader is not None:
                    reassignment.leader, reassignment.leaderless_until_ms = (
                        None,
                        self.now_ms + 1_000,
                    )
                elif self.now_ms >= reassignment.leaderless_until_ms:
                    reassignment.leader, reassignment.epoch = (
                        min(reassignment.isr - away),
                        reassignment.epoch + 1,
                    )
            if reassignment.isr - away:
                for gone in reassignment.isr & away:
                    reassignment.joins_ms.pop(gone, None)
                reassignment.isr -= away

    def _leads(self, reassignment: Reassignment) -> bool:
        return reassignment.leader is not None and self.brokers[reassignment.leader].up

    def _write(self, reassignment: Reassignment) -> None:
        if reassignment.leader is None or not self._leads(reassignment):
            return
        written = reassignment.writes * TICK_MS / 1000 * self.chance.uniform(0.5, 1.5)
        head = reassignment.ends[reassignment.leader] = (
            reassignment.ends[reassignment.leader] + written
        )
        for replica in reassignment.isr - {reassignment.leader}:
            if self.brokers[replica].up:
                reassignment.ends[replica] = head
                if reassignment.throttled:
                    self.brokers[reassignment.leader].leader_quota.record(self.now_ms, written)
                    self.brokers[replica].follower_quota.record(self.now_ms, written)

    def _copy(self, number: int, broker: Broker) -> None:
        copies = [
            reassignment
            for reassignment in self.ongoing
            if number in reassignment.replicas
            and number not in reassignment.isr
            and number not in reassignment.stopped | reassignment.not_hosted
            and self._leads(reassignment)
        ]
        if not copies:
            return
        turn = self.chance.randrange(len(copies))
        share = broker.pace * self._wobble.get(number, 1.0) * TICK_MS / 1000 / len(copies)
        for reassignment in copies[turn:] + copies[:turn]:
            if reassignment.throttled and self.chance.random() < 0.3:
                continue  # its fetcher waits for the answer to another fetch
            assert reassignment.leader is not None
            source = self.brokers[reassignment.leader]
            left = reassignment.ends[reassignment.leader] - reassignment.ends[number]
            got = min(left, share)
            if reassignment.throttled:
                quotas = (source.leader_quota, broker.follower_quota)
                if any(quota.exceeded(self.now_ms) for quota in quotas):
                    got = 0.0
                got = min(got, float(CHUNK))
                for quota in quotas:
                    quota.record(self.now_ms, got)
            reassignment.ends[number] += got
            if got >= left:
                reassignment.joins_ms.setdefault(
                    number, self.now_ms + self.chance.randint(200, 2_000)
                )

    def _complete(self) -> None:
        if self.now_ms < self.frozen_until_ms:
            return
        cluster = self.cluster_observation()
        for reassignment in self.ongoing:
            for replica, at_ms in sorted(reassignment.joins_ms.items()):
                broker = self.brokers[replica]
                if replica in reassignment.never_joins or broker.fenced or not broker.up:
                    continue
                if at_ms <= self.now_ms and replica not in reassignment.isr:
                    reassignment.isr.add(replica)
            if (
                not missing_from_isr(self._true_observation(reassignment), cluster)
                and not reassignment.never_completes
            ):
                reassignment.ended_ms = self.now_ms

    def _true_observation(self, reassignment: Reassignment) -> ReassignmentRecord:
        hosts = [one for one in reassignment.replicas if one not in reassignment.not_hosted]
        sizes = {one: int(reassignment.ends[one]) for one in hosts if self.brokers[one].up}
        return ReassignmentRecord(
            2,
            *reassignment.partition,
            replicas=reassignment.replicas,
            adding=reassignment.adding,
            removing=reassignment.removing,
            isr=tuple(sorted(reassignment.isr)),
            leader=reassignment.leader,
            as_of_ms=self.now_ms,
            leader_epoch=reassignment.epoch,
            offline=tuple(one for one in reassignment.replicas if self.brokers[one].fenced),
            log_ends={
                one: (size // RECORD + reassignment.start_offset) if size else 0
                for one, size in sizes.items()
            },
            sizes=sizes,
            not_hosted=tuple(
                sorted(one for one in reassignment.not_hosted if self.brokers[one].up)
            ),
            unanswered=tuple(one for one in reassignment.replicas if not self.brokers[one].up),
        )

    def cluster_observation(self) -> ClusterRecord:
        """See the brokers, the controllers and the throttles as they are."""
        throttled = {
            reassignment.partition.topic
            for reassignment in self.reassignments
            if reassignment.throttled
        }
        return ClusterRecord(
            2,
            as_of_ms=self.now_ms,
            brokers={
                number: BrokerRecord(
                    fenced=broker.fenced,
                    leader_rate=broker.leader_quota.rate,
                    follower_rate=broker.follower_quota.rate,
                    usable_bytes=(0 if broker.disk_full else 10**12) if broker.up else None,
                    total_bytes=2 * 10**12 if broker.up else None,
                )
                for number, broker in self.brokers.items()
            },
            quorum_leader=100 + self.epoch % 3,
            quorum_epoch=self.epoch,
            software=self.software,
            throttles={topic: ThrottleRecord("*", "*") for topic in sorted(throttled)},
        )

    def observations(self, gaps: float) -> list[ReassignmentRecord]:
        """See all as an observer does: parts of different age, a share ``gaps`` missing."""
        found = []
        for reassignment in self.ongoing:
            views = [
                seen[reassignment.partition]
                for seen in self._seen
                if reassignment.partition in seen
            ]
            if not views:
                continue
            shape = self.chance.choice(views)
            asked = {one: self.chance.choice(views[-3:]) for one in reassignment.replicas}
            lost = {one for one in reassignment.replicas if self.chance.random() < gaps}
            told = {one: view for one, view in asked.items() if one not in lost}
            found.append(
                ReassignmentRecord(
                    2,
                    *reassignment.partition,
                    replicas=reassignment.replicas,
                    adding=reassignment.adding,
                    removing=reassignment.removing,
                    isr=shape.isr,
                    leader=shape.leader,
                    as_of_ms=self.now_ms,
                    leader_epoch=shape.leader_epoch,
                    offline=shape.offline,
                    log_ends={
                        one: view.log_ends[one]
                        for one, view in told.items()
                        if one in view.log_ends
                    },
                    sizes={one: view.sizes[one] for one, view in told.items() if one in view.sizes},
                    not_hosted=tuple(one for one, view in told.items() if one in view.not_hosted),
                    unanswered=tuple(
                        one
                        for one in reassignment.replicas
                        if one in lost or one in asked[one].unanswered
                    ),
                )
            )
        return found

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
from caughtup.models.reassignments.tracking.controllers import missing_from_isr
from caughtup.models.reassignments.tracking.observation import (
    BrokerObservation,
    ClusterObservation,
    PartitionObservation,
    TopicThrottle,
)
from tests.simulation.brokers import CHUNK, RECORD, TICK_MS, Broker, Move

#: After that a broker that is gone is fenced; an unclean change of controllers takes so long (ms).
SESSION_MS = 9_000


class Cluster:
    """Brokers, controllers and moves; ``step`` lets half a second pass."""

    def __init__(self, chance: random.Random, brokers: int, software: tuple[int, int]) -> None:
        self.chance = chance
        self.brokers = {one: Broker(chance.uniform(4e6, 20e6)) for one in range(1, brokers + 1)}
        self.moves: list[Move] = []
        self.now_ms = 0
        self.software = software
        self.epoch = 1
        self.frozen_until_ms = 0
        self._wobble: dict[int, float] = {}
        self._seen: deque[dict[TopicPartition, PartitionObservation]] = deque(maxlen=5)

    @property
    def moving(self) -> list[Move]:
        return [move for move in self.moves if move.ended_ms is None]

    def throttle(self, rate: int) -> None:
        for broker in self.brokers.values():
            broker.leader_quota.rate = broker.follower_quota.rate = rate

    def stop(self, broker: int) -> None:
        self.brokers[broker].up, self.brokers[broker].down_since_ms = False, self.now_ms

    def start(self, broker: int, lost: float = 0.0) -> None:
        """Start a broker again; ``lost``: bytes of its copies that it has to copy anew."""
        self.brokers[broker].up, self.brokers[broker].fenced = True, False
        for move in self.moving:
            if broker in move.ends and broker not in move.isr:
                move.ends[broker] = max(0.0, move.ends[broker] - lost)
                move.joins_ms.pop(broker, None)

    def fail_over(self) -> None:
        self.epoch += 1
        self.frozen_until_ms = self.now_ms + self.chance.randint(500, 8_000)

    def step(self) -> None:
        self.now_ms += TICK_MS
        if self.now_ms % 10_000 == 0:
            self._wobble = {one: self.chance.uniform(0.8, 1.2) for one in self.brokers}
        self._control()
        for move in self.moving:
            self._write(move)
            for replica, every_ms in move.loses_copy_every_ms.items():
                if self.now_ms % every_ms == 0:
                    move.ends[replica] = 0.0
        for number in self.chance.sample(sorted(self.brokers), len(self.brokers)):
            if self.brokers[number].up and not self.brokers[number].disk_full:
                self._copy(number, self.brokers[number])
        self._complete()
        self._seen.append({move.partition: self._true_observation(move) for move in self.moving})

    def _control(self) -> None:
        for broker in self.brokers.values():
            if not broker.up and self.now_ms - broker.down_since_ms >= SESSION_MS:
                broker.fenced = True
        if self.now_ms < self.frozen_until_ms:
            return
        away = {one for one, broker in self.brokers.items() if broker.fenced}
        for move in self.moving:
            if move.leader in away or (move.leader is None and move.isr - away):
                if move.leader is not None:
                    move.leader, move.leaderless_until_ms = None, self.now_ms + 1_000
                elif self.now_ms >= move.leaderless_until_ms:
                    move.leader, move.epoch = min(move.isr - away), move.epoch + 1
            if move.isr - away:
                for gone in move.isr & away:
                    move.joins_ms.pop(gone, None)
                move.isr -= away

    def _leads(self, move: Move) -> bool:
        return move.leader is not None and self.brokers[move.leader].up

    def _write(self, move: Move) -> None:
        if move.leader is None or not self._leads(move):
            return
        written = move.writes * TICK_MS / 1000 * self.chance.uniform(0.5, 1.5)
        head = move.ends[move.leader] = move.ends[move.leader] + written
        for replica in move.isr - {move.leader}:
            if self.brokers[replica].up:
                move.ends[replica] = head
                if move.throttled:
                    self.brokers[move.leader].leader_quota.record(self.now_ms, written)
                    self.brokers[replica].follower_quota.record(self.now_ms, written)

    def _copy(self, number: int, broker: Broker) -> None:
        copies = [
            move
            for move in self.moving
            if number in move.replicas
            and number not in move.isr
            and number not in move.stopped | move.not_hosted
            and self._leads(move)
        ]
        if not copies:
            return
        turn = self.chance.randrange(len(copies))
        share = broker.pace * self._wobble.get(number, 1.0) * TICK_MS / 1000 / len(copies)
        for move in copies[turn:] + copies[:turn]:
            if move.throttled and self.chance.random() < 0.3:
                continue  # its fetcher waits for the answer to another fetch
            assert move.leader is not None
            source = self.brokers[move.leader]
            left = move.ends[move.leader] - move.ends[number]
            got = min(left, share)
            if move.throttled:
                quotas = (source.leader_quota, broker.follower_quota)
                if any(quota.exceeded(self.now_ms) for quota in quotas):
                    got = 0.0
                got = min(got, float(CHUNK))
                for quota in quotas:
                    quota.record(self.now_ms, got)
            move.ends[number] += got
            if got >= left:
                move.joins_ms.setdefault(number, self.now_ms + self.chance.randint(200, 2_000))

    def _complete(self) -> None:
        if self.now_ms < self.frozen_until_ms:
            return
        cluster = self.cluster_observation()
        for move in self.moving:
            for replica, at_ms in sorted(move.joins_ms.items()):
                broker = self.brokers[replica]
                if replica in move.never_joins or broker.fenced or not broker.up:
                    continue
                if at_ms <= self.now_ms and replica not in move.isr:
                    move.isr.add(replica)
            if (
                not missing_from_isr(self._true_observation(move), cluster)
                and not move.never_completes
            ):
                move.ended_ms = self.now_ms

    def _true_observation(self, move: Move) -> PartitionObservation:
        hosts = [one for one in move.replicas if one not in move.not_hosted]
        sizes = {one: int(move.ends[one]) for one in hosts if self.brokers[one].up}
        return PartitionObservation(
            partition=move.partition,
            replicas=move.replicas,
            adding=move.adding,
            removing=move.removing,
            isr=tuple(sorted(move.isr)),
            leader=move.leader,
            as_of_ms=self.now_ms,
            leader_epoch=move.epoch,
            offline=tuple(one for one in move.replicas if self.brokers[one].fenced),
            log_ends={
                one: (size // RECORD + move.start_offset) if size else 0
                for one, size in sizes.items()
            },
            sizes=sizes,
            not_hosted=tuple(sorted(one for one in move.not_hosted if self.brokers[one].up)),
            unanswered=tuple(one for one in move.replicas if not self.brokers[one].up),
        )

    def cluster_observation(self) -> ClusterObservation:
        """See the brokers, the controllers and the throttles as they are."""
        throttled = {move.partition.topic for move in self.moves if move.throttled}
        return ClusterObservation(
            as_of_ms=self.now_ms,
            brokers={
                number: BrokerObservation(
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
            throttles={topic: TopicThrottle("*", "*") for topic in sorted(throttled)},
        )

    def observations(self, gaps: float) -> list[PartitionObservation]:
        """See the moves as an observer does: parts of different age, a share ``gaps`` missing."""
        found = []
        for move in self.moving:
            views = [seen[move.partition] for seen in self._seen if move.partition in seen]
            if not views:
                continue
            shape = self.chance.choice(views)
            asked = {one: self.chance.choice(views[-3:]) for one in move.replicas}
            lost = {one for one in move.replicas if self.chance.random() < gaps}
            told = {one: view for one, view in asked.items() if one not in lost}
            found.append(
                PartitionObservation(
                    partition=move.partition,
                    replicas=move.replicas,
                    adding=move.adding,
                    removing=move.removing,
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
                        one for one in move.replicas if one in lost or one in asked[one].unanswered
                    ),
                )
            )
        return found

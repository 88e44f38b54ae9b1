"""The traffic through replication throttles, and how copies share the rate that limits them.

In-sync replicas of throttled partitions are never delayed, but their fetches count: if they use up
the rate, copies get nothing at all. When one of the copies that share a limit completes, the others
get its part. A copy's limit is a throttle that is nearly used up, its leader's or its follower's.
Without one it is the destination broker, where all copies go through one disk, one network and few
fetchers. The time at a copy's own pace is then an upper bound; the more the copies differ, the less
exact it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from caughtup.models.reassignments.controllers import missing_from_isr
from caughtup.models.reassignments.throttle_rates import (
    Copy,
    Share,
    Throttle,
    ThrottleShares,
    rates_on,
)
from caughtup.models.reassignments.tracker import TrackedReassignment
from caughtup.models.records.reassignments import (
    ClusterRecord,
    ReassignmentRecord,
)

#: The most copies of a limit that are taken one by one, in order of arrival; the rest at once.
MOST_ROUNDS = 100
#: What limits copies: a kind, and a broker.
Limit = tuple[str, int]
#: The time (ms) over which a log's growth is taken, and how many observations back sizes count.
GROWTH_MS = 90_000
RECENT_OBSERVATIONS = 6


def throttle_shares(
    ongoing: Iterable[TrackedReassignment], cluster: ClusterRecord | None
) -> ThrottleShares:
    """Return the shares of all partitions in movement in the brokers' throttles."""
    sides: dict[str, dict[int, Share]] = {"leader": {}, "follower": {}}
    paces: dict[Copy, CopyPace] = {}
    throttled: dict[Copy, list[Throttle]] = {}
    for tracked in ongoing:
        observation = tracked.latest
        partition, leader = observation.topic_partition, observation.leader
        if leader is None:
            continue
        behind = frozenset(missing_from_isr(observation, cluster))
        comes = grown_bytes(tracked.observations, leader)
        for replica in sorted(({*observation.isr} | behind) - {leader}):
            gets = grown_bytes(tracked.observations, replica)
            if replica not in behind:  # beyond the leader's growth, it got it while catching up
                gets = max(0.0, gets - comes) if replica in observation.adding else 0.0
            left = _bytes_left(tracked.observations, leader, replica) if replica in behind else 0
            if left is not None and gets > 0:
                paces[partition, replica] = CopyPace(left, gets, comes)
            holding = throttled[partition, replica] = []
            for side, broker, rate in rates_on(partition, leader, replica, cluster):
                share = sides[side].setdefault(broker, Share())
                holding.append(Throttle(broker, side, rate, share))
                share.copied_bytes += gets
                if replica in behind:
                    share.copies += 1
                else:
                    share.in_sync_bytes += comes
    limits: dict[Copy, list[Limit]] = {}
    for copy in paces:
        tight = [(one.side, one.broker) for one in throttled[copy] if one.tight]
        limits[copy] = tight or [("broker", copy[1])]
    return ThrottleShares(sides["leader"], sides["follower"], time_factors(paces, limits))


def _bytes_left(
    observations: Sequence[ReassignmentRecord], leader: int, replica: int
) -> int | None:
    """Return the bytes a replica has yet to copy, by the last observation with both sizes."""
    for observation in reversed(observations[-RECENT_OBSERVATIONS:]):
        if leader in observation.sizes and replica in observation.sizes:
            return max(0, observation.sizes[leader] - observation.sizes[replica])
    return None


def grown_bytes(observations: Sequence[ReassignmentRecord], broker: int) -> float:
    """Return the growth of a partition's log on a broker over GROWTH_MS, in bytes a second.

    It is too low if segments were deleted.
    """
    newest = newer = None
    grown, since_ms = 0, 0
    for observation in reversed(observations):
        size = observation.sizes.get(broker)
        if size is None:
            continue
        if newest is None or newer is None:
            newest = observation.as_of_ms
        else:
            grown += max(0, newer - size)
        newer, since_ms = size, observation.as_of_ms
        if newest - since_ms >= GROWTH_MS:
            break
    if newest is None or newest <= since_ms:
        return 0.0
    return grown * 1000 / (newest - since_ms)


class CopyPace(NamedTuple):
    """What a copy is behind (bytes), its rate and its leader's growth (bytes a second)."""

    behind: int
    rate: float
    growth: float

    @property
    def seconds(self) -> float | None:
        """The seconds it takes at its own pace, None if it does not gain or is not behind."""
        closing = self.rate - self.growth
        return self.behind / closing if closing > 0 and self.behind > 0 else None


def time_factors(
    paces: Mapping[Copy, CopyPace], limits: Mapping[Copy, Iterable[Limit]]
) -> dict[Copy, float]:
    """Return by which factor (0 to 1) each copy's time is shorter than at its own pace.

    Of several limits the one that shortens least counts. A copy with nothing left completes now,
    and its rate goes to the others.
    """
    groups: dict[Limit, list[Copy]] = {}
    for copy, pace in sorted(paces.items()):
        if pace.rate > 0:
            for limit in limits.get(copy, ()):
                groups.setdefault(limit, []).append(copy)
    factors: dict[Copy, float] = {}
    for group in groups.values():
        arrivals = _arrivals([paces[copy] for copy in group])
        for copy, arrival in zip(group, arrivals, strict=True):
            alone = paces[copy].seconds
            if alone is not None and arrival is not None:
                factors[copy] = max(factors.get(copy, 0.0), min(1.0, arrival / alone))
    return factors


def _arrivals(paces: list[CopyPace]) -> list[float | None]:
    """Return in how many seconds each copy completes, None for never.

    The copies that remain share the rate of a completed one in proportion to their own rates.
    """
    total = sum(pace.rate for pace in paces)
    behind = [float(pace.behind) for pace in paces]
    arrivals: list[float | None] = [None] * len(paces)
    on_their_way = [one for one, pace in enumerate(paces) if pace.behind > 0]
    now, rounds = 0.0, 0
    while on_their_way:
        more = total / sum(paces[one].rate for one in on_their_way)
        closing = {one: paces[one].rate * more - paces[one].growth for one in on_their_way}
        gaining = [(behind[one] / closing[one], one) for one in on_their_way if closing[one] > 0]
        if not gaining:
            break
        rounds += 1
        seconds, _ = min(gaining)
        if rounds > MOST_ROUNDS:  # with this many copies, one more completion changes little
            seconds, _ = max(gaining)
        now += seconds
        for took, one in gaining:
            if took <= seconds:
                arrivals[one] = now - seconds + took
        on_their_way = [one for one in on_their_way if arrivals[one] is None]
        for one in on_their_way:
            behind[one] = max(0.0, behind[one] - closing[one] * seconds)
    return arrivals

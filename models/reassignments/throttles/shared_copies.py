"""Copies that share what limits them: when one is there, the others get its part.

What limits a copy is a throttle that is nearly used up, its leader's or its follower's. Without
one it is taken to be the broker to which it goes, where all copies go through one disk, network
and few fetchers. A time to go at a copy's own pace is then the longest, and wrong by more the less
alike the copies are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from caughtup.models.ids import TopicPartition

#: Of the copies that share a limit so many are taken in their order of arrival, the rest at once.
MOST_ROUNDS = 100
#: A replica of a partition.
Copy = tuple[TopicPartition, int]
#: What limits copies: a kind, and a broker.
Limit = tuple[str, int]


class CopyPace(NamedTuple):
    """What a copy has yet to get (bytes), what it gets and its leader gets (bytes a second)."""

    behind: int
    rate: float
    growth: float

    @property
    def seconds(self) -> float | None:
        """How long it takes at its own pace; None if it doesn't gain, or isn't behind."""
        closing = self.rate - self.growth
        return self.behind / closing if closing > 0 and self.behind > 0 else None


def sooner(
    paces: Mapping[Copy, CopyPace], limits: Mapping[Copy, Iterable[Limit]]
) -> dict[Copy, float]:
    """Tell by which factor (0 to 1) each copy is there sooner than at its own pace.

    Of a copy that several limits hold back, by the one that lets it gain least. One with nothing
    left is there just now, and what it got is for the others.
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
    """Tell in how many seconds each copy is there; None: never.

    Each gets the same part of the rates of those that are there as it has of the others' rates.
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
        if rounds > MOST_ROUNDS:  # so many share it that the rest change little from one to another
            seconds, _ = max(gaining)
        now += seconds
        for took, one in gaining:
            if took <= seconds:
                arrivals[one] = now - seconds + took
        on_their_way = [one for one in on_their_way if arrivals[one] is None]
        for one in on_their_way:
            behind[one] = max(0.0, behind[one] - closing[one] * seconds)
    return arrivals

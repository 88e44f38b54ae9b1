"""Turn what coordinators answer about share groups into positions in the logs.

A share group has no committed offset: its records are done one by one. Its coordinator tells the lag,
which is how many records are not done. The position is the log end minus that, so that lag, rates and
verdicts are those of any group.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

import numpy as np

from caughtup.agents.clock import now_ms
from caughtup.agents.kafka.led_ends import LedEnds
from caughtup.agents.kafka.protocol.client import ClusterProtocol
from caughtup.agents.kafka.protocol.described.share_groups import UNKNOWN, ShareOffsets
from caughtup.models.ids import TopicPartition
from caughtup.models.polls.asked import AskedGroups, TopicOffsets

#: Asks a coordinator how far some share groups are; returns what it answers, by group.
Ask = Callable[[], Awaitable[Mapping[str, ShareOffsets]]]


class SharePositions:
    """Takes what share groups' coordinators answer into ``known``, as positions in the logs.

    ``on_error`` is called with a sentence on each failure.
    """

    def __init__(
        self, protocol: ClusterProtocol, known: AskedGroups, on_error: Callable[[str], object]
    ) -> None:
        self._protocol = protocol
        self._known = known
        self._ends = LedEnds(
            lambda broker, why: on_error(f"broker {broker}: log ends of share groups: {why}")
        )
        #: By group: its partitions' positions, as of the last answer.
        self._positions: dict[str, dict[TopicPartition, int]] = {}

    def keep_only(self, groups: AbstractSet[str]) -> None:
        """Forget all other groups."""
        for group in self._positions.keys() - groups:
            del self._positions[group]

    async def take(self, groups: Sequence[str], ask: Ask) -> set[str]:
        """Ask how far some groups are, between two listings of log ends; return those answered about.

        Raises KafkaError.
        """
        before = await self._listed(
            {one for group in groups for one in self._positions.get(group, ())}
        )
        asked_ms, found = now_ms(), await ask()
        if not (places := _places(found.values())) <= before.keys():
            before = await self._listed(places)
            asked_ms, found = now_ms(), await ask()
            places = _places(found.values())
        after = await self._listed(places)
        for group, one in sorted(found.items()):
            self._take(group, one, before, after, asked_ms)
        return set(found)

    def _take(
        self,
        group: str,
        found: ShareOffsets,
        before: dict[TopicPartition, int],
        after: dict[TopicPartition, int],
        asked_ms: int,
    ) -> None:
        last = self._positions.get(group, {})
        positions: dict[TopicPartition, int] = {}
        starts: dict[TopicPartition, int] = {}
        topics = []
        for topic, numbers, start, lags in found.topics:
            kept: list[tuple[int, int]] = []
            for number, begins, lag in zip(
                numbers.tolist(), start.tolist(), lags.tolist(), strict=True
            ):
                place = TopicPartition(topic, number)
                if begins != UNKNOWN:
                    starts[place] = begins
                if lag == UNKNOWN or place not in before or place not in after:
                    continue
                at = position(lag, before[place], after[place], last.get(place))
                positions[place] = at
                kept.append((number, at))
            rows = np.array(kept, np.int64).reshape(-1, 2)
            topics.append(TopicOffsets(topic, rows[:, 0], rows[:, 1]))
        self._positions[group] = positions
        self._known.share_starts(group, starts)
        self._known.committed(group, topics, asked_ms)

    async def _listed(self, partitions: AbstractSet[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the log ends of partitions as far as their leaders answer."""
        if unknown := self._ends.unknown(partitions):
            await self._ends.learn(self._protocol, unknown)
        return await self._ends.list(self._protocol, partitions)


def _places(found: Iterable[ShareOffsets]) -> set[TopicPartition]:
    return {
        TopicPartition(topic, number)
        for one in found
        for topic, numbers, _, _ in one.topics
        for number in numbers.tolist()
    }


def position(lag: int, before: int, after: int, last: int | None) -> int:
    """Return a share group's position in a log of which ``lag`` records are not done.

    The log end was ``before`` when its coordinator was asked and ``after`` once it had answered. It is
    the least position that is possible, or ``last``, where the group was, if it may still be there:
    so a group doesn't seem to move because its log grows.
    """
    least = max(0, before - lag)
    if last is not None and least <= last <= after - lag:
        return last
    return least

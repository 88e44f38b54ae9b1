"""Ask coordinators how far share groups are, and turn their lags into positions in the logs.

A share group has no committed offset: its records are done one by one. Its coordinator tells the lag,
which is how many records are not done. The position is the log end minus that, so that lag, rates and
verdicts are those of any group.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet

import numpy as np
from aiokafka.errors import KafkaError, for_code

from caughtup.agents.clock import now_ms
from caughtup.agents.kafka.protocol.client import ClusterProtocol
from caughtup.agents.kafka.protocol.decoding import choose_version, decode
from caughtup.agents.kafka.protocol.described.calls import VERSIONS
from caughtup.agents.kafka.protocol.described.share_groups import (
    UNKNOWN,
    ShareOffsets,
    decode_share_offsets,
    share_offsets_call,
)
from caughtup.agents.kafka.protocol.requests import Key
from caughtup.models.ids import TopicPartition
from caughtup.models.polls.asked import AskedGroups, TopicOffsets


class ShareAsker:
    """Asks about share groups, and takes what differs from the last answers into ``known``.

    ``on_error`` is called with a sentence on each failure.
    """

    def __init__(
        self, protocol: ClusterProtocol, known: AskedGroups, on_error: Callable[[str], object]
    ) -> None:
        self._protocol = protocol
        self._known = known
        self._on_error = on_error
        self._leaders: dict[TopicPartition, int] = {}
        #: By group: its partitions' positions, as of the last answer.
        self._positions: dict[str, dict[TopicPartition, int]] = {}

    def keep_only(self, groups: AbstractSet[str]) -> None:
        """Forget all other groups."""
        for group in self._positions.keys() - groups:
            del self._positions[group]

    async def ask(self, broker: int, groups: Sequence[str]) -> set[str]:
        """Ask a coordinator how far some of its groups are; return those that it answered about.

        Raises KafkaError.
        """
        if not groups:
            return set()
        offered = await self._protocol.offered(broker)
        key = Key.DESCRIBE_SHARE_GROUP_OFFSETS
        version = choose_version(offered, key, VERSIONS[key])
        places = {one for group in groups for one in self._positions.get(group, ())}
        before = await self._ends(places)
        asked_ms, found = now_ms(), await self._far(broker, groups, version)
        if not (places := _places(found)) <= before.keys():
            before = await self._ends(places)
            asked_ms, found = now_ms(), await self._far(broker, groups, version)
            places = _places(found)
        after = await self._ends(places)
        answered = set[str]()
        for one in found:
            if one.error_code:
                self._on_error(
                    f"broker {broker}: share group {one.group!r:.80}: "
                    f"{for_code(one.error_code).__name__}"
                )
            elif one.group in groups:
                self._take(one, before, after, asked_ms)
                answered.add(one.group)
        return answered

    async def _far(self, broker: int, groups: Sequence[str], version: int) -> list[ShareOffsets]:
        call = share_offsets_call(groups, version)
        data = await self._protocol.connections.ask(broker, call)
        return await decode(lambda raw: decode_share_offsets(raw, version), data)

    def _take(
        self,
        found: ShareOffsets,
        before: dict[TopicPartition, int],
        after: dict[TopicPartition, int],
        asked_ms: int,
    ) -> None:
        last = self._positions.get(found.group, {})
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
        self._positions[found.group] = positions
        self._known.share_starts(found.group, starts)
        self._known.committed(found.group, topics, asked_ms)

    async def _ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the log ends of partitions as far as their leaders answer."""
        wanted = set(partitions)
        if unknown := wanted - self._leaders.keys():
            described = await self._protocol.describe_partitions(unknown)
            for place, one in described.partitions.items():
                if one.leader is not None:
                    self._leaders[place] = one.leader
        by_leader: dict[int, list[TopicPartition]] = {}
        for place in sorted(wanted & self._leaders.keys()):
            by_leader.setdefault(self._leaders[place], []).append(place)
        leaders = sorted(by_leader)
        answers = await asyncio.gather(
            *(self._protocol.list_ends(leader, by_leader[leader]) for leader in leaders),
            return_exceptions=True,
        )
        ends: dict[TopicPartition, int] = {}
        for leader, answer in zip(leaders, answers, strict=True):
            if isinstance(answer, KafkaError):
                self._on_error(f"broker {leader}: log ends of share groups: {answer}")
                gone: Iterable[TopicPartition] = by_leader[leader]
            elif isinstance(answer, BaseException):
                raise answer
            else:
                ends |= answer.ends
                gone = answer.errors
            for place in gone:
                self._leaders.pop(place, None)
        return ends


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

"""Ask coordinators about their groups: who is in them, and what they have committed.

It is for clusters whose ``__consumer_offsets`` may not be read, and needs DESCRIBE only: on the
groups, and on the topics that they read.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Generic, NamedTuple, TypeVar

from aiokafka.errors import (
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    GroupAuthorizationFailedError,
    KafkaError,
    NotCoordinatorError,
    for_code,
)

from caughtup.agents.clock import now_ms
from caughtup.agents.kafka.protocol.client import ClusterProtocol
from caughtup.agents.kafka.protocol.connection import raise_for
from caughtup.agents.kafka.protocol.decoding import choose_version, decode
from caughtup.agents.kafka.protocol.described.calls import (
    MANY_GROUPS_VERSION,
    VERSIONS,
    describe_groups_call,
    list_groups_call,
    offset_fetch_call,
)
from caughtup.agents.kafka.protocol.described.committed_offsets import (
    CommittedOffsets,
    decode_committed_offsets,
)
from caughtup.agents.kafka.protocol.described.groups import (
    EMPTY,
    DescribedGroup,
    decode_described_groups,
)
from caughtup.agents.kafka.protocol.described.listed_groups import (
    CLASSIC,
    ListedGroup,
    decode_listed_groups,
)
from caughtup.agents.kafka.protocol.requests import Call, Key
from caughtup.agents.kafka.share_asking import ShareAsker
from caughtup.models.polls.asked import AskedGroups, AskedKey, AskedRecord
from caughtup.models.wire.consumer_offsets import GroupKey
from caughtup.models.wire.group_metadata import GroupMetadata
from caughtup.models.wire.share_groups import SHARE

#: The request that describes groups of each type that ListGroups names.
_DESCRIBE = {
    CLASSIC: Key.DESCRIBE_GROUPS,
    "consumer": Key.CONSUMER_GROUP_DESCRIBE,
    "streams": Key.STREAMS_GROUP_DESCRIBE,
    SHARE: Key.SHARE_GROUP_DESCRIBE,
}
#: All types of groups, and those whose records in the log are not decoded.
ALL_TYPES, NOT_IN_LOG = frozenset(_DESCRIBE), frozenset({SHARE})
#: The most groups of one request: an answer has their members' subscriptions and assignments.
MOST_GROUPS = 50
#: What an answer begins with before its own content: for how long the broker makes us wait.
_THROTTLE_BYTES = 4
#: How long a group that we may not describe is not asked about again.
_REFUSED_SECONDS = 600.0
#: The error of a group that was deleted between two requests (GROUP_ID_NOT_FOUND).
_NO_SUCH_GROUP = 69
#: The errors of a coordinator that another broker replaces: the next listing names that one.
_MOVED: frozenset[int] = frozenset(
    kind.errno
    for kind in (CoordinatorLoadInProgressError, CoordinatorNotAvailableError, NotCoordinatorError)
)

_Answered = TypeVar("_Answered", DescribedGroup, CommittedOffsets)


#: Called after each request about some groups, with the time (ms) before it and those that were
#: answered about.
Took = Callable[[int, AbstractSet[str]], Awaitable[object]]


class _Question(NamedTuple, Generic[_Answered]):
    """A request about some groups, how its answer is decoded, and what takes each group's part."""

    make: Callable[[Sequence[str]], Call]
    decode: Callable[[bytes], list[_Answered]]
    take: Callable[[str, _Answered], object]


class GroupAsker:
    """Asks about groups, and takes what differs from the last answers into ``known``.

    ``on_error`` is called with a sentence on each failure; the failure costs its own groups only.
    ``types``: the types of groups that are asked about.
    """

    def __init__(
        self,
        protocol: ClusterProtocol,
        known: AskedGroups,
        on_error: Callable[[str], object],
        types: frozenset[str] = ALL_TYPES,
    ) -> None:
        self._types = types
        self._protocol = protocol
        self._known = known
        self._on_error = on_error
        # By broker and request: the hash of the last answer, and the groups that it was about. Of the
        # requests since the last listing, and of those before it.
        self._answers: dict[tuple[int, Call], tuple[int, set[str]]] = {}
        self._earlier: dict[tuple[int, Call], tuple[int, set[str]]] = {}
        self._refused: dict[str, float] = {}
        self._shares = ShareAsker(protocol, known, on_error)
        #: The broker that coordinated each group by the last listing that had it.
        self._coordinators: dict[str, int] = {}

    async def round(
        self, is_wanted: Callable[[str], bool], took: Took, spread_seconds: float = 0.0
    ) -> bool:
        """Ask about every wanted group once; return whether all brokers answered.

        The requests to a broker are spread over ``spread_seconds``. A group that is listed no more is
        gone, unless its coordinator doesn't answer. Raises KafkaError without any broker.
        """
        began = time.monotonic()
        self._earlier, self._answers = self._answers, {}
        brokers = sorted(one.id for one in await self._protocol.brokers() if not one.fenced)
        found = await asyncio.gather(*map(self._list, brokers))
        failed, there = set[int](), set[str]()
        asking = []
        for broker, listed in zip(brokers, found, strict=True):
            if listed is None:
                failed.add(broker)
                continue
            # Behind one address for all brokers, each lists all groups.
            groups = sorted(
                one
                for one in listed
                if one.group_type in self._types and one.group not in there and is_wanted(one.group)
            )
            there.update(one.group for one in groups)
            self._coordinators.update(dict.fromkeys((one.group for one in groups), broker))
            asking.append(self._ask_in_parts(broker, groups, began, spread_seconds, took))
        await asyncio.gather(*asking)
        for group in sorted(self._known.names() - there):
            if not failed or self._coordinators.get(group, min(failed)) not in failed:
                self._known.gone(group)
                self._shares.forget(group)
                self._coordinators.pop(group, None)
        await took(now_ms(), frozenset())
        return not failed

    async def _ask_in_parts(
        self,
        broker: int,
        groups: Sequence[ListedGroup],
        began: float,
        spread_seconds: float,
        took: Took,
    ) -> None:
        parts = [groups[at : at + MOST_GROUPS] for at in range(0, len(groups), MOST_GROUPS)]
        for number, part in enumerate(parts):
            wait = began + number * spread_seconds / len(parts) - time.monotonic()
            if wait > 0:
                await asyncio.sleep(wait)
            asked_ms = now_ms()
            await took(asked_ms, await self._ask(broker, part))

    async def _list(self, broker: int) -> list[ListedGroup] | None:
        try:
            version = await self._version(broker, Key.LIST_GROUPS)
            data = await self._protocol.connections.ask(broker, list_groups_call(version))
            code, groups = await decode(lambda raw: decode_listed_groups(raw, version), data)
            raise_for(code)
        except KafkaError as error:
            self._on_error(f"broker {broker}: listing its groups: {error}")
            return None
        return groups

    async def _ask(self, broker: int, groups: Sequence[ListedGroup]) -> set[str]:
        """Ask a coordinator about some of its groups; return those that it answered about."""
        until = time.monotonic() - _REFUSED_SECONDS
        asked = [one for one in groups if self._refused.get(one.group, -_REFUSED_SECONDS) <= until]
        try:
            described = await self._describe(broker, asked)
            share = [one.group for one in asked if one.group_type == SHARE]
            others = [one.group for one in asked if one.group_type != SHARE]
            found = await self._fetch_offsets(broker, others) if others else set()
            return described & (found | await self._shares.ask(broker, share))
        except KafkaError as error:
            self._on_error(f"broker {broker}: asking about {len(asked)} groups: {error}")
            return set()

    async def _describe(self, broker: int, groups: Sequence[ListedGroup]) -> set[str]:
        answered = set[str]()
        by_type: dict[str, list[str]] = {}
        for one in groups:
            if one.group_type == CLASSIC and one.state == EMPTY:
                answered.add(one.group)
                self._known.described(one.group, _without_members(one), now_ms())
            else:
                by_type.setdefault(one.group_type, []).append(one.group)
        for group_type, names in sorted(by_type.items()):
            key = _DESCRIBE[group_type]
            version = await self._version(broker, key)
            question = _Question(
                partial(describe_groups_call, key=key, version=version),
                partial(decode_described_groups, key=key, version=version),
                self._take_described,
            )
            answered |= await self._answers_about(broker, names, question)
        return answered

    async def _fetch_offsets(self, broker: int, groups: Sequence[str]) -> set[str]:
        version = await self._version(broker, Key.OFFSET_FETCH)
        question = _Question(
            partial(offset_fetch_call, version=version),
            partial(decode_committed_offsets, version=version),
            self._take_committed,
        )
        if version >= MANY_GROUPS_VERSION:
            return await self._answers_about(broker, groups, question)
        answered = set[str]()
        for group in groups:
            answered |= await self._answers_about(broker, [group], question)
        return answered

    async def _version(self, broker: int, key: Key) -> int:
        return choose_version(await self._protocol.offered(broker), key, VERSIONS[key])

    async def _answers_about(
        self, broker: int, groups: Sequence[str], question: _Question[_Answered]
    ) -> set[str]:
        """Ask about groups and take the answers; return the groups that were answered about."""
        if not groups:
            return set()
        call = question.make(groups)
        data = await self._protocol.connections.ask(broker, call)
        digest = hash(data[_THROTTLE_BYTES:])
        before = self._answers.get((broker, call)) or self._earlier.get((broker, call))
        if before is not None and before[0] == digest:
            self._answers[broker, call] = before
            return before[1]
        try:
            found = await decode(question.decode, data)
        except KafkaError as error:
            if len(groups) == 1:
                self._on_error(f"broker {broker}: group {groups[0]!r:.80}: {error}")
                return set()
            half = len(groups) // 2  # one group's answer costs no other group's
            first = await self._answers_about(broker, groups[:half], question)
            return first | await self._answers_about(broker, groups[half:], question)
        answered = set[str]()
        for one in found:
            name = one.group or groups[0]
            if name in groups and self._has_answer(broker, name, one.error_code):
                question.take(name, one)
                answered.add(name)
        self._answers[broker, call] = digest, answered
        return answered

    def _has_answer(self, broker: int, group: str, code: int) -> bool:
        if code == GroupAuthorizationFailedError.errno:
            self._refused[group] = time.monotonic()
            self._on_error(f"group {group!r:.80}: missing: DESCRIBE on the group")
        elif code and code not in _MOVED and code != _NO_SUCH_GROUP:
            self._on_error(f"broker {broker}: group {group!r:.80}: {for_code(code).__name__}")
        return not code

    def _take_described(self, group: str, found: DescribedGroup) -> None:
        if found.records is not None:
            self._known.described(group, found.records, now_ms())

    def _take_committed(self, group: str, found: CommittedOffsets) -> None:
        self._known.committed(group, found.topics, now_ms())


def _without_members(listed: ListedGroup) -> dict[AskedKey, AskedRecord]:
    """Return the record of a classic group without members; a group of commits alone has none."""
    if not listed.protocol_type:
        return {}
    metadata = GroupMetadata(listed.protocol_type, -1, None, None, -1, ())
    return {GroupKey(listed.group): metadata}

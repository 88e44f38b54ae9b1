"""Ask coordinators about their groups: who is in them, and what they have committed.

It is for clusters whose ``__consumer_offsets`` may not be read, and needs DESCRIBE only: on the
groups, and on the topics that they read.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Generic, NamedTuple, TypeVar

from aiokafka.errors import (
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    GroupAuthorizationFailedError,
    KafkaConnectionError,
    KafkaError,
    NotCoordinatorError,
    TopicAuthorizationFailedError,
    UnsupportedVersionError,
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
from caughtup.agents.kafka.protocol.groups import find_coordinator
from caughtup.agents.kafka.protocol.requests import Call, Key
from caughtup.agents.kafka.share_asking import ShareAsker
from caughtup.models.polls.asked import AskedGroups, AskedKey, AskedRecord
from caughtup.models.watching import Watching
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
#: The most requests that are made again in halves, by broker and round, after the broker closed the
#: connection on them: one group's answer may be the reason.
_MOST_CLOSED = 16
#: The most groups of a round whose coordinators are asked whether they are gone.
_MOST_DOUBTED = 200
#: A pause is no longer than this without a sign of life.
_PULSE_SECONDS = 5.0
#: The longest name that requests and records of commits can have, in bytes.
_LONGEST_NAME = 0x7FFF
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
    """What is asked for, in a word; the request about some groups, and how its answer is taken in."""

    what: str
    make: Callable[[Sequence[str]], Call]
    decode: Callable[[bytes], list[_Answered]]
    take: Callable[[str, _Answered], bool]


class GroupAsker:
    """Asks about groups, and takes what differs from the last answers into ``known``.

    ``on_error`` is called with a sentence on each failure; the failure costs its own groups only.
    ``types``: the types of groups that are asked about. ``alive`` is called after each answer, and now
    and then between two.
    """

    def __init__(
        self,
        protocol: ClusterProtocol,
        known: AskedGroups,
        on_error: Callable[[str], object],
        types: frozenset[str] = ALL_TYPES,
        alive: Callable[[], object] = lambda: None,
    ) -> None:
        self._types = types
        self._shares = ShareAsker(protocol, known, on_error)
        self._protocol = protocol
        self._known = known
        self._on_error = on_error
        self._alive = alive
        # By broker and request: the hash of the last answer, and the groups that it was about. Of the
        # requests since the last listing, and of those before it.
        self._answers: dict[tuple[int, Call], tuple[int, set[str]]] = {}
        self._earlier: dict[tuple[int, Call], tuple[int, set[str]]] = {}
        #: When each group was last refused to us, in monotonic seconds.
        self._refused: dict[str, float] = {}
        #: When the members of each group were last refused, since it reads topics that are hidden.
        self._hidden: dict[str, float] = {}
        #: The groups whose coordinator said in this round, and in the last one, that it is another one.
        self._moved, self._moved_before = set[str](), set[str]()
        #: The broker that last listed each group, and the group's type.
        self._listed: dict[str, tuple[int, str]] = {}
        #: The groups that were answered about once, and the listed ones that are not watched.
        self._answered, self._left_out = set[str](), set[str]()
        #: The requests on which each broker closed the connection in this round.
        self._closed = Counter[int]()
        #: Whether any broker listed its groups in the last round.
        self.has_listed = False
        #: Why a broker did not list its groups in the last round; empty if each did.
        self.unlisted = ""
        #: The groups that were listed in the last round, and not answered about in full.
        self.unanswered: AbstractSet[str] = frozenset()

    async def round(
        self,
        watching: Watching,
        took: Took,
        spread_seconds: float = 0.0,
        is_held: Callable[[str], bool] = lambda _: True,
    ) -> bool:
        """Ask about every watched group once; return whether all brokers answered.

        ``is_held``: whether this instance has a group. The requests to a broker are spread over
        ``spread_seconds``. A group that is listed no more is
        gone if its coordinator says so. Raises KafkaError without any broker.
        """
        began, began_ms = time.monotonic(), now_ms()
        self._earlier, self._answers = self._answers, {}
        self._moved_before, self._moved = self._moved, set()
        self._closed.clear()
        self.unlisted = ""
        found = await self.listed()
        failed, there, left_out = set[int](), set[str](), set[str]()
        asking = []
        for broker, listed in found.items():
            if listed is None:
                failed.add(broker)
                continue
            groups = []
            for one in sorted(listed):
                # Behind one address for all brokers, each lists all groups.
                if one.group_type not in self._types or one.group in there:
                    continue
                if not is_held(one.group):
                    continue
                if not watching.is_watched(one.group):
                    left_out.add(one.group)
                    continue
                groups.append(one)
                there.add(one.group)
                self._listed[one.group] = broker, one.group_type
            asking.append(self._ask_in_parts(broker, groups, began, spread_seconds, took))
        self.has_listed = bool(asking)
        answered = set[str]().union(*await asyncio.gather(*asking))
        self.unanswered = there - answered
        await self._remove_gone(there, failed)
        if not failed:
            for group in self._left_out - left_out:
                watching.is_watched(group, gone=True)
            self._left_out = left_out
        self._forget(there)
        # A part of what is known of a group may have come without the rest.
        first = self._known.names() - answered - self._answered
        self._answered |= answered | first
        await took(began_ms, first)
        return not failed

    async def listed(self) -> dict[int, list[ListedGroup] | None]:
        """List the groups of each broker; None for a broker that did not list them.

        Raises KafkaError without any broker.
        """
        brokers = sorted(one.id for one in await self._protocol.brokers() if not one.fenced)
        if not brokers:
            raise KafkaConnectionError("every broker is fenced")
        found = await asyncio.gather(*map(self._list, brokers))
        return dict(zip(brokers, found, strict=True))

    async def _ask_in_parts(
        self,
        broker: int,
        groups: Sequence[ListedGroup],
        began: float,
        spread_seconds: float,
        took: Took,
    ) -> set[str]:
        parts = [groups[at : at + MOST_GROUPS] for at in range(0, len(groups), MOST_GROUPS)]
        all_answered = set[str]()
        for number, part in enumerate(parts):
            until = began + number * spread_seconds / len(parts)
            while (wait := until - time.monotonic()) > 0:
                await asyncio.sleep(min(wait, _PULSE_SECONDS))
                self._alive()
            asked_ms = now_ms()
            answered = await self._ask(broker, part)
            all_answered |= answered
            await took(asked_ms, answered)
        return all_answered

    async def _list(self, broker: int) -> list[ListedGroup] | None:
        try:
            version = await self._version(broker, Key.LIST_GROUPS)
            data = await self._protocol.connections.ask(broker, list_groups_call(version))
            code, groups = await decode(lambda raw: decode_listed_groups(raw, version), data)
            raise_for(code)
        except KafkaError as error:
            self.unlisted = f"broker {broker}: listing its groups: {error}"
            self._on_error(self.unlisted)
            return None
        finally:
            self._alive()
        fitting = [one for one in groups if len(one.group.encode()) <= _LONGEST_NAME]
        if len(fitting) < len(groups):
            self._on_error(
                f"broker {broker}: {len(groups) - len(fitting)} groups' names are too long"
            )
        return fitting

    async def _remove_gone(self, there: AbstractSet[str], failed: AbstractSet[int]) -> None:
        """Remove the groups that are listed no more, if their coordinators don't know them.

        A broker that starts lists none, and so do all while a coordinator is being replaced.
        """
        until = time.monotonic() - _REFUSED_SECONDS
        by_place: dict[tuple[int, str], list[str]] = {}
        moved: list[str] = []
        for group in sorted(self._known.names() - there):
            place = self._listed.get(group)
            if place is None:
                moved.append(group)
            elif place[0] not in failed and self._refused.get(group, until) <= until:
                by_place.setdefault(place, []).append(group)
        for (broker, group_type), names in by_place.items():
            for at in range(0, len(names), MOST_GROUPS):
                part = names[at : at + MOST_GROUPS]
                try:
                    moved += await self._remove_dead(broker, group_type, part)
                except KafkaError:
                    moved += part
        for group in random.sample(moved, min(_MOST_DOUBTED, len(moved))):
            place = self._listed.get(group)
            group_type = self._known.group_type(group) if place is None else place[1]
            try:
                broker = await find_coordinator(self._protocol.connections, group)
                left = await self._remove_dead(broker, group_type, [group])
                raise_for(NotCoordinatorError.errno if left else 0)
            except KafkaError as error:
                if isinstance(error, GroupAuthorizationFailedError):
                    self._refused[group] = time.monotonic()
                self._on_error(f"group {group!r:.80} is not listed, and may be there: {error}")

    async def _remove_dead(self, broker: int, group_type: str, groups: Sequence[str]) -> list[str]:
        """Remove those of some groups that don't exist; return those about which a broker can't say it.

        Raises KafkaError.
        """
        key = _DESCRIBE[group_type]
        try:
            try:
                version = await self._version(broker, key)
            except UnsupportedVersionError:
                # It says at least whether the broker coordinates the groups, which it doesn't list.
                key = Key.DESCRIBE_GROUPS
                version = await self._version(broker, key)
            call = describe_groups_call(groups, key, version)
            data = await self._protocol.connections.ask(broker, call)
            found = await decode(lambda raw: decode_described_groups(raw, key, version), data)
        finally:
            self._alive()
        left = set(groups)
        for one in found:
            # To DescribeGroups a group that does not exist is dead, which has no record.
            is_dead = not one.error_code and one.records == {}
            if one.group in left and (is_dead or one.error_code == _NO_SUCH_GROUP):
                self._known.gone(one.group)
            if not one.error_code or one.error_code == _NO_SUCH_GROUP:
                left.discard(one.group)
        return sorted(left)

    def _forget(self, there: AbstractSet[str]) -> None:
        names = there | self._known.names()
        self._answered &= names
        for group in self._listed.keys() - names:
            del self._listed[group]
            self._shares.forget(group)
        for refused in (self._refused, self._hidden):
            for group in refused.keys() - names:
                del refused[group]

    async def _ask(self, broker: int, groups: Sequence[ListedGroup]) -> set[str]:
        """Ask a coordinator about some of its groups; return those that it answered about."""
        until = time.monotonic() - _REFUSED_SECONDS
        asked = [one for one in groups if self._refused.get(one.group, until) <= until]
        share = {one.group for one in asked if one.group_type == SHARE}
        others = [one.group for one in asked if one.group not in share]
        committed = await self._fetch_offsets(broker, others)
        # Without its commits, a group's members would seem never to have committed.
        known = [
            one
            for one in asked
            if (one.group in share or one.group in self._known)
            and self._refused.get(one.group, until) <= until
        ]
        described = await self._describe(broker, known)
        return described & (committed | await self._how_far(broker, sorted(share & described)))

    async def _how_far(self, broker: int, groups: Sequence[str]) -> set[str]:
        try:
            return await self._shares.ask(broker, groups)
        except KafkaError as error:
            self._on_error(f"broker {broker}: lag of {len(groups)} share groups: {error}")
            return set()
        finally:
            self._alive()

    async def _describe(self, broker: int, groups: Sequence[ListedGroup]) -> set[str]:
        answered = set[str]()
        by_type: dict[str, list[str]] = {}
        until = time.monotonic() - _REFUSED_SECONDS
        for one in groups:
            if one.group_type == CLASSIC and one.state == EMPTY:
                answered.add(one.group)
                self._known.described(one.group, _without_members(one), now_ms())
            elif self._hidden.get(one.group, until) <= until:
                by_type.setdefault(one.group_type, []).append(one.group)
        for group_type, names in sorted(by_type.items()):
            key = _DESCRIBE[group_type]
            try:
                version = await self._version(broker, key)
            except UnsupportedVersionError as error:
                # Their members stay unknown; their commits are asked for all the same.
                self._on_error(f"broker {broker}: members of {len(names)} groups: {error}")
                for name in names:
                    self._known.described(name, {}, now_ms())
                answered.update(names)
                continue
            except KafkaError as error:
                self._on_error(f"broker {broker}: members of {len(names)} groups: {error}")
                continue
            question = _Question(
                "members",
                partial(describe_groups_call, key=key, version=version),
                partial(decode_described_groups, key=key, version=version),
                self._take_described,
            )
            answered |= await self._answers_about(broker, names, question)
        for one in groups:
            if one.group in self._hidden:  # its commits are answered about all the same
                answered.add(one.group)
                self._known.described(one.group, {}, now_ms())
        return answered

    async def _fetch_offsets(self, broker: int, groups: Sequence[str]) -> set[str]:
        if not groups:
            return set()
        try:
            version = await self._version(broker, Key.OFFSET_FETCH)
        except KafkaError as error:
            self._on_error(f"broker {broker}: commits of {len(groups)} groups: {error}")
            return set()
        question = _Question(
            "commits",
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
        try:
            data = await self._protocol.connections.ask(broker, call)
        except KafkaError as error:
            if len(groups) > 1 and await self._was_closed(broker, error):
                return await self._in_halves(broker, groups, question)
            self._report(broker, groups, question, error)
            return set()
        finally:
            self._alive()
        digest = hash(data[_THROTTLE_BYTES:])
        before = self._answers.get((broker, call)) or self._earlier.get((broker, call))
        if before is not None and before[0] == digest:
            self._answers[broker, call] = before
            return before[1]
        try:
            found = await decode(question.decode, data)
        except KafkaError as error:
            if len(groups) > 1:
                return await self._in_halves(broker, groups, question)
            self._report(broker, groups, question, error)
            return set()
        left, answered = set(groups), set[str]()
        for one in found:
            # The answer of an old version is about one group, and doesn't name it.
            name = one.group or groups[0]
            if name not in left:
                continue
            left.discard(name)
            if self._has_answer(broker, name, one.error_code) and question.take(name, one):
                answered.add(name)
        if left:
            why = KafkaError("the answer leaves them out")
            self._report(broker, sorted(left), question, why)
        elif len(answered) == len(groups):  # what failed is told again
            self._answers[broker, call] = digest, answered
        return answered

    async def _in_halves(
        self, broker: int, groups: Sequence[str], question: _Question[_Answered]
    ) -> set[str]:
        """Ask about each half of the groups: one group's answer costs no other group's."""
        half = len(groups) // 2
        first = await self._answers_about(broker, groups[:half], question)
        return first | await self._answers_about(broker, groups[half:], question)

    async def _was_closed(self, broker: int, error: KafkaError) -> bool:
        """Return whether a broker closed the connection on a request, and takes another one."""
        if not isinstance(error, KafkaConnectionError) or self._closed[broker] >= _MOST_CLOSED:
            return False
        self._closed[broker] += 1
        try:
            await self._protocol.offered(broker)
        except KafkaError:
            return False
        return True

    def _report(
        self, broker: int, groups: Sequence[str], question: _Question[_Answered], error: KafkaError
    ) -> None:
        about = f"{len(groups)} groups" if len(groups) > 1 else f"group {groups[0]!r:.80}"
        self._on_error(f"broker {broker}: {question.what} of {about}: {error}")

    def _has_answer(self, broker: int, group: str, code: int) -> bool:
        if not code:
            return True
        if code == GroupAuthorizationFailedError.errno:
            self._refused[group] = time.monotonic()
            self._on_error(f"group {group!r:.80}: missing: DESCRIBE on the group")
            return False
        if code == TopicAuthorizationFailedError.errno:
            self._hidden[group] = time.monotonic()
            self._on_error(
                f"members of {group!r:.80}: missing: DESCRIBE on all topics that it reads"
            )
            return False
        if code in _MOVED:
            self._moved.add(group)
            if group not in self._moved_before:
                return False
        if code != _NO_SUCH_GROUP:
            self._on_error(f"broker {broker}: group {group!r:.80}: {for_code(code).__name__}")
        return False

    def _take_described(self, group: str, found: DescribedGroup) -> bool:
        self._hidden.pop(group, None)
        if found.records is not None:
            self._known.described(group, found.records, now_ms())
        return True

    def _take_committed(self, group: str, found: CommittedOffsets) -> bool:
        """Take in a group's commits; return whether they are all there."""
        self._refused.pop(group, None)
        self._known.committed(group, found.topics, now_ms(), whole=not found.refused)
        if found.refused:
            self._on_error(
                f"group {group!r:.80}: commits of {found.refused} partitions are refused"
            )
        return not found.refused


def _without_members(listed: ListedGroup) -> dict[AskedKey, AskedRecord]:
    """Return the record of a classic group without members; a group of commits alone has none."""
    if not listed.protocol_type:
        return {}
    metadata = GroupMetadata(listed.protocol_type, -1, None, None, -1, ())
    return {GroupKey(listed.group): metadata}

"""Ask a coordinator about some of its groups, and take in what differs from its last answers."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
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
from caughtup.agents.kafka.asking.shares import SharePositions
from caughtup.agents.kafka.protocol.client import ClusterProtocol
from caughtup.agents.kafka.protocol.decoding import decode
from caughtup.agents.kafka.protocol.described.calls import (
    MANY_GROUPS_VERSION,
    VERSIONS,
    describe_groups_call,
    offset_fetch_call,
)
from caughtup.agents.kafka.protocol.described.committed_offsets import (
    CommittedOffsets,
    decode_committed_offsets,
)
from caughtup.agents.kafka.protocol.described.groups import (
    EMPTY,
    GroupRecords,
    decode_described_groups,
)
from caughtup.agents.kafka.protocol.described.listed_groups import CLASSIC, ListedGroup
from caughtup.agents.kafka.protocol.described.share_groups import (
    ShareOffsets,
    decode_share_offsets,
    share_offsets_call,
)
from caughtup.agents.kafka.protocol.requests import Call, Key
from caughtup.agents.kafka.recent_names import RecentNames
from caughtup.models.polls.asked import AskedGroups, AskedKey, AskedRecord
from caughtup.models.wire.consumer_offsets import GroupKey
from caughtup.models.wire.group_metadata import GroupMetadata
from caughtup.models.wire.share_groups import SHARE

#: The request that describes groups of each type that ListGroups names.
DESCRIBE = {
    CLASSIC: Key.DESCRIBE_GROUPS,
    "consumer": Key.CONSUMER_GROUP_DESCRIBE,
    "streams": Key.STREAMS_GROUP_DESCRIBE,
    SHARE: Key.SHARE_GROUP_DESCRIBE,
}
#: The error of a group that was deleted between two requests (GROUP_ID_NOT_FOUND).
NO_SUCH_GROUP = 69
#: What an answer begins with before its own content: for how long the broker makes us wait; and the
#: longest that is believed, which is the time over which Kafka's quotas count by default.
_THROTTLE_BYTES = 4
MOST_THROTTLED_SECONDS = 10.0
#: A pause is no longer than this without a sign of life.
PULSE_SECONDS = 5.0
#: The most requests that are made again in halves, by broker and round, after the broker closed the
#: connection on them: one group's answer may be the reason.
_MOST_CLOSED = 16
#: The errors of a coordinator that another broker replaces: the next listing names that one.
_MOVED: frozenset[int] = frozenset(
    kind.errno
    for kind in (CoordinatorLoadInProgressError, CoordinatorNotAvailableError, NotCoordinatorError)
)

_Answered = TypeVar("_Answered", GroupRecords, CommittedOffsets, ShareOffsets)


class _Question(NamedTuple, Generic[_Answered]):
    """What is asked for, in a word; the request about some groups, and how its answer is taken in.

    ``always``: an answer is taken in though it is the same as the last one.
    """

    what: str
    make: Callable[[Sequence[str]], Call]
    decode: Callable[[bytes], list[_Answered]]
    take: Callable[[str, _Answered], bool]
    always: bool = False


class Answers:
    """Asks coordinators about groups, and takes what differs from the last answers into ``known``.

    ``on_error`` is called with a sentence on each failure, ``alive`` after each answer. ``refused`` are the
    groups that we may not describe: they are not asked about again for ten minutes.
    """

    def __init__(
        self,
        protocol: ClusterProtocol,
        known: AskedGroups,
        on_error: Callable[[str], object],
        alive: Callable[[], object],
    ) -> None:
        self._protocol = protocol
        self._known = known
        self._on_error = on_error
        self._alive = alive
        self._shares = SharePositions(protocol, known, on_error)
        # By broker and request: the hash of the last answer, and the groups that it was about. Of the
        # requests of this round, and of those of the last one.
        self._answers: dict[tuple[int, Call], tuple[int, set[str]]] = {}
        self._earlier: dict[tuple[int, Call], tuple[int, set[str]]] = {}
        self.refused = RecentNames()
        #: The groups whose members were refused, since they read topics that are hidden.
        self._hidden = RecentNames()
        #: The groups whose coordinator said in this round, and in the last one, that it is another one.
        self._moved, self._moved_before = set[str](), set[str]()
        #: The requests on which each broker closed the connection in this round.
        self._closed = Counter[int]()
        #: For how long brokers made us wait so far, by their quotas (s).
        self.throttled_seconds = 0.0
        #: Until when each broker takes no more requests, in monotonic seconds.
        self._throttled_until: dict[int, float] = {}

    def begin_round(self) -> None:
        """Begin a round, in which every group is asked about once."""
        self._earlier, self._answers = self._answers, {}
        self._moved_before, self._moved = self._moved, set()
        self._closed.clear()

    def keep_only(self, groups: AbstractSet[str]) -> None:
        """Forget all other groups."""
        self.refused.keep_only(groups)
        self._hidden.keep_only(groups)
        self._shares.keep_only(groups)

    async def ask(self, broker: int, groups: Sequence[ListedGroup]) -> set[str]:
        """Ask a coordinator about some of its groups; return those that it answered about."""
        asked = [one for one in groups if one.group not in self.refused]
        share = {one.group for one in asked if one.group_type == SHARE}
        others = [one.group for one in asked if one.group not in share]
        committed = await self._fetch_offsets(broker, others)
        # Without its commits, a group's members would seem never to have committed.
        known = [
            one
            for one in asked
            if (one.group in share or one.group in self._known) and one.group not in self.refused
        ]
        described = await self._describe(broker, known)
        return described & (committed | await self._how_far(broker, sorted(share & described)))

    async def _how_far(self, broker: int, groups: Sequence[str]) -> set[str]:
        """Ask how far share groups are; return those that were answered about."""
        if not groups:
            return set()
        key = Key.DESCRIBE_SHARE_GROUP_OFFSETS
        found: dict[str, ShareOffsets] = {}

        async def ask() -> dict[str, ShareOffsets]:
            version = await self._protocol.version(broker, key, VERSIONS[key])
            question = _Question(
                "lag",
                partial(share_offsets_call, version=version),
                partial(decode_share_offsets, version=version),
                take,
                always=True,
            )
            found.clear()
            await self._answers_about(broker, groups, question)
            return dict(found)

        def take(group: str, one: ShareOffsets) -> bool:
            found[group] = one
            return True

        try:
            return await self._shares.take(groups, ask)
        except KafkaError as error:
            self._on_error(f"broker {broker}: lag of {len(groups)} share groups: {error}")
            return set()

    async def _describe(self, broker: int, groups: Sequence[ListedGroup]) -> set[str]:
        answered = set[str]()
        by_type: dict[str, list[str]] = {}
        for one in groups:
            if one.group_type == CLASSIC and one.state == EMPTY:
                answered.add(one.group)
                self._known.described(one.group, _without_members(one), now_ms())
            elif one.group not in self._hidden:
                by_type.setdefault(one.group_type, []).append(one.group)
        for group_type, names in sorted(by_type.items()):
            key = DESCRIBE[group_type]
            try:
                version = await self._protocol.version(broker, key, VERSIONS[key])
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
        hidden = self._hidden.known()
        for one in groups:
            if one.group in hidden:  # its commits are answered about all the same
                answered.add(one.group)
                self._known.described(one.group, {}, now_ms())
        return answered

    async def _fetch_offsets(self, broker: int, groups: Sequence[str]) -> set[str]:
        if not groups:
            return set()
        try:
            version = await self._protocol.version(
                broker, Key.OFFSET_FETCH, VERSIONS[Key.OFFSET_FETCH]
            )
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

    async def _answers_about(
        self, broker: int, groups: Sequence[str], question: _Question[_Answered]
    ) -> set[str]:
        """Ask about groups and take the answers; return the groups that were answered about."""
        if not groups:
            return set()
        call = question.make(groups)
        await self._throttled(broker)
        try:
            data = await self._protocol.connections.ask(broker, call)
        except KafkaError as error:
            if len(groups) > 1 and await self._was_closed(broker, error):
                return await self._in_halves(broker, groups, question)
            self._report(broker, groups, question, error)
            return set()
        finally:
            self._alive()
        self._note_throttle(broker, int.from_bytes(data[:_THROTTLE_BYTES], signed=True))
        digest = hash(data[_THROTTLE_BYTES:])
        before = self._answers.get((broker, call)) or self._earlier.get((broker, call))
        if before is not None and before[0] == digest and not question.always:
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

    def _note_throttle(self, broker: int, milliseconds: int) -> None:
        """Note for how long a broker takes no more requests, by its quotas: ten seconds at most.

        It would answer no sooner, so that the next request would seem to hang. Source: KIP-219.
        """
        seconds = min(max(milliseconds, 0) / 1000, MOST_THROTTLED_SECONDS)
        self.throttled_seconds += seconds
        self._throttled_until[broker] = time.monotonic() + seconds

    async def _throttled(self, broker: int) -> None:
        """Wait until a broker takes requests again."""
        while (left := self._throttled_until.get(broker, 0.0) - time.monotonic()) > 0:
            await asyncio.sleep(min(left, PULSE_SECONDS))
            self._alive()

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
            self.refused.add(group)
            self._on_error(f"group {group!r:.80}: missing: DESCRIBE on the group")
            return False
        if code == TopicAuthorizationFailedError.errno:
            self._hidden.add(group)
            self._on_error(
                f"members of {group!r:.80}: missing: DESCRIBE on all topics that it reads"
            )
            return False
        if code in _MOVED:
            self._moved.add(group)
            if group not in self._moved_before:
                return False
        if code != NO_SUCH_GROUP:
            self._on_error(f"broker {broker}: group {group!r:.80}: {for_code(code).__name__}")
        return False

    def _take_described(self, group: str, found: GroupRecords) -> bool:
        self._hidden.drop(group)
        if found.records is not None:
            self._known.described(group, found.records, now_ms())
        return True

    def _take_committed(self, group: str, found: CommittedOffsets) -> bool:
        """Take in a group's commits; return whether they are all there."""
        self.refused.drop(group)
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

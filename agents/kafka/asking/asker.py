"""Ask coordinators about all their groups, in rounds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from collections.abc import Set as AbstractSet

from aiokafka.errors import KafkaConnectionError, KafkaError

from caughtup.agents.clock import now_ms
from caughtup.agents.kafka.asking.answers import DESCRIBE, PULSE_SECONDS, Answers
from caughtup.agents.kafka.asking.gone import MOST_GROUPS, GoneGroups
from caughtup.agents.kafka.protocol.client import ClusterProtocol
from caughtup.agents.kafka.protocol.connection import raise_for
from caughtup.agents.kafka.protocol.decoding import decode
from caughtup.agents.kafka.protocol.described.calls import (
    LISTED_TYPES_VERSION,
    VERSIONS,
    list_groups_call,
)
from caughtup.agents.kafka.protocol.described.listed_groups import (
    CLASSIC,
    ListedGroup,
    decode_listed_groups,
)
from caughtup.agents.kafka.protocol.requests import Key
from caughtup.models.polls.asked import AskedGroups
from caughtup.models.watching import Watching
from caughtup.models.wire.share_groups import SHARE

#: All types of groups, and those whose records in the log are not decoded.
ALL_TYPES, NOT_IN_LOG = frozenset(DESCRIBE), frozenset({SHARE})
#: The longest name that requests and records of commits can have, in bytes.
_LONGEST_NAME = 0x7FFF

#: Called after each request about some groups, with the time (ms) before it and those that were
#: answered about.
Took = Callable[[int, AbstractSet[str]], Awaitable[object]]


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
        self._protocol = protocol
        self._known = known
        self._on_error = on_error
        self._types = types
        self._alive = alive
        self._answers = Answers(protocol, known, on_error, alive)
        self._gone = GoneGroups(protocol, known, on_error, alive, self._answers.refused)
        #: The groups that were answered about once, and the listed ones that are not watched.
        self._answered, self._left_out = set[str](), set[str]()
        #: Whether any broker listed its groups in the last round.
        self.has_listed = False
        #: Why a broker did not list its groups in the last round; empty if each did.
        self.unlisted = ""
        #: The groups that were listed in the last round, and not answered about in full.
        self.unanswered: AbstractSet[str] = frozenset()

    @property
    def left_out(self) -> AbstractSet[str]:
        """The groups that were listed in the last whole round, and are not watched."""
        return self._left_out

    @property
    def throttled_seconds(self) -> float:
        """For how long brokers made us wait so far, by their quotas (s)."""
        return self._answers.throttled_seconds

    async def round(
        self,
        watching: Watching,
        took: Took,
        spread_seconds: float = 0.0,
        is_held: Callable[[str], bool] = lambda _: True,
    ) -> bool:
        """Ask about every watched group once; return whether all brokers answered.

        ``is_held``: whether this instance has a group. The requests to a broker are spread over
        ``spread_seconds``. A group that is listed no more is gone if its coordinator says so. Raises
        KafkaError without any broker.
        """
        began, began_ms = time.monotonic(), now_ms()
        self._answers.begin_round()
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
                self._gone.listed[one.group] = broker, one.group_type
            asking.append(self._ask_in_parts(broker, groups, began, spread_seconds, took))
        self.has_listed = bool(asking)
        answered = set[str]().union(*await asyncio.gather(*asking))
        self.unanswered = there - answered
        for group in sorted(self._known.names()):
            if not is_held(group):  # what is known of it is another instance's, until it comes back
                self._known.gone(group)
        await self._gone.remove(there, failed)
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
                await asyncio.sleep(min(wait, PULSE_SECONDS))
                self._alive()
            asked_ms = now_ms()
            answered = await self._answers.ask(broker, part)
            all_answered |= answered
            await took(asked_ms, answered)
        return all_answered

    async def _list(self, broker: int) -> list[ListedGroup] | None:
        try:
            offered = await self._protocol.offered(broker)
            newest = offered.requests.get(Key.LIST_GROUPS, (0, 0))[1]
            if CLASSIC not in self._types and newest < LISTED_TYPES_VERSION:
                return []  # before 3.8 there are no share groups
            version = await self._protocol.version(
                broker, Key.LIST_GROUPS, VERSIONS[Key.LIST_GROUPS]
            )
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

    def _forget(self, there: AbstractSet[str]) -> None:
        names = there | self._known.names()
        self._answered &= names
        self._answers.keep_only(names)
        self._gone.keep_only(names)

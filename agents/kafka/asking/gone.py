"""Remove the groups that are gone: a listing without a group does not mean that."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet

from aiokafka.errors import (
    GroupAuthorizationFailedError,
    KafkaError,
    NotCoordinatorError,
    UnsupportedVersionError,
)

from caughtup.agents.kafka.asking.answers import DESCRIBE, NO_SUCH_GROUP
from caughtup.agents.kafka.protocol.client import ClusterProtocol
from caughtup.agents.kafka.protocol.connection import raise_for
from caughtup.agents.kafka.protocol.decoding import decode
from caughtup.agents.kafka.protocol.described.calls import VERSIONS, describe_groups_call
from caughtup.agents.kafka.protocol.described.groups import decode_described_groups
from caughtup.agents.kafka.protocol.groups import find_coordinator
from caughtup.agents.kafka.protocol.requests import Key
from caughtup.agents.kafka.recent_names import RecentNames
from caughtup.models.polls.asked import AskedGroups

#: The most groups of one request: an answer has their members' subscriptions and assignments.
MOST_GROUPS = 50
#: The most groups of a round whose coordinators are asked whether they are gone.
_MOST_DOUBTED = 200


class GoneGroups:
    """Asks coordinators whether groups are gone, and removes those from ``known``.

    ``listed`` has the broker that last listed each group, and the group's type.
    """

    def __init__(
        self,
        protocol: ClusterProtocol,
        known: AskedGroups,
        on_error: Callable[[str], object],
        alive: Callable[[], object],
        refused: RecentNames,
    ) -> None:
        self._protocol = protocol
        self._known = known
        self._on_error = on_error
        self._alive = alive
        self._refused = refused
        self.listed: dict[str, tuple[int, str]] = {}

    def keep_only(self, groups: AbstractSet[str]) -> None:
        """Forget all other groups."""
        for group in self.listed.keys() - groups:
            del self.listed[group]

    async def remove(self, there: AbstractSet[str], failed: AbstractSet[int]) -> None:
        """Remove the groups that are listed no more, if their coordinators don't know them.

        A broker that starts lists none, and so do all while a coordinator is being replaced.
        """
        by_place: dict[tuple[int, str], list[str]] = {}
        moved: list[str] = []
        for group in sorted(self._known.names() - there):
            place = self.listed.get(group)
            if place is None:
                moved.append(group)
            elif place[0] not in failed and group not in self._refused:
                by_place.setdefault(place, []).append(group)
        for (broker, group_type), names in by_place.items():
            for at in range(0, len(names), MOST_GROUPS):
                part = names[at : at + MOST_GROUPS]
                try:
                    moved += await self._remove_dead(broker, group_type, part)
                except KafkaError:
                    moved += part
        for group in random.sample(moved, min(_MOST_DOUBTED, len(moved))):
            place = self.listed.get(group)
            group_type = self._known.group_type(group) if place is None else place[1]
            try:
                broker = await find_coordinator(self._protocol.connections, group)
                left = await self._remove_dead(broker, group_type, [group])
                raise_for(NotCoordinatorError.errno if left else 0)
            except KafkaError as error:
                if isinstance(error, GroupAuthorizationFailedError):
                    self._refused.add(group)
                self._on_error(f"group {group!r:.80} is not listed, and may be there: {error}")

    async def _remove_dead(self, broker: int, group_type: str, groups: Sequence[str]) -> list[str]:
        """Remove those of some groups that don't exist; return those about which a broker can't say it.

        Raises KafkaError.
        """
        key = DESCRIBE[group_type]
        try:
            try:
                version = await self._protocol.version(broker, key, VERSIONS[key])
            except UnsupportedVersionError:
                # It says at least whether the broker coordinates the groups, which it doesn't list.
                key = Key.DESCRIBE_GROUPS
                version = await self._protocol.version(broker, key, VERSIONS[key])
            call = describe_groups_call(groups, key, version)
            data = await self._protocol.connections.ask(broker, call)
            found = await decode(lambda raw: decode_described_groups(raw, key, version), data)
        finally:
            self._alive()
        left = set(groups)
        for one in found:
            # To DescribeGroups a group that does not exist is dead, which has no record.
            is_dead = not one.error_code and one.records == {}
            if one.group in left and (is_dead or one.error_code == NO_SUCH_GROUP):
                self._known.gone(one.group)
            if not one.error_code or one.error_code == NO_SUCH_GROUP:
                left.discard(one.group)
        return sorted(left)

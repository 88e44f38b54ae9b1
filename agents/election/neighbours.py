"""The other instances in the group, and those of them that are known to be dead."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from aiokafka.errors import KafkaError

from caughtup.agents.election.instance import Instance
from caughtup.agents.election.instances import PROTOCOL_TYPE, Subscription, read_subscriptions
from caughtup.agents.election.member import GroupMember

log = logging.getLogger(__name__)


class Neighbours:
    """Remembers who else is a member, and removes whose process has ended.

    Nobody then has to wait until their sessions end. Only processes that this machine can see are
    known to have ended (``Instance.is_dead``).
    """

    def __init__(self, member: GroupMember, own: Instance) -> None:
        self._member = member
        self._own = own
        self._others: dict[str, Instance] = {}

    async def find(self) -> None:
        """Ask the coordinator who is there. Raises KafkaError."""
        described = await self._member.describe()
        if described.protocol_type == PROTOCOL_TYPE:
            members = {member.member_id: member.subscription for member in described.members}
            self.take(read_subscriptions(members))

    def take(self, said_by: Mapping[str, Subscription]) -> None:
        """Note what all members said of themselves, by id."""
        self._others = {
            member_id: said.instance
            for member_id, said in said_by.items()
            if said.instance != self._own
        }

    def note(self, member_id: str, instance: Instance) -> None:
        """Note who one member is."""
        if instance != self._own:
            self._others[member_id] = instance

    async def remove_dead(self) -> bool:
        """Remove the dead from the group, and return whether there were any."""
        dead = {member: other for member, other in self._others.items() if other.is_dead()}
        if not dead:
            return False
        try:
            await self._member.remove(sorted(dead))
        except (KafkaError, OSError, TimeoutError) as error:
            log.debug("removing dead members: %s", error)
            return False
        for member_id, other in sorted(dead.items()):
            del self._others[member_id]
            log.info("removed the dead member %s from the group", other.name)
        return True

"""What instances of the service with the same settings say to each other in their group."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from caughtup.agents.election.instance import Instance
from caughtup.agents.kafka.config import aiokafka_config
from caughtup.agents.kafka.protocol.client import ClusterProtocol
from caughtup.agents.kafka.protocol.groups import (
    DescribedMember,
    describe_group,
    once_coordinated,
)
from caughtup.agents.kafka.protocol.membership import JoinGroupSettings
from caughtup.agents.settings import Settings
from caughtup.models.election import Candidate

PROTOCOL_TYPE = "caughtup"
#: Goes up when what is said changes so that older instances couldn't read it.
_PROTOCOL = "active-1"
#: As short as brokers allow by default, since nobody is active for that long after a SIGKILL.
_SESSION_MS = 6_000
_REBALANCE_MS = 10_000
_PATIENCE_SECONDS = 5.0
_RETRY_SECONDS = 0.2


class Subscription(msgspec.Struct, frozen=True):
    """What an instance says of itself when it joins; see Candidate."""

    instance: Instance
    active: bool
    caught_up: bool
    since_ms: int

    def candidate(self) -> Candidate:
        """Return what counts in an election."""
        return Candidate(self.instance.name, self.active, self.caught_up, self.since_ms)


class Assignment(msgspec.Struct, frozen=True):
    """What every member is assigned: which of them is the active one."""

    member_id: str
    instance: Instance


class Instances(NamedTuple):
    """The names of the instances that are there: the active one, and those that stand by."""

    active: str | None
    standby: tuple[str, ...]


_decode_subscription = msgspec.json.Decoder(Subscription).decode
_decode_assignment = msgspec.json.Decoder(Assignment).decode


def joining(settings: Settings) -> JoinGroupSettings:
    """Return what all instances with these settings agree about."""
    return JoinGroupSettings(
        settings.application_id, PROTOCOL_TYPE, _PROTOCOL, _SESSION_MS, _REBALANCE_MS
    )


def read_subscriptions(members: Mapping[str, bytes]) -> dict[str, Subscription]:
    """Read what members say of themselves, by id; what isn't one of ours is left out."""
    found = {}
    for member_id, raw in members.items():
        try:
            found[member_id] = _decode_subscription(raw)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            continue
    return found


def read_assignment(raw: bytes) -> Assignment | None:
    """Read who is active; None if that isn't said."""
    try:
        return _decode_assignment(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def list_instances(settings: Settings) -> Instances:
    """Ask the group which instances there are. Raises aiokafka's KafkaError, OSError, TimeoutError.

    While the group rebalances brokers tell nobody's name: that is waited out for some seconds.
    """
    return instances_of(asyncio.run(_members(settings)))


def instances_of(members: Iterable[DescribedMember]) -> Instances:
    """Separate the active one of a group's members from the others."""
    described = list(members)
    subscriptions = read_subscriptions({m.member_id: m.subscription for m in described})
    assignments = {read_assignment(member.assignment) for member in described} - {None}
    active = {assignment.member_id for assignment in assignments if assignment is not None}
    names = {member_id: said.instance.name for member_id, said in subscriptions.items()}
    standby = sorted(name for member_id, name in names.items() if member_id not in active)
    return Instances(
        next((names[member_id] for member_id in sorted(active & names.keys())), None),
        tuple(standby),
    )


async def _members(settings: Settings) -> tuple[DescribedMember, ...]:
    async with ClusterProtocol(aiokafka_config(settings)) as protocol:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            described = await once_coordinated(
                lambda: describe_group(protocol.connections, settings.application_id)
            )
            is_complete = all(member.subscription for member in described.members)
            if is_complete or time.monotonic() > deadline:
                return described.members
            await asyncio.sleep(_RETRY_SECONDS)

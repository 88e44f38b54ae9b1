"""The instances of the service in their group: what each sends, who is active, who is dead."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import socket
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Self

import msgspec
from aiokafka.errors import KafkaError

from caughtup.agents.election.member import ClassicGroupMember
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
from caughtup.models.sharing import MOST_INSTANCES, Claim, PartitionShare, Peer

log = logging.getLogger(__name__)

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_NAMESPACE = Path("/proc/self/ns/pid")
#: The fields of /proc/PID/stat after the program's name: the state, and the start in clock ticks.
_STATE, _STARTED = 0, 19
_ENDED = ("Z", "X")
_SIGNING_KEY, TOPIC_PREFIX = "signing_key_file", "topic_prefix"
#: Settings that change what an instance publishes: all instances need the same values.
_PUBLISHED_BY = (
    "applications",
    "connect_topics",
    "ignore_groups",
    "ignore_topics",
    "reassignment_budget",
    _SIGNING_KEY,
    TOPIC_PREFIX,
    "watch_groups",
    "watch_topics",
    "workers",
)
#: Of a digest, enough to tell settings apart, and too little to guess a key of 32 bytes by.
_DIGITS = 16
PROTOCOL_TYPE = "caughtup"
#: One instance is active; or all share the partitions of ``__consumer_offsets``. The number goes up
#: when older instances could no longer read the subscriptions.
ACTIVE, SHARED = "active-1", "shared-1"
#: As short as brokers allow by default: after a SIGKILL no instance is active for that long.
_SESSION_MS = 6_000
_REBALANCE_MS = 10_000
#: More than any ``__consumer_offsets`` has. Sets of that many numbers are made.
_MOST_PARTITIONS = 100_000
_PATIENCE_SECONDS = 5.0
_RETRY_SECONDS = 0.2


class ServiceInstance(msgspec.Struct, frozen=True):
    """A process of the service: host, process id, and start in clock ticks since the boot.

    ``place`` is the machine's boot id and the namespace of process ids: processes with the same
    place see each other. It is None if the system is not Linux.
    """

    host: str
    pid: int
    place: str | None = None
    started: int | None = None

    @classmethod
    def current(cls) -> Self:
        """Describe this process."""
        stat = _process_stat(os.getpid())
        return cls(socket.gethostname(), os.getpid(), _place(), stat[1] if stat else None)

    @property
    def name(self) -> str:
        """The name that is shown: host:pid."""
        return f"{self.host}:{self.pid}"

    def is_dead(self) -> bool:
        """Return whether this process has certainly ended; False if that cannot be known."""
        if self.place is None or self.place != _place():
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except (OSError, OverflowError):
            return False  # it exists, and belongs to another user
        stat = _process_stat(self.pid)
        if stat is None or self.started is None:
            return False
        state, started = stat
        return state in _ENDED or started != self.started


def _place() -> str | None:
    try:
        return f"{_BOOT_ID.read_text().strip()} {_NAMESPACE.readlink()}"
    except OSError:
        return None


def _process_stat(pid: int) -> tuple[str, int] | None:
    """Return a process's state and start in clock ticks; None if they cannot be read."""
    try:
        # The program's name, in parentheses, may hold any bytes.
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return fields[_STATE].decode(), int(fields[_STARTED])
    except (OSError, ValueError, IndexError):
        return None


class Subscription(msgspec.Struct, frozen=True):
    """The subscription of an instance, as JSON in JoinGroup; see Candidate.

    ``settings``: a digest of each setting that all instances need alike; none of an earlier release.
    ``partitions`` and ``slot``: see Claim; ``address``: the URL of its web port; all of instances
    that share the work.
    """

    instance: ServiceInstance
    active: bool
    caught_up: bool
    since_ms: int
    settings: dict[str, str] = {}
    partitions: tuple[int, ...] = ()
    slot: int | None = None
    address: str = ""

    def candidate(self) -> Candidate:
        """Return this instance as a candidate of the election."""
        return Candidate(self.instance.name, self.active, self.caught_up, self.since_ms)

    def claim(self) -> Claim:
        """Return what this instance has of the shared work."""
        return Claim(frozenset(self.partitions), self.slot, self.since_ms)


class Assignment(msgspec.Struct, frozen=True):
    """The assignment of every member, as JSON in SyncGroup.

    It says which instance is active; or, if all share the work, which one led the group's last
    rebalance, and what each member has: ``shares`` by member id, of ``count`` partitions. ``peers``
    has their names and addresses.
    """

    member_id: str
    instance: ServiceInstance
    shares: dict[str, PartitionShare] = {}
    peers: dict[str, Peer] = {}
    count: int = 0


class InstanceNames(NamedTuple):
    """The names of the instances in the group: those that have groups, and those that stand by."""

    active: tuple[str, ...]
    standby: tuple[str, ...]


_decode_subscription = msgspec.json.Decoder(Subscription).decode
_decode_assignment = msgspec.json.Decoder(Assignment).decode


def join_settings(settings: Settings) -> JoinGroupSettings:
    """Return the group, protocol and time-outs for instances with these settings."""
    return JoinGroupSettings(
        settings.application_id, PROTOCOL_TYPE, (ACTIVE,), _SESSION_MS, _REBALANCE_MS
    )


def setting_digests(settings: Settings) -> dict[str, str]:
    """Return a digest of each setting that goes into what the active instance publishes."""
    values = {name: _jsonable(getattr(settings, name)) for name in _PUBLISHED_BY}
    if settings.signing_key_file is not None:
        values[_SIGNING_KEY] = "unreadable"  # wherever it is: the same key is the same setting
        with suppress(OSError):
            values[_SIGNING_KEY] = settings.signing_key_file.read_bytes().hex()
    return {
        name: hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:_DIGITS]
        for name, value in sorted(values.items())
    }


def _jsonable(value: object) -> Any:
    """Return a setting's value as JSON has it, in which the keys of tables are text."""
    return msgspec.to_builtins(value, str_keys=True, enc_hook=str)


def read_subscriptions(members: Mapping[str, bytes]) -> dict[str, Subscription]:
    """Decode members' subscriptions, by member id; those of other programs are left out."""
    found = {}
    for member_id, raw in members.items():
        try:
            found[member_id] = _decode_subscription(raw)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            continue
    return found


def read_assignment(raw: bytes) -> Assignment | None:
    """Decode an assignment; return None if it is not one of ours, or has impossible numbers."""
    try:
        found = _decode_assignment(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    is_possible = 0 <= found.count <= _MOST_PARTITIONS and all(
        (share.slot is None or 0 <= share.slot < MOST_INSTANCES)
        and all(0 <= number < found.count for number in share.partitions)
        for share in found.shares.values()
    )
    return found if is_possible else None


def list_instances(settings: Settings) -> InstanceNames:
    """Return the names of the instances in the group.

    Waits up to 5 s for a rebalance to end: during one, subscriptions are not in the answer. Raises
    aiokafka's KafkaError, OSError, TimeoutError.
    """
    return instances_of(asyncio.run(_members(settings)))


def instances_of(members: Iterable[DescribedMember]) -> InstanceNames:
    """Return the names of the instances among a group's members, active and standing by."""
    described = list(members)
    subscriptions = read_subscriptions({m.member_id: m.subscription for m in described})
    active: set[str] = set()
    for assignment in (read_assignment(member.assignment) for member in described):
        if assignment is not None:
            shares = assignment.shares.items()
            having = {member_id for member_id, share in shares if share.partitions}
            active |= having if shares else {assignment.member_id}
    names = {
        member_id: subscription.instance.name for member_id, subscription in subscriptions.items()
    }
    return InstanceNames(
        tuple(names[member_id] for member_id in sorted(active & names.keys())),
        tuple(sorted(name for member_id, name in names.items() if member_id not in active)),
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


class OtherInstances:
    """The other members of the group; removes those whose process has ended.

    So the group need not wait for the end of their sessions. Only processes on this machine can be
    known to have ended (``ServiceInstance.is_dead``).
    """

    def __init__(self, member: ClassicGroupMember, own: ServiceInstance) -> None:
        self._member = member
        self._own = own
        self._others: dict[str, ServiceInstance] = {}
        #: The group's protocol when it was looked for; empty during a rebalance, None without members.
        self.protocol: str | None = ""
        #: The settings of this instance, as in its subscription.
        self.own_settings: Mapping[str, str] = {}
        #: By the name of another instance: the settings in which it differs from this one.
        self.differing: dict[str, tuple[str, ...]] = {}

    async def find(self) -> None:
        """Ask the coordinator for the group's members, unless it rebalances. Raises KafkaError."""
        described = await self._member.describe()
        self.protocol = described.protocol if described.members else None
        if described.protocol_type != PROTOCOL_TYPE:
            return
        members = {member.member_id: member.subscription for member in described.members}
        if found := read_subscriptions(members):
            self.take(found)

    def take(self, subscriptions: Mapping[str, Subscription]) -> None:
        """Replace the known members by those with these subscriptions, by member id."""
        others = {
            member_id: subscription
            for member_id, subscription in subscriptions.items()
            if subscription.instance != self._own
        }
        self._others = {member_id: other.instance for member_id, other in others.items()}
        self.differing = {}
        for other in sorted(others.values(), key=lambda each: each.instance.name):
            shared = sorted(self.own_settings.keys() & other.settings.keys())
            names = [name for name in shared if self.own_settings[name] != other.settings[name]]
            if names:
                self.differing[other.instance.name] = tuple(names)

    def note(self, member_id: str, instance: ServiceInstance) -> None:
        """Add one member."""
        if instance != self._own:
            self._others[member_id] = instance

    async def remove_dead(self) -> bool:
        """Remove members whose process has ended; return whether any was removed."""
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

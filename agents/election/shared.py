"""Share the partitions of ``__consumer_offsets`` among instances with the same settings."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Protocol

from aiokafka.errors import (
    ConcurrentTransactions,
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    KafkaError,
    NotCoordinatorError,
    TransactionalIdAuthorizationFailed,
)

from caughtup.agents.election.agent import Election
from caughtup.agents.election.instances import (
    ACTIVE,
    SHARED,
    Assignment,
    ServiceInstance,
    Subscription,
)
from caughtup.agents.errors import UserError
from caughtup.agents.kafka.config import aiokafka_config
from caughtup.agents.kafka.protocol import transactions
from caughtup.agents.kafka.protocol.client import ClusterProtocol
from caughtup.agents.kafka.protocol.connection import raise_for
from caughtup.agents.kafka.protocol.decoding import decode_now
from caughtup.agents.kafka.protocol.groups import find_coordinator
from caughtup.agents.process.health import Health
from caughtup.agents.settings import Settings
from caughtup.agents.topics.fenced import transactional_id
from caughtup.models.sharing import (
    HeldPartitions,
    PartitionShare,
    Peer,
    share_partitions,
    unclaimed_slots,
)
from caughtup.models.wire.record_keys import CONSUMER_OFFSETS

log = logging.getLogger(__name__)

_ANSWER_SECONDS = 2.0
#: Fencing has to end well within a session: all other members wait for their shares meanwhile.
_FENCING_SECONDS = 4.0
#: A leader that could not fence tries again after this time, with a rebalance of the group.
_FENCE_AGAIN_SECONDS = 2.0
_RETRY_SECONDS = 0.1
_TAKE_AGAIN_SECONDS = 0.5
#: The time-out of a transaction of the producer that fences; it never begins one.
_TRANSACTION_MS = 60_000
_NOT_YET = (
    ConcurrentTransactions,
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    NotCoordinatorError,
)
#: Gets partitions, and the slot under which their records are written.
Take = Callable[[frozenset[int], int], Awaitable[None]]


class Taking(Protocol):
    """What takes partitions and gives them up: see HandOver. Taking raises UserError if it fails."""

    async def take(self, partitions: frozenset[int], slot: int) -> None:
        """Take partitions that this instance was given."""

    async def take_again(self, partitions: frozenset[int], slot: int) -> None:
        """Take partitions that it had when the group removed it, and was given again."""

    async def give_up(self, partitions: frozenset[int]) -> None:
        """Give partitions up, before another instance gets them."""


class SharedElection(Election):
    """Keeps this instance in its group, and takes and gives up partitions as the leader says.

    The leader gives no partition to an instance while another one claims it. Before it gives away
    partitions that no member claims, it fences the instances that are no longer members. While brokers
    refuse that, no instance has these partitions, and members keep theirs. So one instance at a time
    writes about a partition's groups.

    ``taking`` returns what takes the partitions, and changes ``held``; a taking that raises UserError
    is repeated. ``address`` returns the URL at which others reach this instance's web port.

    While an instance of a release without shared work, or with ``workers = "active"``, is in the
    group, one instance has all partitions.
    """

    def __init__(
        self,
        settings: Settings,
        health: Health,
        held: HeldPartitions,
        taking: Callable[[], Taking],
        before_leaving: Callable[[], Awaitable[None]],
        address: Callable[[], str] = str,
        clock: Callable[[], float] = time.monotonic,
        instance: ServiceInstance | None = None,
    ) -> None:
        super().__init__(settings, health, _nothing, before_leaving, clock, instance)
        self._address = address
        self._held = held
        self._taking = taking
        #: What this instance says that it has: from when it is given until it was given up.
        self._claimed: frozenset[int] = frozenset()
        self._sent: frozenset[int] = frozenset()
        self._slot: int | None = None
        #: What it had when the group removed it; None unless it was removed.
        self._had: frozenset[int] | None = None
        #: The group's protocol as of the last rebalance, and those that were offered for it.
        self._protocol: str | None = None
        self._offered: tuple[str, ...] = ()
        #: As the leader: why partitions that no member claims were given to none; and when (by
        #: ``clock``) it tries again.
        self._unfenced: str | None = None
        self._fence_again_at = 0.0
        self._changing = asyncio.Lock()
        held.numbers = frozenset()

    def _protocols(self) -> tuple[str, ...]:
        # Where instances share the groups, or there is no other, offer SHARED alone. The coordinator
        # then refuses an instance that knows ACTIVE alone: as the leader it would take all
        # partitions and fence no other instance.
        known = self._others.protocol if self._protocol is None else self._protocol
        self._offered = (SHARED,) if known in (None, SHARED) else (SHARED, ACTIVE)
        return self._offered

    def _subscription(self) -> Subscription:
        self._sent = self._claimed
        self._unfenced = None  # the leader of the next rebalance tries again
        return Subscription(
            self._instance,
            self._protocol == ACTIVE and self._elected,
            False,  # it has not read what it was not given
            self._since_ms,
            dict(self._others.own_settings),
            tuple(sorted(self._claimed)),
            self._slot,
            self._address(),
        )

    def _must_report(self) -> bool:
        return (
            bool(self._sent - self._claimed)
            or (self._protocol == SHARED and self._offered != (SHARED,))
            or (self._unfenced is not None and self._clock() >= self._fence_again_at)
        )

    async def _agree(self, protocol: str, subscriptions: Mapping[str, Subscription]) -> Assignment:
        if protocol != SHARED:
            return await super()._agree(protocol, subscriptions)
        claims = {member: each.claim() for member, each in subscriptions.items()}
        async with ClusterProtocol(aiokafka_config(self._settings), _ANSWER_SECONDS) as cluster:
            count = await cluster.partition_count(CONSUMER_OFFSETS)
            sharing = share_partitions(claims, count)
            if sharing.orphaned and not await self._fence(cluster, unclaimed_slots(claims)):
                if not any(claim.partitions for claim in claims.values()):
                    raise TimeoutError(self._unfenced)  # no member has partitions to keep
                sharing = sharing.unfenced(claims)
        peers = {
            member: Peer(each.instance.name, each.address) for member, each in subscriptions.items()
        }
        own = self._member.member_id
        return Assignment(own, self._instance, dict(sharing.shares), peers, count)

    async def _fence(self, cluster: ClusterProtocol, slots: Iterable[int]) -> bool:
        """Fence the slots of instances that may be gone; return whether brokers let it in time."""
        ids = [transactional_id(self._settings, slot) for slot in slots]
        try:
            async with asyncio.timeout(_FENCING_SECONDS):
                await asyncio.gather(*(_fence(cluster, one) for one in ids))
        except (KafkaError, OSError, TimeoutError) as error:
            self._unfenced = (
                f"brokers do not let it fence instances that are gone ({error or 'no answer in time'}): "
                "has __transaction_state a leader with enough replicas in sync?"
            )
            self._fence_again_at = self._clock() + _FENCE_AGAIN_SECONDS
            log.warning("%s", self._unfenced)
            return False
        return True

    async def _apply_result(self, result: Assignment) -> None:
        """Take what is new of this instance's share, and give up what is no longer in it."""
        self._result, own = result, self._member.member_id
        self._others.note(result.member_id, result.instance)
        if result.shares:
            share, count, self._protocol = result.shares.get(own), result.count, SHARED
        else:
            async with ClusterProtocol(aiokafka_config(self._settings), _ANSWER_SECONDS) as cluster:
                count = await cluster.partition_count(CONSUMER_OFFSETS)
            every = PartitionShare(0, tuple(range(count)))
            share, self._protocol = every if result.member_id == own else None, ACTIVE
        share = share or PartitionShare(None, ())
        given = frozenset(share.partitions)
        had, self._had = self._had, None
        if had is not None and not had <= given:
            # Its pending records were decided when it had them: none may be sent.
            self._health.broken = f"the coordinator removed this instance from the group {self._group}, and others have its partitions"
            return
        self._held.count, self._held.name, self._slot = count, self._instance.name, share.slot
        self._held.others = {
            number: result.peers.get(member, Peer(member, ""))
            for member, theirs in sorted(result.shares.items())
            if member != own
            for number in theirs.partitions
        }
        again = had or frozenset()
        gained, lost = given - self._claimed - again, self._claimed - given
        self._claimed |= given
        self._elected = self._was_elected = bool(self._claimed)
        self._say(result)
        if gained or lost or again:
            self.add_future(self._change(gained, lost, again, share.slot or 0))

    async def _change(
        self, gained: frozenset[int], lost: frozenset[int], again: frozenset[int], slot: int
    ) -> None:
        taking = self._taking()
        async with self._changing:
            if lost:
                await taking.give_up(lost)
                self._claimed -= lost
                self._elected = bool(self._claimed)
                log.info("gave up %s", _counted(lost))
                self._hurry.set()  # the instance that gets them waits for this
            if again and await self._try(taking.take_again, again, slot):
                log.info("took %s again", _counted(again))
            if gained and await self._try(taking.take, gained, slot):
                log.info("took %s", _counted(gained))
            if self._elected and self._held.numbers:
                self._health.standby = None

    async def _try(self, take: Take, partitions: frozenset[int], slot: int) -> bool:
        """Take partitions, again after a failure; return False if the group removed this instance."""
        while not self.should_stop and partitions <= self._claimed:
            try:
                await take(partitions, slot)
            except UserError as error:
                log.warning("taking %s: %s; trying again", _counted(partitions), error.message)
                if not self._held.numbers:
                    self._health.standby = f"taking {_counted(partitions)}: {error.message}"
                await self.sleep(_TAKE_AGAIN_SECONDS)
            else:
                return True
        return False

    def _expelled(self) -> None:
        if self._claimed:
            self._had = self._claimed
        self._claimed, self._slot = frozenset(), None
        super()._expelled()

    def _say(self, result: Assignment) -> None:
        """Say who has what: on ``/ready``, and while this instance has nothing, as its reason."""
        others = [
            f"{_name(result, member)} has {len(share.partitions)}"
            for member, share in sorted(result.shares.items())
            if member != self._member.member_id
        ]
        of = f"of {self._held.count} partitions of {CONSUMER_OFFSETS}"
        have = f"this instance has {len(self._claimed)} {of}"
        moving = self._held.count - len(self._claimed) - len(self._held.others)
        given = [f"{moving} move to another" if moving > 0 else ""]
        if moving > 0 and self._unfenced is not None:
            given = [f"no instance has {moving}: {self._unfenced}"]
        self._health.shares = "; ".join(filter(None, [have, *others, *given]))
        if not self._claimed:
            if self._unfenced is not None:
                why = self._unfenced
            elif result.shares:
                why = f"no partitions yet: {'; '.join(others)}"
            else:
                why = f"{result.instance.name} is active"
            self._health.standby = why
        elif not self._held.numbers:
            self._health.standby = f"taking {_counted(self._claimed)} {of}"


def _name(result: Assignment, member: str) -> str:
    return result.peers[member].name if member in result.peers else member


async def _nothing() -> None:
    """Take over nothing when elected: partitions are taken."""


async def _fence(cluster: ClusterProtocol, name: str) -> None:
    """Have brokers refuse a producer that still has a transactional id. Raises KafkaError."""
    call = transactions.init_producer_id_call(name, _TRANSACTION_MS)
    while True:
        try:
            coordinator = await find_coordinator(cluster.connections, name, transactional=True)
            data = await cluster.connections.ask(coordinator, call)
            raise_for(decode_now(transactions.decode_init_producer_id, data))
        except TransactionalIdAuthorizationFailed:
            return  # none of the instances is fenced, as the writer of each says
        except _NOT_YET:
            await asyncio.sleep(_RETRY_SECONDS)
        else:
            return


def _counted(partitions: frozenset[int]) -> str:
    return f"{len(partitions)} partition{'' if len(partitions) == 1 else 's'}"
